package httptarget

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"eventsv2/eventqueue"
)

const (
	structured = "application/cloudevents+json; charset=utf-8"
	several    = "application/cloudevents-batch+json"
)

// of returns a CloudEvent in JSON, with further members.
func of(members string) string {
	return `{"specversion": "1.0", "id": "1", "source": "/shop", "type": "order.shipped"` + members + `}`
}

func TestAnswersHoldEvents(t *testing.T) {
	t.Parallel()
	canvas := testRun().Canvas
	shipped := func(change func(e *eventqueue.NewEvent)) eventqueue.NewEvent {
		e := eventqueue.NewEvent{Canvas: canvas, Module: "order", Name: "shipped", Modifier: "_", Value: json.RawMessage("null")}
		change(&e)
		return e
	}
	plain := shipped(func(*eventqueue.NewEvent) {})
	for _, c := range []struct {
		name, contentType, body string
		want                    []eventqueue.NewEvent
	}{
		{"nothing", "text/plain", " \r\n", nil},
		{"one", structured, of(``), []eventqueue.NewEvent{plain}},
		{"an empty list", several, `[]`, []eventqueue.NewEvent{}},
		{"two", several, `[` + of(``) + `, ` + of(`, "data": {"n": 1.0,  "s":"ü"}`) + `]`,
			[]eventqueue.NewEvent{plain, shipped(func(e *eventqueue.NewEvent) { e.Value = json.RawMessage(`{"n": 1.0,  "s":"ü"}`) })}},
		{"everything", structured, of(`, "subject": "a", "time": "2024-02-29T12:00:00Z", "datacontenttype": "application/json", "dataschema": "/s",
			"canvasid": "` + strings.ToUpper(canvas.String()) + `", "modifier": "eu", "partitionkey": "order 17", "parentid": "5", "retries": 2, "data": null,
			"replayed_from": 7, "replayedfrom": "7",
			"user": "ada", "n": 1.50, "vip": true, "nothing": null`), []eventqueue.NewEvent{shipped(func(e *eventqueue.NewEvent) {
			e.Modifier, e.OrderingKey, e.Attributes = "eu", "order 17", map[string]string{"user": "ada", "n": "1.50", "vip": "true"}
		})}},
		{"a handler in three parts", structured, of(`, "module": "WORKER", "name": "ship.it", "modifier": "eu"`), []eventqueue.NewEvent{shipped(func(e *eventqueue.NewEvent) {
			e.Module, e.Name, e.Modifier = "WORKER", "ship.it", "eu"
		})}},
		{"bytes", structured, of(`, "data": null, "data_base64": "eyJuIjogMX0="`), []eventqueue.NewEvent{shipped(func(e *eventqueue.NewEvent) { e.Value = json.RawMessage(`{"n": 1}`) })}},
		{"no bytes", structured, of(`, "data": 1, "data_base64": null`), []eventqueue.NewEvent{shipped(func(e *eventqueue.NewEvent) { e.Value = json.RawMessage(`1`) })}},
	} {
		if got, err := eventsIn(c.contentType, []byte(c.body), canvas); err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %+v, %v, want %+v", c.name, got, err, c.want)
		}
	}
}

// malformedAnswers are bodies of answers by what is said of them, with their content types.
var malformedAnswers = map[string][2]string{
	`its content type is "text/html": answer with application/cloudevents+json for one event`: {"text/html", "<p>thanks"},
	`its content type is "": answer with`:                                                     {"", of(``)},
	`its content type is "application/json": answer with`:                                     {"application/json", of(``)},
	`it is no list in JSON`:                                                                   {several, of(``)},
	`it has 101 events: the limit is 100`:                                                     {several, `[` + strings.Repeat(of(``)+",", 100) + of(``) + `]`},
	`it has more than 524288 bytes: answer with less`:                                         {structured, of(`, "data": "` + strings.Repeat("x", MaxAnswerBytes) + `"`)},
	`it has more than 524288 bytes: answer`:                                                   {structured, strings.Repeat(" ", MaxAnswerBytes+1) + of(``)},
	`event 0: canvasid is another canvas`:                                                     {structured, of(`, "canvasid": "here"`)},
	`event 0: data_base64 is empty, and a value is JSON`:                                      {structured, of(`, "data_base64": ""`)},
	`event 0: it is no object in JSON`:                                                        {structured, `[` + of(``) + `]`},
	`event 1: it is no object in JSON`:                                                        {several, `[` + of(``) + `, null]`},
	`event 1: type is missing`:                                                                {several, `[` + of(``) + `, {"specversion": "1.0", "id": "1", "source": "a"}]`},
	`event 0: id is missing`:                                                                  {structured, `{"specversion": "1.0", "id": "", "source": "a", "type": "b"}`},
	`event 0: source is missing`:                                                              {structured, `{"specversion": "1.0", "id": "1", "source": null, "type": "b"}`},
	`event 0: specversion is missing`:                                                         {structured, `{"id": "1", "source": "a", "type": "b"}`},
	`event 0: specversion is not "1.0"`:                                                       {structured, `{"specversion": "0.3", "id": "1", "source": "a", "type": "b"}`},
	`event 0: subject is no text`:                                                             {structured, of(`, "subject": 5`)},
	`event 0: canvasid is another canvas: an answer emits`:                                    {structured, of(`, "canvasid": "0b9f5a3e-6b3a-4a52-9f0c-0d8b6a1f7c11"`)},
	`event 0: it has both data and data_base64`:                                               {structured, of(`, "data": 1, "data_base64": "MQ=="`)},
	`event 0: data_base64 is not base64`:                                                      {structured, of(`, "data_base64": "?"`)},
	`event 0: the extension user is a list or an object`:                                      {structured, of(`, "user": ["ada"]`)},
}

// TestMalformedAnswerIsAFailedAttempt, whose error says what is wrong.
func TestMalformedAnswerIsAFailedAttempt(t *testing.T) {
	t.Parallel()
	for want, answer := range malformedAnswers {
		target, _ := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Content-Type"] = []string{answer[0]}
			w.WriteHeader(http.StatusAccepted)
			_, _ = io.WriteString(w, answer[1])
		})
		if err := target.Handle(testContext(t), testRun()); err != nil {
			t.Errorf("%s: without the option: %v", want, err)
		}
		target.answers = EmitAnswers
		err := target.Handle(testContext(t), testRun())
		if outcomeOf(err) != retry || !strings.Contains(err.Error(), "202 Accepted, but the events of the answer cannot be emitted: "+want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// TestErrorsOfAnswersHaveNoSecret: neither one of the request, nor what the target repeats of an encrypted value.
func TestErrorsOfAnswersHaveNoSecret(t *testing.T) {
	t.Parallel()
	target := proving(t, newIDTokens(nil), func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", structured)
		_, _ = io.WriteString(w, of(`, "s3cret-key": []`))
	})
	target.answers, target.credentials.audience = EmitAnswers, ""
	run := testRun()
	err := target.Handle(testContext(t), run)
	if err == nil || strings.Contains(err.Error(), "s3cret") || !strings.Contains(err.Error(), "the extension "+redacted+" is a list") {
		t.Errorf("got %v", err)
	}
	run.Encrypted = true
	if err := target.Handle(testContext(t), run); err == nil || !strings.Contains(err.Error(), "cannot be emitted: why is left out, as it may repeat the value") || strings.Contains(err.Error(), "extension") {
		t.Errorf("of an encrypted value: %v", err)
	}
}

// TestErrorsOfAnswersHaveNoPartOfASecret, be it where the error is shortened, or within quotes.
func TestErrorsOfAnswersHaveNoPartOfASecret(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ secret, contentType, body string }{
		"in the middle of a long text": {"s3cret-" + strings.Repeat("k", 60), strings.Repeat("x", 440) + "%s" + strings.Repeat("x", 600), "{}"},
		"with a quote":                 {`s3cret"key`, "%s", "{}"},
		"with a backslash":             {`s3cret\key`, "a %s b", "{}"},
		"with a tab":                   {"s3cret\tkey", "%s", "{}"},
		"of Basic":                     {`Basic s3cret"key`, "%s", "{}"},
		"in a name":                    {`s3cret"key`, structured, of(`, "s3cret\"key": []`)},
	} {
		_, server := serve(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", strings.ReplaceAll(c.contentType, "%s", strings.TrimPrefix(r.Header.Get("X-Api-Key"), "Basic ")))
			_, _ = io.WriteString(w, c.body)
		})
		client := NewClient()
		t.Cleanup(client.CloseIdleConnections)
		target, err := New(Config{URL: server.URL, Client: client, Header: http.Header{"X-Api-Key": {c.secret}}, Answers: EmitAnswers})
		if err != nil {
			t.Fatal(err)
		}
		err = target.Handle(testContext(t), testRun())
		if err == nil || strings.Contains(err.Error(), "s3cret") || strings.Contains(err.Error(), "kkk") || strings.Contains(err.Error(), "key") || !strings.Contains(err.Error(), redacted) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestResultBehindBlanksIsNotLost: of an answer whose beginning is blank, not all may have been read.
func TestResultBehindBlanksIsNotLost(t *testing.T) {
	t.Parallel()
	target, _ := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, strings.Repeat(" ", MaxAnswerBytes+1)+"1")
	})
	target.answers = RetainAnswers
	if err := target.Handle(testContext(t), testRun()); outcomeOf(err) != retry || !strings.Contains(err.Error(), "it has more than 524288 bytes") {
		t.Errorf("got %v", err)
	}
}

// TestUnknownAnswersAreRefused: events would be lost without a word.
func TestUnknownAnswersAreRefused(t *testing.T) {
	t.Parallel()
	if _, err := New(Config{URL: "http://example.com", Answers: "cloudevent"}); err == nil || !strings.Contains(err.Error(), `httptarget.New: Answers is "cloudevent": it is IgnoreAnswers, EmitAnswers or RetainAnswers`) {
		t.Errorf("got %v", err)
	}
	for _, answers := range []Answers{IgnoreAnswers, EmitAnswers, RetainAnswers} {
		if _, err := New(Config{URL: "http://example.com", Answers: answers}); err != nil {
			t.Errorf("%q: %v", answers, err)
		}
	}
}

// TestAnswerThatBreaksOffIsNone: a part of its events must not be emitted.
func TestAnswerThatBreaksOffIsNone(t *testing.T) {
	t.Parallel()
	target, _ := serve(t, hijack("HTTP/1.1 200 OK\r\nContent-Type: "+several+"\r\nContent-Length: 1000\r\n\r\n[]", func(net.Conn) {}))
	target.answers = EmitAnswers
	if err := target.Handle(testContext(t), testRun()); outcomeOf(err) != retry || !strings.Contains(err.Error(), "no answer: unexpected EOF") {
		t.Errorf("got %v", err)
	}
}

// TestGiantAnswerIsNotRead to its end.
func TestGiantAnswerIsNotRead(t *testing.T) {
	t.Parallel()
	ended := make(chan struct{})
	target, _ := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		defer close(ended)
		w.Header().Set("Content-Type", structured)
		for chunk := bytes.Repeat([]byte("x"), 64<<10); ; {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	})
	target.answers = EmitAnswers
	if err := target.Handle(testContext(t), testRun()); outcomeOf(err) != retry || !strings.Contains(err.Error(), "it has more than 524288 bytes") {
		t.Errorf("got %v", err)
	}
	await(t, "the end of the giant answer", ended)
}

// TestOnlyAnswersOfSuccessAreRead: those of failures mean what they mean without the option.
func TestOnlyAnswersOfSuccessAreRead(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]string{400: permanent, 500: retry} {
		target, _ := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", structured)
			w.WriteHeader(status)
			_, _ = io.WriteString(w, "no order")
		})
		target.answers = EmitAnswers
		if err := target.Handle(testContext(t), testRun()); outcomeOf(err) != want || !strings.Contains(err.Error(), ": no order") {
			t.Errorf("%d: got %v", status, err)
		}
	}
}

// FuzzAnswer: no body makes it panic, and what is read has all that an event needs.
func FuzzAnswer(f *testing.F) {
	canvas := testRun().Canvas
	for _, answer := range malformedAnswers {
		if len(answer[1]) < 1<<12 {
			f.Add(answer[1])
		}
	}
	f.Add(of(`, "data": 1`))
	f.Fuzz(func(t *testing.T, text string) {
		for _, contentType := range []string{structured, several} {
			events, err := eventsIn(contentType, []byte(text), canvas)
			if err != nil && events != nil {
				t.Fatalf("%v, and %d events", err, len(events))
			}
			for _, e := range events {
				if e.Canvas != canvas || e.Modifier == "" || e.Value == nil {
					t.Fatalf("got %+v", e)
				}
			}
		}
	})
}
