package httptarget

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	cloudevent "github.com/cloudevents/sdk-go/v2/event"
	"go.opentelemetry.io/otel/propagation"

	"eventsv2/eventqueue"
	"eventsv2/internal/attributes"
)

const (
	// maxRequestBytes is how long the body of a request with several events may be, unless one event alone is longer.
	maxRequestBytes = 4 << 20
	// maxOutcomesBytes is the size of the largest 207 answer that is read.
	maxOutcomesBytes = 1 << 20
)

// together are runs of one request, with the text of the event of each.
type together struct {
	runs  []*eventqueue.Run
	texts [][]byte
	bytes int
}

// HandleBatch POSTs the events of several runs together, as application/cloudevents-batch+json, and returns the error of each, as Handle
// does. The status of the answer counts for all of them, but for two cases. If the request is at fault (400, 413, 422, 500 and others
// that do not mean that the target is away), one of the events may be: all become suspects, use no attempt, and are sent again, each
// alone. And the body of a 207 has those that are not completed:
//
//	{"17": {"status": 422, "message": "no such page"}}
//
// The status of each is one that the target could have answered to it alone, and an event that is not there is completed. Events that
// are large together are sent in several requests at once, and one whose value is no JSON alone, as Handle does.
func (t *Target) HandleBatch(ctx context.Context, runs []*eventqueue.Run) []error {
	errs := make([]error, len(runs))
	if t.answers != IgnoreAnswers {
		err := eventqueue.Permanent(fmt.Errorf("POST %s: answers of the kind %s are to one event: send no batches, or ignore the answers", t.to, t.answers))
		return slices.Repeat([]error{err}, len(runs))
	}
	at := make(map[*eventqueue.Run]int, len(runs))
	var requests []*together
	var all sync.WaitGroup
	for i, run := range runs {
		at[run] = i
		text, err := t.cloudEventIn(run).MarshalJSON()
		if err != nil || !json.Valid(text) { // its value is none, as SQL may write it
			all.Go(func() { errs[i] = t.Handle(ctx, run) })
			continue
		}
		if last := len(requests) - 1; last < 0 || requests[last].bytes+len(text) > maxRequestBytes {
			requests = append(requests, &together{})
		}
		r := requests[len(requests)-1]
		r.runs, r.texts, r.bytes = append(r.runs, run), append(r.texts, text), r.bytes+len(text)
	}
	for _, r := range requests {
		all.Go(func() {
			for i, err := range t.post(ctx, r) {
				errs[at[r.runs[i]]] = err
			}
		})
	}
	all.Wait()
	return errs
}

// cloudEventIn is the event of a run as a part of a request.
func (t *Target) cloudEventIn(run *eventqueue.Run) *cloudevent.Event {
	trace := propagation.MapCarrier{}
	if parent := run.Attributes[attributes.Traceparent]; parent != "" {
		trace[attributes.Traceparent] = parent
	}
	event := cloudEvent(&run.Event, trace)
	if t.byEvent {
		event.SetType(run.Modifier)
	}
	return event
}

// id is that of the request, by which it is signed: another one when it has other events, or is another attempt of one of them.
func (r *together) id() string {
	if len(r.runs) == 1 {
		return r.runs[0].ID.String()
	}
	sum := sha256.New()
	for _, run := range r.runs {
		_, _ = fmt.Fprintf(sum, "%s.%d,", run.ID, run.Retries) // a hash has no errors
	}
	return "batch_" + hex.EncodeToString(sum.Sum(nil)[:16])
}

func (r *together) encrypted() bool {
	return slices.ContainsFunc(r.runs, func(run *eventqueue.Run) bool { return run.Encrypted })
}

// mixed reports whether the events are of several canvases, of which none may read what is of another.
func (r *together) mixed() bool {
	return slices.ContainsFunc(r.runs, func(run *eventqueue.Run) bool { return run.Canvas != r.runs[0].Canvas })
}

// post sends one request, and returns the error of each of its runs.
func (t *Target) post(ctx context.Context, r *together) []error {
	outcomes := make([]error, len(r.runs))
	body := slices.Concat([]byte("["), bytes.Join(r.texts, []byte(",")), []byte("]"))
	sending, cancel := context.WithCancel(ctx)
	defer cancel()
	request, err := http.NewRequestWithContext(sending, http.MethodPost, t.to.url.String(), bytes.NewReader(body))
	if err == nil {
		request.Header.Set("User-Agent", userAgent)
		request.Header.Set("Content-Type", severalEvents+"; charset=UTF-8")
		err = t.send(ctx, cancel, request, sent{id: r.id(), body: body, encrypted: r.encrypted(), mixed: r.mixed(), together: len(r.runs) > 1,
			answered: func(response *http.Response) (err error) {
				outcomes, err = t.outcomesIn(ctx, response, r)
				return err
			}})
	}
	if err != nil {
		return slices.Repeat([]error{err}, len(r.runs))
	}
	return outcomes
}

// outcome is what a 207 answer has of an event.
type outcome struct {
	Status  int    `json:"status"`
	Message string `json:"message"`
}

// outcomesIn reads a 2xx answer, and returns the error of each run: all are completed, but for those that a 207 names.
func (t *Target) outcomesIn(ctx context.Context, response *http.Response, r *together) ([]error, error) {
	errs := make([]error, len(r.runs))
	if response.StatusCode != http.StatusMultiStatus {
		drainBody(response)
		return errs, nil
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxOutcomesBytes+1))
	if err != nil {
		return nil, t.noAnswer(ctx, r.encrypted(), err)
	}
	unclear := func(problem string) ([]error, error) {
		return nil, fmt.Errorf("POST %s: %s, but it does not say how the events have ended: %s", t.to, response.Status, problem)
	}
	outcomes, err := parseOutcomes(text)
	if err != nil {
		return unclear(fmt.Sprintf(`its body is not like {"%s": {"status": 422, "message": "why"}}, of %d bytes at most, with each id once`, r.runs[0].ID, maxOutcomesBytes))
	}
	received := time.Now()
	for i, run := range r.runs {
		o, has := outcomes[run.ID.String()]
		delete(outcomes, run.ID.String())
		switch {
		case !has:
			continue
		case o.Status < 100 || o.Status > 999:
			return unclear(fmt.Sprintf("the status of event %s is %d", run.ID, o.Status))
		}
		excerpt := shortened(t.credentials.redact(printable([]byte(o.Message)), response.Request.Header))
		if r.encrypted() && excerpt != "" {
			excerpt = concealed
		}
		// The target is there, whatever it says of an event.
		if err := verdictOnEvent(answer{status: o.Status, header: response.Header, excerpt: excerpt, received: received}); err != nil {
			errs[i] = fmt.Errorf("POST %s: %w", t.to, err)
		}
	}
	if len(outcomes) > 0 {
		return unclear(fmt.Sprintf("it has %d ids of events that were not sent", len(outcomes)))
	}
	return errs, nil
}

// parseOutcomes reads the body of a 207 answer: one object, in which no id is there twice.
func parseOutcomes(text []byte) (map[string]outcome, error) {
	errForm := errors.New("another form")
	if len(text) > maxOutcomesBytes {
		return nil, errForm
	}
	d := json.NewDecoder(bytes.NewReader(text))
	if begin, err := d.Token(); err != nil || begin != json.Delim('{') {
		return nil, errForm
	}
	outcomes := map[string]outcome{}
	for d.More() {
		key, err := d.Token()
		id, is := key.(string)
		var o *outcome
		if _, twice := outcomes[id]; err != nil || !is || twice || d.Decode(&o) != nil || o == nil {
			return nil, errForm
		}
		outcomes[id] = *o
	}
	if _, err := d.Token(); err != nil {
		return nil, errForm
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errForm
	}
	return outcomes, nil
}

// shortened is the beginning of a text, as in an error.
func shortened(s string) string {
	if len(s) <= excerptBytes {
		return s
	}
	return string(wholeRunes([]byte(s[:excerptBytes]))) + cutOff
}

// togetherError is the error of the runs of a request that was refused: one of their events may be at fault. What the refusal means for an
// event is what it means for it alone, so the error is not wrapped.
type togetherError struct{ error }

// Lost makes the event a suspect; see docs/guarantees.md.
func (togetherError) Lost() bool { return true }

// blamesRequest reports whether a status says that something is wrong with what was sent, and not that the target is away.
func blamesRequest(status int) bool {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusRequestTimeout, http.StatusTooManyRequests,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return false
	default:
		return status >= 400
	}
}
