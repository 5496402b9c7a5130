package httptarget

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
)

// renewing is a transport that sends a request once more, on a new connection, if the used
// connection that it was given breaks before the first byte of an answer. Such a break says
// nothing about the request: servers close connections that rest, and when they do that
// while a request is on its way, its outcome is unknown.
//
// The transport's own repetition, which an Idempotency-Key turns on, does not do: it takes the
// next connection that rests, and so sends a request that ends the server's process, or its
// connection, to as many of them as there are.
type renewing struct {
	pooled *http.Transport
	fresh  *http.Transport // a new connection for each request
}

func newRenewing(pooled *http.Transport) *renewing {
	fresh := pooled.Clone()
	fresh.DisableKeepAlives = true
	return &renewing{pooled: pooled, fresh: fresh}
}

// RoundTrip implements http.RoundTripper.
func (r *renewing) RoundTrip(request *http.Request) (*http.Response, error) {
	var reused, answered atomic.Bool
	watched := request.WithContext(httptrace.WithClientTrace(request.Context(), &httptrace.ClientTrace{
		GotConn:              func(got httptrace.GotConnInfo) { reused.Store(got.Reused) },
		GotFirstResponseByte: func() { answered.Store(true) },
	}))
	response, err := r.pooled.RoundTrip(watched)
	if err == nil || !reused.Load() || answered.Load() || request.Context().Err() != nil || !broken(err) || request.GetBody == nil {
		return response, err
	}
	body, bodyErr := request.GetBody()
	if bodyErr != nil {
		return nil, err
	}
	again := request.Clone(request.Context())
	again.Body = body
	return r.fresh.RoundTrip(again)
}

// CloseIdleConnections serves the method of http.Client.
func (r *renewing) CloseIdleConnections() {
	r.pooled.CloseIdleConnections()
	r.fresh.CloseIdleConnections()
}

// broken reports whether an error means that the connection broke: neither a time-out, nor a
// stream that the server has reset in HTTP/2, where the others of its connection go on.
func broken(err error) bool {
	var timeout net.Error
	var reset streamError
	return (!errors.As(err, &timeout) || !timeout.Timeout()) && !errors.As(err, &reset)
}

// streamError is a copy of the unexported type in net/http, for errors.As.
type streamError struct {
	StreamID uint32
	Code     uint32
	Cause    error
}

func (streamError) Error() string { return "stream error" }
