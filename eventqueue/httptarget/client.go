package httptarget

import (
	"cmp"
	"net"
	"net/http"
	"net/url"
	"syscall"
	"time"
)

// NewClient makes a client for targets. It has enough idle connections for a busy
// worker, honours HTTP_PROXY, HTTPS_PROXY and NO_PROXY, and has no timeout of its
// own, because the context of a run bounds each request. Use one client for all
// targets; it is safe for concurrent use. CloseIdleConnections closes its idle
// connections; they also close by themselves after DefaultIdleTimeout.
//
// A request whose connection had carried another one before, and breaks before the first
// byte of the answer, is sent once more on a new connection.
//
// It connects to no link-local address, no metadata server of a cloud and no unspecified
// or multicast address, whichever name leads there: requests fail with an AddressError.
// Through a proxy only the host in the URL is checked; the proxy resolves names, and
// has to check their addresses. AllowLinkLocal removes this protection.
func NewClient(options ...ClientOption) *http.Client {
	settings := clientSettings{proxy: guardProxied, control: guardDial, idle: DefaultIdleTimeout}
	for _, option := range options {
		option(&settings)
	}
	dialer := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second, Control: settings.control}
	return &http.Client{
		CheckRedirect: stayHere,
		Transport: newRenewing(&http.Transport{
			Proxy:                  settings.proxy,
			DialContext:            dialer.DialContext,
			TLSHandshakeTimeout:    10 * time.Second,
			ForceAttemptHTTP2:      true,
			MaxIdleConns:           1024,
			MaxIdleConnsPerHost:    256,
			IdleConnTimeout:        settings.idle,
			MaxResponseHeaderBytes: 64 << 10,
			// Answers are discarded, so compressing them saves nothing.
			DisableCompression: true,
		}),
	}
}

// ClientOption changes what NewClient makes.
type ClientOption func(*clientSettings)

type clientSettings struct {
	proxy   func(*http.Request) (*url.URL, error)
	control func(network, address string, connection syscall.RawConn) error
	idle    time.Duration
}

// DefaultIdleTimeout is how long a connection to a target rests before it is closed, unless
// IdleTimeout says otherwise. Servers that are in common use close theirs after 5 s or more.
const DefaultIdleTimeout = 4 * time.Second

// IdleTimeout has connections close that have rested for so long. It should be shorter than
// the idle time-outs of the targets. 0 stands for DefaultIdleTimeout.
func IdleTimeout(d time.Duration) ClientOption {
	return func(s *clientSettings) { s.idle = cmp.Or(d, DefaultIdleTimeout) }
}

// AllowLinkLocal permits targets at any address. Use it only if a target is at such an
// address and everybody who writes URLs is trusted.
func AllowLinkLocal() ClientOption {
	return func(s *clientSettings) { s.proxy, s.control = http.ProxyFromEnvironment, nil }
}

// stayHere does not follow redirects, so that a redirect is an answer like any other.
func stayHere(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
