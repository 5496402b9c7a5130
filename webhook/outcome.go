package webhook

import (
	"errors"
	"net/http"
	"time"
)

// Outcome is the result of a request to a source.
type Outcome string

// The outcomes of requests that were not refused.
const (
	Accepted  Outcome = "accepted"  // its events are committed
	Duplicate Outcome = "duplicate" // a repeated delivery, which added nothing
	Ignored   Outcome = "ignored"   // genuine, and not made an event; or part of the scheme, such as a challenge
)

// The outcomes of requests that were refused.
const (
	BadSignature Outcome = "bad signature"  // not genuine, or a header is missing
	BadTime      Outcome = "too old"        // its time stamp differs too much from the clock
	Malformed    Outcome = "malformed"      // the body broke off, is compressed, or no event can be made of it; or not POST
	TooLarge     Outcome = "too large"      // larger than MaxBodyBytes
	TooSlow      Outcome = "too slow"       // longer than ReadTimeout
	OverLimit    Outcome = "over its limit" // Check refused its events
	Failed       Outcome = "failed"         // the Caster failed
	Unavailable  Outcome = "unavailable"    // the database or Check failed, or there was no room
)

// Outcomes returns all outcomes.
func Outcomes() []Outcome {
	return []Outcome{Accepted, Duplicate, Ignored, BadSignature, BadTime, Malformed, TooLarge, TooSlow, OverLimit, Failed, Unavailable}
}

// Refused reports whether requests with the outcome were refused.
func (o Outcome) Refused() bool { return o != Accepted && o != Duplicate && o != Ignored }

// refusal is an answer other than 2xx, with its reason.
type refusal struct {
	status int
	reason error
	wait   time.Duration
	// unread means that part of the body has not been read, and will not be.
	unread bool
}

func refuse(status int, reason error) *refusal { return &refusal{status: status, reason: reason} }

// busy refuses a request for which there is no room at the moment.
func busy(reason error) *refusal {
	return &refusal{status: http.StatusServiceUnavailable, reason: reason, wait: time.Second}
}

// outcome is the reason of a refusal as a class.
func (r *refusal) outcome() Outcome {
	var late timeError
	switch r.status {
	case http.StatusUnauthorized:
		if errors.As(r.reason, &late) {
			return BadTime
		}
		return BadSignature
	case http.StatusRequestEntityTooLarge:
		return TooLarge
	case http.StatusRequestTimeout:
		return TooSlow
	case http.StatusTooManyRequests:
		return OverLimit
	case http.StatusInternalServerError:
		return Failed
	case http.StatusServiceUnavailable:
		return Unavailable
	default:
		return Malformed
	}
}

// observe reports a request of a source that exists.
func (h *Handler) observe(r *http.Request, outcome Outcome, refused *refusal) {
	if h.config.Observe == nil {
		return
	}
	source, _, err := h.sourceOf(r)
	if err != nil {
		return
	}
	if refused != nil {
		h.config.Observe(source, refused.outcome(), refused.reason)
		return
	}
	h.config.Observe(source, outcome, nil)
}
