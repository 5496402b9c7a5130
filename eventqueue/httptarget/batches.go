package httptarget

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"go.opentelemetry.io/otel/propagation"

	cloudevent "github.com/cloudevents/sdk-go/v2/event"

	"eventsv2/eventqueue"
	"eventsv2/internal/attributes"
)

const (
	// maxRequestBytes is how much the values of the events of one request have together, unless that is one event.
	maxRequestBytes = 4 << 20
	// maxOutcomesBytes is the size of the largest 207 answer that is read.
	maxOutcomesBytes = 1 << 20
)

// HandleBatch POSTs the events of several runs together, as application/cloudevents-batch+json, and returns the error of each, as Handle
// does. What the status of the answer means, it means for all of them, but for 207, whose body has those that are not completed:
//
//	{"17": {"status": 422, "message": "no such page"}}
//
// The status of each is one that the target could have answered to it alone, and an event that is not there is completed. Events whose values are large
// together are sent in several requests, one after the other.
func (t *Target) HandleBatch(ctx context.Context, runs []*eventqueue.Run) (errs []error) {
	for len(runs) > 0 {
		n, bytes := 0, 0
		for n < len(runs) && (n == 0 || bytes+len(runs[n].Value) <= maxRequestBytes) {
			bytes += len(runs[n].Value)
			n++
		}
		errs = append(errs, t.postTogether(ctx, runs[:n])...)
		runs = runs[n:]
	}
	return errs
}

func (t *Target) postTogether(ctx context.Context, runs []*eventqueue.Run) []error {
	var outcomes []error
	err := func() error {
		sending, cancel := context.WithCancel(ctx)
		defer cancel()
		body, err := json.Marshal(t.cloudEvents(runs))
		if err != nil {
			return fmt.Errorf("make the request for %d events to %s: %w", len(runs), t.to, err)
		}
		request, err := http.NewRequestWithContext(sending, http.MethodPost, t.to.url.String(), bytes.NewReader(body))
		if err != nil {
			return fmt.Errorf("make the request for %d events to %s: %w", len(runs), t.to, err)
		}
		request.Header.Set("User-Agent", userAgent)
		request.Header.Set("Content-Type", severalEvents+"; charset=UTF-8")
		id := runs[0].ID.String() + "-" + runs[len(runs)-1].ID.String()
		return t.send(ctx, cancel, request, sent{id: id, body: body, encrypted: slices.ContainsFunc(runs, isEncrypted),
			answered: func(response *http.Response) (err error) {
				outcomes, err = t.outcomesIn(ctx, response, runs)
				return err
			}})
	}()
	if err != nil || outcomes == nil {
		return slices.Repeat([]error{err}, len(runs))
	}
	return outcomes
}

func isEncrypted(run *eventqueue.Run) bool { return run.Encrypted }

func (t *Target) cloudEvents(runs []*eventqueue.Run) []*cloudevent.Event {
	events := make([]*cloudevent.Event, len(runs))
	for i, run := range runs {
		trace := propagation.MapCarrier{}
		if parent := run.Attributes[attributes.Traceparent]; parent != "" {
			trace[attributes.Traceparent] = parent
		}
		events[i] = cloudEvent(&run.Event, trace)
		if t.byEvent {
			events[i].SetType(run.Modifier)
		}
	}
	return events
}

// outcome is what a 207 answer has of an event.
type outcome struct {
	Status  int    `json:"status"`
	Message string `json:"message"`
}

// outcomesIn reads a 2xx answer: all are completed, but for those that a 207 names.
func (t *Target) outcomesIn(ctx context.Context, response *http.Response, runs []*eventqueue.Run) ([]error, error) {
	if response.StatusCode != http.StatusMultiStatus {
		drainBody(response)
		return nil, nil
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxOutcomesBytes+1))
	if err != nil {
		return nil, t.noAnswer(ctx, slices.ContainsFunc(runs, isEncrypted), err)
	}
	unclear := func(problem string) ([]error, error) {
		return nil, fmt.Errorf("POST %s: %s, but it does not say how the events have ended: %s", t.to, response.Status, problem)
	}
	var outcomes map[string]outcome
	if len(text) > maxOutcomesBytes || json.Unmarshal(text, &outcomes) != nil {
		return unclear(fmt.Sprintf(`its body is not like {"%s": {"status": 422, "message": "why"}}, of %d bytes at most`, runs[0].ID, maxOutcomesBytes))
	}
	errs, received := make([]error, len(runs)), time.Now()
	for i, run := range runs {
		o, has := outcomes[run.ID.String()]
		delete(outcomes, run.ID.String())
		if !has {
			continue
		}
		if o.Status < 100 || o.Status > 999 {
			return unclear(fmt.Sprintf("the status of event %s is %d", run.ID, o.Status))
		}
		excerpt := t.credentials.redact(shortened(printable([]byte(o.Message))), response.Request.Header)
		if run.Encrypted && excerpt != "" {
			excerpt = concealed
		}
		if err := verdictOnEvent(answer{status: o.Status, header: response.Header, excerpt: excerpt, received: received}); err != nil {
			errs[i] = fmt.Errorf("POST %s: %w", t.to, err)
		}
	}
	if len(outcomes) > 0 {
		return unclear(fmt.Sprintf("it has %d ids of events that were not sent", len(outcomes)))
	}
	return errs, nil
}

// shortened is the beginning of a text, as in an error.
func shortened(s string) string {
	if len(s) <= excerptBytes {
		return s
	}
	return string(wholeRunes([]byte(s[:excerptBytes]))) + cutOff
}
