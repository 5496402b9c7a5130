package httptarget

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"eventsv2/eventqueue"
)

// Config configures a Target.
type Config struct {
	// URL is where events are POSTed: absolute, http or https. A user and
	// password in it are sent as basic authentication and never printed.
	URL string

	// Client sends the requests. Redirects are not followed, whatever its CheckRedirect
	// returns. Default (nil): a client of its own, from NewClient.
	Client *http.Client
}

// Target is an eventqueue.Handler that POSTs events to one URL. It is safe for
// concurrent use.
type Target struct {
	to     address
	client *http.Client

	// bodyTime is how long the body of an answer may take. The body does not affect
	// the outcome, so it must not delay the worker.
	bodyTime time.Duration
}

// New makes a Target. It makes no connection; the error names the mistake in the
// URL.
func New(config Config) (*Target, error) {
	to, err := parseAddress(config.URL)
	if err != nil {
		return nil, fmt.Errorf("httptarget.New: URL %w", err)
	}
	return newTarget(to, config.Client), nil
}

func newTarget(to address, client *http.Client) *Target {
	if client == nil {
		client = NewClient()
	}
	still := *client
	still.CheckRedirect = stayHere
	return &Target{to: to, client: &still, bodyTime: 2 * time.Second}
}

// String is the URL without user, password and query, for logs.
func (t *Target) String() string { return t.to.String() }

// Handle POSTs the event of the run and blocks until the target has answered or
// ctx ends. The package comment says which answer is which outcome.
func (t *Target) Handle(ctx context.Context, run *eventqueue.Run) error {
	return t.post(ctx, &run.Event)
}

func (t *Target) post(ctx context.Context, event *eventqueue.Event) error {
	sending, cancel := context.WithCancel(ctx)
	defer cancel()
	request, err := newRequest(sending, t.to, event)
	if err != nil {
		return fmt.Errorf("make the request for event %s to %s: %w", event.ID, t.to, err)
	}
	response, err := t.client.Do(request)
	var refused *AddressError
	switch {
	case errors.As(err, &refused):
		return eventqueue.Permanent(fmt.Errorf("POST %s: %w", t.to, refused))
	case err != nil:
		return fmt.Errorf("POST %s: no answer: %w", t.to, reason(ctx, err))
	}
	received := time.Now()
	tooSlow := time.AfterFunc(t.bodyTime, cancel)
	defer tooSlow.Stop()
	err = verdict(answer{
		status:   response.StatusCode,
		header:   response.Header,
		excerpt:  drainBody(response),
		received: received,
	})
	if err != nil {
		return fmt.Errorf("POST %s: %w", t.to, err)
	}
	return nil
}

// reason removes the wrapper of the HTTP client, which repeats the URL, and prefers
// the cause for which the context of the run ended.
func reason(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var wrapper *url.Error
	if errors.As(err, &wrapper) {
		return wrapper.Err
	}
	return err
}
