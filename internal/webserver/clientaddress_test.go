package webserver

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

// TestClientAddressComesFromTheLastProxy that is not trusted: nobody can give themselves another one.
func TestClientAddressComesFromTheLastProxy(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		trusted, peer string
		forwarded     []string
		want          string
	}{
		"nobody is trusted":             {"", "10.0.0.1:99", []string{"192.0.2.7"}, "10.0.0.1:99"},
		"the peer is not":               {"10.0.0.0/8", "192.0.2.1:99", []string{"192.0.2.7"}, "192.0.2.1:99"},
		"it is":                         {"10.0.0.0/8", "10.0.0.1:99", []string{"192.0.2.7"}, "192.0.2.7:0"},
		"it is a single address":        {"10.0.0.1/32", "10.0.0.1:99", []string{"192.0.2.7"}, "192.0.2.7:0"},
		"it is an IPv4 address in IPv6": {"10.0.0.0/8", "[::ffff:10.0.0.1]:99", []string{"192.0.2.7"}, "192.0.2.7:0"},
		"IPv6":                          {"10.0.0.0/8 fd00::/8", "[fd00::1]:99", []string{"2001:db8::7"}, "[2001:db8::7]:0"},
		"two proxies":                   {"10.0.0.0/8", "10.0.0.1:99", []string{"192.0.2.7, 10.0.0.2"}, "192.0.2.7:0"},
		"the client wrote one itself":   {"10.0.0.0/8", "10.0.0.1:99", []string{"127.0.0.1, 192.0.2.7"}, "192.0.2.7:0"},
		"in a header of its own":        {"10.0.0.0/8", "10.0.0.1:99", []string{"127.0.0.1", "192.0.2.7"}, "192.0.2.7:0"},
		"it wrote that of a proxy":      {"10.0.0.0/8", "10.0.0.1:99", []string{"10.0.0.9, 192.0.2.7"}, "192.0.2.7:0"},
		"the proxy sends none":          {"10.0.0.0/8", "10.0.0.1:99", nil, "10.0.0.1:99"},
		"it sends nonsense":             {"10.0.0.0/8", "10.0.0.1:99", []string{"192.0.2.7, somebody"}, "10.0.0.1:99"},
		"all that it names are proxies": {"10.0.0.0/8", "10.0.0.1:99", []string{"10.0.0.3, 10.0.0.2"}, "10.0.0.1:99"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var trusted []netip.Prefix
			for network := range strings.FieldsSeq(c.trusted) {
				trusted = append(trusted, netip.MustParsePrefix(network))
			}
			var got string
			handler, err := withClientAddress(trusted, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.RemoteAddr }))
			if err != nil {
				t.Fatal(err)
			}
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
			r.RemoteAddr = c.peer
			for _, value := range c.forwarded {
				r.Header.Add("X-Forwarded-For", value)
			}
			handler.ServeHTTP(httptest.NewRecorder(), r)
			if got != c.want {
				t.Errorf("the address is %s, want %s", got, c.want)
			}
			if r.RemoteAddr != c.peer || !slices.Equal(r.Header.Values("X-Forwarded-For"), c.forwarded) {
				t.Error("the server's own request was changed")
			}
		})
	}
}
