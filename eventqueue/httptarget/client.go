package httptarget

import (
	"net"
	"net/http"
	"time"
)

// NewClient makes a client that is fit for targets: it keeps enough idle
// connections for a busy worker, honours HTTP_PROXY, HTTPS_PROXY and NO_PROXY,
// and has no time-out of its own, because the context of a run bounds it. Share
// one among all targets; it is safe for concurrent use. CloseIdleConnections
// ends its connections; idle ones end by themselves after 90 s.
func NewClient() *http.Client {
	dialer := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}
	return &http.Client{
		CheckRedirect: stayHere,
		Transport: &http.Transport{
			Proxy:                  http.ProxyFromEnvironment,
			DialContext:            dialer.DialContext,
			TLSHandshakeTimeout:    10 * time.Second,
			ForceAttemptHTTP2:      true,
			MaxIdleConns:           1024,
			MaxIdleConnsPerHost:    256,
			IdleConnTimeout:        90 * time.Second,
			MaxResponseHeaderBytes: 64 << 10,
			// Answers are thrown away, so there is nothing to gain from
			// unpacking them.
			DisableCompression: true,
		},
	}
}

// stayHere makes a redirect an answer like any other.
func stayHere(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
