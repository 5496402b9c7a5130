package intake

import "net/http"

// Unrouted returns how a mux refuses a request: with 404, or with 405 and the methods that its path takes. The status is 0 of a
// request that the mux has a handler for, or redirects to one.
func Unrouted(mux *http.ServeMux, r *http.Request) (status int, allow string) {
	refuse, pattern := mux.Handler(r)
	if pattern != "" {
		return 0, ""
	}
	answer := refusal{header: http.Header{}}
	refuse.ServeHTTP(&answer, r)
	if answer.status != http.StatusMethodNotAllowed {
		return http.StatusNotFound, ""
	}
	return answer.status, answer.header.Get("Allow")
}

// refusal keeps an answer without its body.
type refusal struct {
	header http.Header
	status int
}

func (r *refusal) Header() http.Header            { return r.header }
func (r *refusal) WriteHeader(status int)         { r.status = status }
func (r *refusal) Write(body []byte) (int, error) { return len(body), nil }
