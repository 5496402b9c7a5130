package httptarget

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"eventsv2/eventqueue"
)

// MaxSnooze is the longest time for which a Retry-After can put off an event; a longer one
// counts as MaxSnooze.
const MaxSnooze = 24 * time.Hour

// minSnooze is the shortest such time, for dates that are less than a second ahead.
const minSnooze = time.Second

// answer is what a target has answered.
type answer struct {
	status   int
	header   http.Header
	excerpt  string    // beginning of the body, printable
	location string    // of a redirect, as newLocation has it
	token    bool      // the request had an identity token
	received time.Time // serves to read a Retry-After when the answer has no Date
}

// verdict returns what an answer means for the event, in the terms of eventqueue.Handler, and whether
// the target counts as away. It is a pure function.
func verdict(a answer) error {
	err := verdictOnEvent(a)
	switch {
	case a.status == http.StatusUnauthorized, a.status == http.StatusForbidden, a.status == http.StatusNotFound,
		a.status == http.StatusTooManyRequests, a.status >= 500:
		wait, _ := retryAfter(a.header, a.received)
		return eventqueue.Unavailable(err, wait)
	default:
		return err
	}
}

func verdictOnEvent(a answer) error {
	switch {
	case a.status >= 200 && a.status <= 299:
		return nil
	case a.status == http.StatusTooManyRequests || a.status == http.StatusServiceUnavailable:
		if wait, ok := retryAfter(a.header, a.received); ok {
			return fmt.Errorf("%w, as the target asked: %s", eventqueue.Snooze(wait), a)
		}
		return errors.New(a.String())
	case a.status >= 300 && a.status <= 399:
		return eventqueue.Permanent(fmt.Errorf("%s; redirects are not followed: correct the URL of the handler%s",
			a, a.location))
	case a.status == http.StatusRequestTimeout:
		return errors.New(a.String())
	case (a.status == http.StatusUnauthorized || a.status == http.StatusForbidden) && a.token:
		// A right that was given a moment ago, or is missing for a while, must not fail all events.
		return fmt.Errorf("%s; the next run asks for the identity token again: if that is refused as well, "+
			"correct the audience of the handler (auth.oidc.audience), or let the service account of the worker call the target (roles/run.invoker on Cloud Run)", a)
	case a.status >= 400 && a.status <= 499:
		return eventqueue.Permanent(errors.New(a.String()))
	default:
		return errors.New(a.String())
	}
}

// String is the status and the beginning of the body.
func (a answer) String() string {
	text := strconv.Itoa(a.status)
	if name := http.StatusText(a.status); name != "" {
		text += " " + name
	}
	if a.excerpt != "" {
		text += ": " + a.excerpt
	}
	return text
}

// newLocation is a hint at where a redirect leads, or empty.
func newLocation(header http.Header) string {
	location, err := url.Parse(header.Get("Location"))
	if err != nil {
		return ""
	}
	if shown := (address{location}).String(); shown != "" {
		return " (it leads to " + shown + ")"
	}
	return ""
}

// retryAfter reads the header of that name. false means that it is absent, malformed or in
// the past: the target then does not know when it can be called again, and the policy's
// backoff is the better guess.
func retryAfter(header http.Header, received time.Time) (time.Duration, bool) {
	text := header.Get("Retry-After")
	seconds, err := strconv.ParseUint(text, 10, 64)
	switch {
	case errors.Is(err, strconv.ErrRange) || err == nil && seconds > uint64(MaxSnooze/time.Second):
		return MaxSnooze, true
	case err == nil:
		return time.Duration(seconds) * time.Second, seconds > 0
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0, false
	}
	// Both times by the clock of the target: the difference is then right
	// whatever the clocks say.
	now, err := http.ParseTime(header.Get("Date"))
	if err != nil {
		now = received
	}
	wait := at.Sub(now)
	if wait <= 0 {
		return 0, false
	}
	return min(max(wait, minSnooze), MaxSnooze), true
}
