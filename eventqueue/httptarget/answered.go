package httptarget

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"slices"

	"eventsv2/eventqueue"
	"eventsv2/internal/attributes"
	"eventsv2/internal/handlingkey"
	"eventsv2/internal/yamlfile"
)

const (
	// MaxAnswerBytes is the size of the largest answer whose events are emitted.
	MaxAnswerBytes = 512 << 10
	// MaxAnswerEvents is how many events an answer may have.
	MaxAnswerEvents = 100
)

// Answers is what becomes of the bodies of 2xx answers.
type Answers string

const (
	// IgnoreAnswers has the status decide alone.
	IgnoreAnswers Answers = ""
	// EmitAnswers has the CloudEvents in an answer emitted, in the transaction that completes the event: structured
	// JSON of one (application/cloudevents+json) or several (application/cloudevents-batch+json). An answer
	// without a body emits nothing, and any other is a failed attempt.
	EmitAnswers Answers = "cloudevents"
	// RetainAnswers makes an answer the result of the event (docs/results.md): JSON of at most 64 KiB. An
	// answer without a body is no result, and any other is a failed attempt.
	RetainAnswers Answers = "result"
)

// severalEvents is the type of a list of CloudEvents.
const severalEvents = "application/cloudevents-batch+json"

// keep makes a 2xx answer of its target the result of a run.
func (t *Target) keep(ctx context.Context, run *eventqueue.Run, response *http.Response) error {
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, MaxAnswerBytes+1))
	switch {
	case err != nil:
		return t.noAnswer(ctx, run.Encrypted, err)
	case len(body) > MaxAnswerBytes: // the run keeps less
		err = fmt.Errorf("it has more than %d bytes", MaxAnswerBytes)
	case len(bytes.TrimSpace(body)) == 0:
		return nil
	case !json.Valid(body):
		err = errors.New("it is no JSON")
	default:
		err = run.SetResult(json.RawMessage(body))
	}
	if err != nil {
		return fmt.Errorf("POST %s: %s, but the answer cannot be kept as the result: %w", t.to, response.Status, err)
	}
	return nil
}

// emit completes the event of a run together with the events in the 2xx answer of its target.
func (t *Target) emit(ctx context.Context, run *eventqueue.Run, sent http.Header, response *http.Response) error {
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, MaxAnswerBytes+1))
	if err != nil {
		return t.noAnswer(ctx, run.Encrypted, err)
	}
	events, err := eventsIn(response.Header.Get("Content-Type"), body, run.Canvas)
	if err == nil && len(events) == 0 {
		return nil
	}
	malformed := err != nil
	if !malformed {
		err = run.CompleteTx(ctx, func(ctx context.Context, tx *eventqueue.Tx) error {
			_, err := tx.Emit(ctx, events...)
			return err
		})
	}
	switch {
	case err == nil:
		return nil
	case malformed, errors.As(err, new(*eventqueue.InvalidError)):
		text := yamlfile.Shorten(t.credentials.redact(printable([]byte(err.Error())), sent), maxProblemBytes)
		if run.Encrypted {
			text = "why is left out, as it may repeat the value, which is encrypted"
		}
		return fmt.Errorf("POST %s: %s, but the events of the answer cannot be emitted: %s", t.to, response.Status, text)
	default:
		return fmt.Errorf("POST %s: emit the events of the answer: %w", t.to, err)
	}
}

// eventsIn reads the events of an answer. Of an answer without a body there are none.
func eventsIn(contentType string, body []byte, canvas eventqueue.CanvasID) ([]eventqueue.NewEvent, error) {
	const one, several = "application/cloudevents+json", severalEvents
	if len(body) > MaxAnswerBytes { // what was read may be blank, and the events behind it
		return nil, fmt.Errorf("it has more than %d bytes: answer with less, and have a handler of your own emit the rest", MaxAnswerBytes)
	}
	body = bytes.TrimSpace(body)
	if len(body) == 0 {
		return nil, nil
	}
	var texts []json.RawMessage
	switch media, _, err := mime.ParseMediaType(contentType); {
	case err == nil && media == one:
		texts = []json.RawMessage{body}
	case err == nil && media == several:
		if err := json.Unmarshal(body, &texts); err != nil || texts == nil {
			return nil, errors.New("it is no list in JSON")
		}
		if len(texts) > MaxAnswerEvents {
			return nil, fmt.Errorf("it has %d events: the limit is %d", len(texts), MaxAnswerEvents)
		}
	default:
		return nil, fmt.Errorf("its content type is %q: answer with %s for one event, with %s for a list, or without a body", contentType, one, several)
	}
	events := make([]eventqueue.NewEvent, len(texts))
	for i, text := range texts {
		var err error
		if events[i], err = eventIn(text, canvas); err != nil {
			return nil, fmt.Errorf("event %d: %w", i, err)
		}
	}
	return events, nil
}

// members are those of a CloudEvent in JSON.
type members map[string]json.RawMessage

// text returns a member that has to be a text; "" if it is absent or null.
func (m members) text(name string) (text string, err error) {
	if m[name] == nil {
		return "", nil
	}
	if err := json.Unmarshal(m[name], &text); err != nil {
		return "", fmt.Errorf("%s is no text", name)
	}
	return text, nil
}

// known are the members that have to be texts; those with true have to be there.
var known = map[string]bool{"specversion": true, "id": true, "source": true, "type": true, "subject": false, "time": false,
	"datacontenttype": false, "dataschema": false, "data_base64": false, "canvasid": false, "module": false, "name": false, "modifier": false, "partitionkey": false}

// eventIn reads one event: its type is a handling key, unless it has the extensions with which an event is sent.
func eventIn(text json.RawMessage, canvas eventqueue.CanvasID) (e eventqueue.NewEvent, err error) {
	var m members
	if err := json.Unmarshal(text, &m); err != nil || m == nil {
		return e, errors.New("it is no object in JSON")
	}
	of := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(known)) {
		if of[name], err = m.text(name); err != nil {
			return e, err
		}
		if known[name] && of[name] == "" {
			return e, fmt.Errorf("%s is missing", name)
		}
	}
	if of["specversion"] != "1.0" {
		return e, errors.New(`specversion is not "1.0"`)
	}
	if id := of["canvasid"]; id != "" {
		if on, err := eventqueue.ParseCanvasID(id); err != nil || on != canvas {
			return e, errors.New("canvasid is another canvas: an answer emits events on the canvas of its event, so leave it out")
		}
	}
	module, name := handlingkey.Split(of["type"])
	e = eventqueue.NewEvent{Canvas: canvas, Module: cmp.Or(of["module"], module), Name: cmp.Or(of["name"], name),
		Modifier: cmp.Or(of["modifier"], handlingkey.None), OrderingKey: of["partitionkey"]}
	if e.Value, err = m.value(); err != nil {
		return e, err
	}
	e.Attributes, err = m.attributes()
	return e, err
}

// has reports whether a member is there: in CloudEvents null is the same as none.
func (m members) has(name string) bool { return m[name] != nil && string(m[name]) != "null" }

// value returns the value of the event: its data as it stands there, and null if it has none.
func (m members) value() (json.RawMessage, error) {
	switch {
	case m.has("data_base64") && m.has("data"):
		return nil, errors.New("it has both data and data_base64")
	case m.has("data_base64"):
		text, err := m.text("data_base64")
		if err != nil {
			return nil, err
		}
		decoded, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return nil, errors.New("data_base64 is not base64")
		}
		if len(decoded) == 0 {
			return nil, errors.New("data_base64 is empty, and a value is JSON: leave it out for null")
		}
		return decoded, nil
	case m.has("data"):
		return m["data"], nil
	default:
		return json.RawMessage("null"), nil
	}
}

// ofWorker are the extensions that the worker alone sets, so that a target which repeats them says nothing: a replay in both ways of writing it.
var ofWorker = map[string]bool{"parentid": true, "retries": true, attributes.ReplayedFrom: true, "replayedfrom": true}

// attributes returns the extensions that mean nothing to the queue.
func (m members) attributes() (all map[string]string, err error) {
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if _, is := known[name]; is || name == "data" || ofWorker[name] {
			continue
		}
		var value any
		decoder := json.NewDecoder(bytes.NewReader(m[name]))
		decoder.UseNumber()
		if err := decoder.Decode(&value); err != nil {
			return nil, fmt.Errorf("the extension %s is not JSON", name)
		}
		if value == nil {
			continue
		}
		switch value.(type) {
		case string, bool, json.Number:
		default:
			return nil, fmt.Errorf("the extension %s is a list or an object: it has to be a text, a number or a truth value", name)
		}
		if all == nil {
			all = map[string]string{}
		}
		all[name] = fmt.Sprint(value)
	}
	return all, nil
}
