package jwks

import "net/http"

// SetTransport has requests for the keys go through a transport.
func SetTransport(s *Set, transport http.RoundTripper) { s.client.Transport = transport }

// Await waits until no request for the keys is under way.
func Await(s *Set) { _, _, _ = s.fetches.Do("", func() (any, error) { return nil, nil }) }
