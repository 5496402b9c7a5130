package webserver

import (
	"fmt"
	"net/http"
	"net/netip"

	"github.com/realclientip/realclientip-go"
)

// withClientAddress has requests that come through trusted proxies, whose networks are given, carry the address of
// their client: the audit log names it, and wrong tokens count against it. It is the last address of X-Forwarded-For
// that is not a trusted proxy's; what a client wrote into that header itself stands before it. Requests of others, and
// all while no proxy is trusted, keep the address that they come from.
func withClientAddress(trusted []netip.Prefix, next http.Handler) (http.Handler, error) {
	if len(trusted) == 0 {
		return next, nil
	}
	var networks []string
	for _, prefix := range trusted {
		networks = append(networks, prefix.String())
	}
	ranges, err := realclientip.AddressesAndRangesToIPNets(networks...)
	if err != nil {
		return nil, fmt.Errorf("TRUSTED_PROXIES: %w", err)
	}
	strategy, err := realclientip.NewRightmostTrustedRangeStrategy("X-Forwarded-For", ranges)
	if err != nil {
		return nil, fmt.Errorf("TRUSTED_PROXIES: %w", err)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		peer, err := netip.ParseAddrPort(r.RemoteAddr)
		if err == nil && contains(trusted, peer.Addr()) {
			client, err := netip.ParseAddr(strategy.ClientIP(r.Header, r.RemoteAddr))
			if err == nil {
				r = r.WithContext(r.Context()) // a copy
				r.RemoteAddr = netip.AddrPortFrom(client.Unmap(), 0).String()
			}
		}
		next.ServeHTTP(w, r)
	}), nil
}

func contains(networks []netip.Prefix, address netip.Addr) bool {
	for _, network := range networks {
		if network.Contains(address.Unmap()) {
			return true
		}
	}
	return false
}
