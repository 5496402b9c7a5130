package webhook_test

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"eventsv2/webhook"
)

// TestDifferentRequestsNeverShareASignedText: of every template of up to four parts, either it
// is refused, or no two requests that are genuine have the same text signed. All
// requests of a few ids, times and bodies are tried that could be taken for each other.
func TestDifferentRequestsNeverShareASignedText(t *testing.T) {
	t.Parallel()
	ids := []string{"a", "1", "a1", "1a", "11", "aa", "a.a", ".", "a.", "1:", at(0), at(0) + "a", "a" + at(0)}
	times := []string{at(0), at(1), at(-7)}
	var bodies []string
	for _, begin := range []string{"", "a", "1", ".", ":", at(0)} {
		for _, end := range []string{"", "a", "1", ".", ".a", ":1", "a.", at(0), at(1) + "."} {
			if !slices.Contains(bodies, begin+end) {
				bodies = append(bodies, begin+end)
			}
		}
	}
	taken, refused := 0, 0
	for _, template := range templates(4) {
		taker := webhook.HMAC{Secrets: []string{"s"}, Header: "X-Sig", Signed: template}
		if strings.Contains(template, "{id}") {
			taker.IDHeader = "X-Id"
		}
		if strings.Contains(template, "{timestamp}") {
			taker.TimestampHeader = "X-Time"
		}
		verifier, err := webhook.NewHMAC(taker)
		if err != nil {
			refused++
			continue
		}
		taken++
		alike(t, template, verifier, choice(taker.IDHeader, ids), choice(taker.TimestampHeader, times), bodies)
	}
	// Neither half may be empty by mistake.
	if taken < 100 || refused < 100 {
		t.Errorf("%d templates are taken and %d refused", taken, refused)
	}
}

// choice returns the values to try for a header: only the empty one if no header is named.
func choice(header string, values []string) []string {
	if header == "" {
		return []string{""}
	}
	return values
}

// parts are the parts of a request in a template.
type parts struct{ id, timestamp, body string }

// alike demands that the text of a request, signed, is no other request's proof.
func alike(t *testing.T, template string, verifier webhook.Verifier, ids, times, bodies []string) {
	t.Helper()
	requests := map[string][]parts{}
	for _, id := range ids {
		for _, timestamp := range times {
			fill := strings.NewReplacer("{id}", id, "{timestamp}", timestamp)
			before, after, _ := strings.Cut(template, "{body}")
			before, after = fill.Replace(before), fill.Replace(after)
			for _, body := range bodies {
				text := before + body + after
				requests[text] = append(requests[text], parts{id, timestamp, body})
			}
		}
	}
	for text, of := range requests {
		if len(of) == 1 {
			continue
		}
		of = slices.DeleteFunc(of, func(p parts) bool {
			_, err := verifier.Verify(&webhook.Request{Received: now, Body: []byte(p.body),
				Header: http.Header{"X-Sig": {hexSum("s", text)}, "X-Id": {p.id}, "X-Time": {p.timestamp}}})
			return err != nil
		})
		if len(of) > 1 {
			t.Errorf("%s: all of these are genuine with one signature: %q", template, of)
			return
		}
	}
}

// templates are all of up to most parts that have one body.
func templates(most int) []string {
	var all []string
	var grow func(template string, parts int)
	grow = func(template string, parts int) {
		if strings.Count(template, "{body}") == 1 {
			all = append(all, template)
		}
		if parts == most {
			return
		}
		for _, part := range []string{"{id}", "{timestamp}", "{body}", ".", "a", "1"} {
			if part != "{body}" || !strings.Contains(template, part) {
				grow(template+part, parts+1)
			}
		}
	}
	grow("", 0)
	return all
}

// TestTemplatesMatchRealSenders accepts these, and refuses similar ones.
func TestTemplatesMatchRealSenders(t *testing.T) {
	t.Parallel()
	for template, good := range map[string]bool{
		"{timestamp}.{body}": true, "v0:{timestamp}:{body}": true, "{id}.{timestamp}.{body}": true, "{body}.{timestamp}": true,
		"{body}.{id}": true, "{timestamp}{body}": true, "{id}\n{timestamp}\n{body}": true, "{body}{timestamp}": true, "{body}:{id}:{timestamp}": true,
		"{body}{id}": false, "{id}{body}": false, "{id}{timestamp}.{body}": false, "{body}{timestamp}{id}": false, "{body}a{id}": false, "{id}a{body}": false,
		"{id}.{body}{id}": false, "{id}{id}.{body}": false, "{body}.{id}{id}": false, "{body}{id}.": false, ".{id}{body}": false,
	} {
		config := webhook.HMAC{Secrets: []string{"s"}, Header: "X-Sig", Signed: template}
		if strings.Contains(template, "{id}") {
			config.IDHeader = "X-Id"
		}
		if strings.Contains(template, "{timestamp}") {
			config.TimestampHeader = "X-Time"
		}
		if _, err := webhook.NewHMAC(config); (err == nil) != good {
			t.Errorf("%s: %v", template, err)
		}
	}
}

// TestTimestampHasItsLength: a text that is signed with nothing between time and body can
// be divided in one way only, also by a clock that is wrong.
func TestTimestampHasItsLength(t *testing.T) {
	t.Parallel()
	verifier, err := webhook.NewHMAC(webhook.HMAC{Secrets: []string{"s"}, Header: "X-Sig", Signed: "{timestamp}{body}", TimestampHeader: "X-Time"})
	if err != nil {
		t.Fatal(err)
	}
	for timestamp, good := range map[string]bool{"1700000000": true, "170000000": false, "17000000001": false} {
		seconds, err := strconv.ParseInt(timestamp, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		_, err = verifier.Verify(&webhook.Request{Received: time.Unix(seconds, 0), Body: []byte("1"),
			Header: http.Header{"X-Sig": {hexSum("s", timestamp, "1")}, "X-Time": {timestamp}}})
		if (err == nil) != good {
			t.Errorf("%s: %v", timestamp, err)
		}
	}
}
