package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"eventsv2/access"
	"eventsv2/eventqueue"
	"eventsv2/eventqueue/ratelimit"
	"eventsv2/test/rig"
)

// problem is a refusal as clients read it.
type problem struct {
	Status int
	Detail string
	Errors []struct {
		Message, Location string
		Value             any
	}
}

// refusal sends a request that is refused.
func (c *client) refusal(status int, token, method, path, body string) (p problem) {
	c.t.Helper()
	code, answer := c.do(token, method, path, body)
	if err := json.Unmarshal([]byte(answer), &p); err != nil || code != status || p.Status != status {
		c.t.Errorf("%s %s %s: %d %s, want %d", method, path, body, code, answer, status)
	}
	return p
}

// TestNumbersAreRefusedWithTheirPlace, in words of the API: what is no number of JSON, has no end, or is not in the range.
func TestNumbersAreRefusedWithTheirPlace(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	all, canvas := c.token(rig.Canvas, access.Verbs()...), rig.Canvas.String()
	rate := func(n string) string { return fmt.Sprintf(`{"canvas_id":%q,"per_minute":%s}`, canvas, n) }
	waits := func(n string) string {
		return fmt.Sprintf(`{"canvas_id":%q,"module":"M","name":"n","value":1,"unique_key":"k","unique_mode":"replace","max_wait_seconds":%s}`, canvas, n)
	}
	holds := strings.NewReplacer(`"unique_mode":"replace",`, "", "max_wait_seconds", "unique_for_seconds")
	longest, above := fmt.Sprint(int(eventqueue.MaxUniqueFor.Seconds())), fmt.Sprint(int(eventqueue.MaxUniqueFor.Seconds())+1)
	history := "/history?canvas_id=" + canvas + "&older_than_seconds="
	for _, r := range []struct{ method, path, body, location, message string }{
		{"GET", history + "infinity", "", "query.older_than_seconds", "expected number"},
		{"GET", history + "-infinity", "", "query.older_than_seconds", "expected number"},
		{"GET", history + "nan", "", "query.older_than_seconds", "expected number"},
		{"GET", history + "1e400", "", "query.older_than_seconds", "expected number"},
		{"GET", history + "0x1p3", "", "query.older_than_seconds", "expected number"},
		{"GET", history + "soon", "", "query.older_than_seconds", "expected number"},
		{"GET", history + "1e10", "", "query.older_than_seconds", "expected number <= 4000000000"},
		{"GET", history + "-1", "", "query.older_than_seconds", "expected number >= 0"},
		{"PUT", "/limits/rate", rate("1e18"), "body.per_minute", fmt.Sprintf("expected number <= %d", ratelimit.MaxRate)},
		{"PUT", "/limits/rate", rate("99999999999999999999"), "body.per_minute", fmt.Sprintf("expected number <= %d", ratelimit.MaxRate)},
		{"PUT", "/limits/rate", strings.Replace(rate("1e18"), "minute", "day", 1), "body.per_day", fmt.Sprintf("expected number <= %d", ratelimit.MaxRate)},
		{"PUT", "/limits/rate", rate("1e2"), "body.per_minute", "expected integer, in digits alone"},
		{"PUT", "/limits/rate", rate("7.0"), "body.per_minute", "expected integer, in digits alone"},
		{"PUT", "/limits/rate", rate("7.5"), "body.per_minute", "expected integer"},
		{"PUT", "/limits/rate", rate("1e400"), "body.per_minute", "expected integer"},
		{"POST", "/events", waits(above), "body.max_wait_seconds", "expected number <= " + longest},
		{"POST", "/events/batch", `{"events":[` + waits(above) + `]}`, "body.events[0].max_wait_seconds", "expected number <= " + longest},
		{"POST", "/events", holds.Replace(waits(above)), "body.unique_for_seconds", "expected number <= " + longest},
	} {
		p := c.refusal(http.StatusUnprocessableEntity, all, r.method, r.path, r.body)
		if len(p.Errors) != 1 || p.Errors[0].Location != r.location || p.Errors[0].Message != r.message {
			t.Errorf("%s %s %s is refused with %+v", r.method, r.path, r.body, p)
		}
	}
	c.wants(200, `{"items":[]}`, all, "GET", history+"1.5e3", "")
	c.wants(201, `{"ids":[`, all, "POST", "/events", waits(longest))
	c.wants(201, `{"ids":[`, all, "POST", "/events", strings.Replace(holds.Replace(waits(longest)), `"k"`, `"l"`, 1))
}

// TestRefusedEventIsNamed: of a request for one event its property, and of a list the event as well.
func TestRefusedEventIsNamed(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	all := c.token(rig.Canvas, access.Verbs()...)
	event := func(more string) string {
		return fmt.Sprintf(`{"canvas_id":%q,"name":"n","value":1,%s}`, rig.Canvas, more)
	}
	for _, r := range []struct{ more, property, message string }{
		{`"module":"a\n"`, "module", `"a\n" holds the control character U+000A`},
		{`"module":"M","unique_for_seconds":1`, "unique_key", "is missing: unique_for and unique_mode go with it"},
		{`"module":"M","unique_key":"k","unique_mode":"until_start","unique_for_seconds":1`, "unique_for_seconds", "does not go with the mode until_start: leave it out, or use until_end"},
		{`"module":"M","unique_key":"k","max_wait_seconds":1`, "max_wait_seconds", "goes with the mode replace only"},
		{`"module":"M","delay_seconds":40000000`, "delay_seconds", "a delay of 11111h6m40s is more than the limit of 8784h0m0s"},
		{`"module":"M","delay_until":"2999-01-01T00:00:00Z"`, "delay_until", "2999-01-01T00:00:00Z is more than the limit of 8784h0m0s away"},
		{`"module":"M","attributes":{"A":"b"}`, "attributes", `has the key "A": a key has lower-case letters (a to z), digits, _, . and - only`},
	} {
		one := c.refusal(http.StatusUnprocessableEntity, all, "POST", "/events", event(r.more))
		list := c.refusal(http.StatusUnprocessableEntity, all, "POST", "/events/batch", `{"events":[`+event(`"module":"M"`)+`,`+event(r.more)+`]}`)
		for location, p := range map[string]problem{"body." + r.property: one, "body.events[1]." + r.property: list} {
			if len(p.Errors) != 1 || p.Errors[0].Location != location || p.Errors[0].Message != r.message {
				t.Errorf("%s at %s is refused with %+v", r.more, location, p)
			}
		}
		if want := r.property + ": " + r.message; one.Detail != want || list.Detail != "event 1: "+want {
			t.Errorf("%s is refused with %q, in a list with %q", r.more, one.Detail, list.Detail)
		}
	}
	cron := fmt.Sprintf(`{"canvas_id":%q,"name":"nightly"`, rig.Canvas)
	c.wants(200, "nightly", all, "PUT", "/crons", cron+`,"schedule":"every day"}`)
	for path, body := range map[string]string{"/events": event(`"module":"M"`), "/crons/run": cron + "}"} {
		for _, key := range []string{"a\tb", strings.Repeat("ü", 128)} {
			c.wants(422, `"location":"header.Idempotency-Key"`, all, "POST", path, body, "Idempotency-Key", key)
		}
	}
	if n := rig.One[int](c.Rig, `SELECT count(*) FROM events_v2`); n != 0 {
		t.Errorf("%d events were emitted", n)
	}
}

// TestPathsAreNotCorrected: a path with a double slash is none, and is not redirected to another one.
func TestPathsAreNotCorrected(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	all := c.token(rig.Canvas, access.Verbs()...)
	for _, path := range []string{"//events", "/events//1", "/events/", "/events/../crons", "/./events"} {
		for _, method := range []string{"GET", "POST", "DELETE"} {
			w := c.send(all, method, path, "")
			if w.Code != http.StatusNotFound || w.Header().Get("Content-Type") != "application/problem+json" || !strings.Contains(w.Body.String(), "there is no such path") {
				t.Errorf("%s %s: %d %s", method, path, w.Code, w.Body)
			}
		}
	}
}
