package httptarget

import (
	"errors"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
)

// TestTargetsAtMetadataAddressesAreForbidden: not at addresses where clouds have credentials, however they are
// written, and at all others.
func TestTargetsAtMetadataAddressesAreForbidden(t *testing.T) {
	t.Parallel()
	for _, host := range []string{
		"169.254.169.254", "169.254.0.1", "169.254.255.255", "0.0.0.0", "0.1.2.3", "168.63.129.16", "100.100.100.200", "192.0.0.192",
		"224.0.0.251", "255.255.255.255", "::", "fe80::1", "fe80::1%eth0", "febf::1", "fd00:ec2::254", "fd00:ec2::23", "fd20:ce::254", "ff02::1",
		"::ffff:169.254.169.254", "::ffff:a9fe:a9fe", "::169.254.169.254", "::ffff:0:169.254.169.254", "64:ff9b::169.254.169.254",
		"64:ff9b:1::169.254.169.254", "64:ff9b:1:a9fe:a9:fe00::", "64:ff9b:1:a9fe:a9:fe00::1", "64:ff9b:1:a9:fe:a9fe::", "64:ff9b:1:5a9:fe:a9fe::",
		"64:ff9b:1::a9:fea9:fe00:0", "64:ff9b:1:6464:64:c800::", "64:ff9b:1:7:8::169.254.169.254", "2002:a9fe:a9fe::1", "::ffff:0.0.0.0", "2852039166", "0xA9FEA9FE", "0251.0376.0251.0376", "169.254.43518",
		"169.16689662", "0xa9.0xfe.0xa9.0xfe", "0", "169.254.169.254.",
	} {
		address, ok := written(host)
		if !ok || allowed(address) {
			t.Errorf("%s: %s is allowed", host, address)
		}
		if _, err := netip.ParseAddr(host); err == nil && guardDial("tcp", net.JoinHostPort(host, "80"), nil) == nil {
			t.Errorf("%s is dialled", host)
		}
		if guardHost(host) == nil {
			t.Errorf("%s is asked for at a proxy", host)
		}
	}
	for _, name := range []string{"metadata.google.internal", "METADATA.google.internal.", "metadata"} {
		if guardHost(name) == nil {
			t.Errorf("%s is asked for at a proxy", name)
		}
	}
	for _, host := range []string{
		"127.0.0.1", "::1", "10.0.0.1", "172.16.0.1", "192.168.1.1", "100.64.0.1", "240.0.0.1", "169.253.255.255", "169.255.0.0", "8.8.8.8", "192.0.0.1",
		"fd00::1", "fd12:3456::1", "2001:db8::1", "2600::1", "::ffff:10.0.0.1", "::ffff:127.0.0.1", "64:ff9b::8.8.8.8", "2002:a00:1::1",
		"64:ff9b:1::8.8.8.8", "64:ff9b:1:808:8:800::", "64:ff9b:1:8e0:1:100::", "64:ff9b:1:8:8:808::", "64:ff9b:1::8:808:800:0", "64:ff9b:2::169.254.169.254",
	} {
		if err := guardDial("tcp", net.JoinHostPort(host, "80"), nil); err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{"example.com", "my-metadata", "1.2.3.4.5", "300.1.1.1", "a.1"} {
		if err := guardHost(name); err != nil {
			t.Error(err)
		}
	}
}

// TestForbiddenTargetIsAPermanentFailure, says why and what to do, and needs no network.
func TestForbiddenTargetIsAPermanentFailure(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"http://169.254.169.254/latest/meta-data", "http://[fe80::1]/", "http://[::ffff:169.254.169.254]/", "http://0.0.0.0:1/"} {
		target, err := New(Config{URL: url})
		if err != nil {
			t.Fatal(err)
		}
		err = target.Handle(testContext(t), testRun())
		var refused *AddressError
		if outcomeOf(err) != permanent || !errors.As(err, &refused) || !strings.Contains(err.Error(), "TARGET_LINK_LOCAL=true") {
			t.Errorf("%s: %v", url, err)
		}
	}
}

// TestRedirectToAForbiddenTargetIsRefused for those who let the client follow them.
func TestRedirectToAForbiddenTargetIsRefused(t *testing.T) {
	t.Parallel()
	_, server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://169.254.169.254/", http.StatusFound)
	})
	client := NewClient()
	t.Cleanup(client.CloseIdleConnections)
	client.CheckRedirect = nil
	answer, err := client.Get(server.URL)
	if err == nil {
		_ = answer.Body.Close()
	}
	var refused *AddressError
	if !errors.As(err, &refused) || refused.Host != "169.254.169.254" {
		t.Errorf("%v", err)
	}
}

// TestGuardCanBeDisabled: without it, another dial guard is asked, and the error is
// an ordinary one.
func TestGuardCanBeDisabled(t *testing.T) {
	t.Parallel()
	// 0.0.0.0 is this host: somewhere nobody listens, so the connection is refused.
	listener, err := (&net.ListenConfig{}).Listen(testContext(t), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	_ = listener.Close()
	target, err := New(Config{URL: "http://0.0.0.0:" + port, Client: NewClient(AllowLinkLocal())})
	if err != nil {
		t.Fatal(err)
	}
	err = target.Handle(testContext(t), testRun())
	var refused *AddressError
	if err == nil || errors.As(err, &refused) || outcomeOf(err) == permanent {
		t.Errorf("%v", err)
	}
}
