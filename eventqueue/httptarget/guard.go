package httptarget

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// AddressError means that a target is at a forbidden address: a link-local one, where
// clouds give their credentials to every client, or one that does not belong to a single
// host. A Target fails its event for good with it.
type AddressError struct {
	// Host is the address, or the name when a proxy would have resolved it.
	Host string
}

func (e *AddressError) Error() string {
	return fmt.Sprintf("%s is a link-local, metadata or unspecified address, which handlers may not call: "+
		"correct the URL of the handler or what its name resolves to; if it is meant, set TARGET_LINK_LOCAL=true (httptarget.AllowLinkLocal)", e.Host)
}

// forbidden are the networks without targets. Loopback and private networks are not
// among them: most targets are beside the worker or within its cluster.
var forbidden = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),          // this host, as is ::
	netip.MustParsePrefix("169.254.0.0/16"),     // link-local; metadata of most clouds
	netip.MustParsePrefix("168.63.129.16/32"),   // Azure's
	netip.MustParsePrefix("100.100.100.200/32"), // Alibaba's
	netip.MustParsePrefix("192.0.0.192/32"),     // Oracle's
	netip.MustParsePrefix("224.0.0.0/4"),        // multicast
	netip.MustParsePrefix("255.255.255.255/32"), // broadcast
	netip.MustParsePrefix("::/128"),
	netip.MustParsePrefix("fe80::/10"),        // link-local
	netip.MustParsePrefix("fd00:ec2::/32"),    // metadata of AWS
	netip.MustParsePrefix("fd20:ce::254/128"), // of Google Cloud
	netip.MustParsePrefix("ff00::/8"),         // multicast
}

// embedding are networks of IPv6 whose addresses contain an IPv4 address, which begins
// at the given byte.
var embedding = []struct {
	network netip.Prefix
	at      int
}{
	{netip.MustParsePrefix("::ffff:0:0/96"), 12},   // mapped
	{netip.MustParsePrefix("::/96"), 12},           // compatible
	{netip.MustParsePrefix("::ffff:0:0:0/96"), 12}, // translated
	{netip.MustParsePrefix("64:ff9b::/96"), 12},    // NAT64
	{netip.MustParsePrefix("2002::/16"), 2},        // 6to4
}

// ownNAT64 is for private translators (RFC 8215). Only their operator knows how long
// their prefix is, so an address in it is read in each way that RFC 6052 permits.
var ownNAT64 = netip.MustParsePrefix("64:ff9b:1::/48")

// ownNAT64Forms are where the IPv4 address is after a prefix of 48, 56, 64 and 96 bits.
// The ninth byte belongs to none.
var ownNAT64Forms = [][net.IPv4len]int{{6, 7, 9, 10}, {7, 9, 10, 11}, {9, 10, 11, 12}, {12, 13, 14, 15}}

// names are the names of metadata servers, for requests whose names a proxy resolves.
var names = []string{"metadata", "metadata.google.internal", "metadata.goog", "instance-data", "instance-data.ec2.internal"}

func allowed(address netip.Addr) bool {
	address = address.WithZone("")
	is := func(network netip.Prefix) bool { return network.Contains(address) }
	if slices.ContainsFunc(forbidden, is) {
		return false
	}
	if !address.Is6() || address == netip.IPv6Loopback() {
		return true
	}
	bytes := address.As16()
	for _, e := range embedding {
		// Contains does not treat a mapped address as one of IPv6.
		if e.network.Contains(address) || e.network.Addr().Is4In6() && address.Is4In6() {
			if inner := netip.AddrFrom4([4]byte(bytes[e.at : e.at+4])); !allowed(inner) {
				return false
			}
		}
	}
	return !ownNAT64.Contains(address) || !slices.ContainsFunc(ownNAT64Forms, func(form [net.IPv4len]int) bool {
		inner := netip.AddrFrom4([4]byte{bytes[form[0]], bytes[form[1]], bytes[form[2]], bytes[form[3]]})
		// Read with a wrong prefix length, any address may seem to be this host or a
		// multicast group; those have no credentials.
		return bytes[form[0]] != 0 && !inner.IsMulticast() && !allowed(inner)
	})
}

// guardDial is net.Dialer.Control: it is called for each address before the connection,
// after a name has been resolved, however the address was written, and after a redirect.
func guardDial(_, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("the address %q cannot be read: %w", address, err)
	}
	if !allowed(to.Addr()) {
		return &AddressError{Host: to.Addr().String()}
	}
	return nil
}

// guardProxied is http.Transport.Proxy: a proxy of the environment resolves the names of
// its requests, so only the host as written in the URL can be checked here.
func guardProxied(request *http.Request) (*url.URL, error) {
	proxy, err := http.ProxyFromEnvironment(request)
	if proxy == nil || err != nil {
		return proxy, err
	}
	return proxy, guardHost(request.URL.Hostname())
}

func guardHost(host string) error {
	address, ok := written(host)
	if ok && !allowed(address) || slices.Contains(names, strings.ToLower(strings.TrimSuffix(host, "."))) {
		return &AddressError{Host: host}
	}
	return nil
}

// written reads an address as resolvers do, which accept 0xA9FEA9FE, 2852039166 and
// 169.254.43518 as other forms of 169.254.169.254.
func written(host string) (netip.Addr, bool) {
	if address, err := netip.ParseAddr(host); err == nil {
		return address, true
	}
	texts := strings.Split(strings.TrimSuffix(host, "."), ".")
	if len(texts) > net.IPv4len {
		return netip.Addr{}, false
	}
	var value uint64
	for i, text := range texts {
		bits := 8
		if i == len(texts)-1 {
			bits = 8 * (net.IPv4len - i)
		}
		n, err := strconv.ParseUint(text, 0, bits)
		if err != nil {
			return netip.Addr{}, false
		}
		value = value<<bits | n
	}
	var bytes [net.IPv4len]byte
	binary.BigEndian.PutUint32(bytes[:], uint32(value)) //nolint:gosec // the parts have 32 bits together
	return netip.AddrFrom4(bytes), true
}
