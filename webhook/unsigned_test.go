package webhook_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"eventsv2/eventqueue"
	"eventsv2/webhook"
)

// byHeader is a caster that makes another event of each Content-Type and type.
func byHeader(_ context.Context, r *webhook.Request) ([]eventqueue.NewEvent, error) {
	return []eventqueue.NewEvent{{Module: "M", Name: "n", Modifier: "_", Value: fmt.Appendf(nil, "%q", r.Type)}}, nil
}

// TestUnsignedHeadersMakeNoSecondEvent: a recorded request is sent again, with every
// header that its signature does not cover changed, added or taken away.
func TestUnsignedHeadersMakeNoSecondEvent(t *testing.T) {
	t.Parallel()
	unsigned := func(signed ...string) []string {
		var names []string
		for _, name := range []string{"Content-Type", "User-Agent", "X-GitHub-Delivery", "X-GitHub-Event", "X-Gitlab-Event", "Idempotency-Key",
			"X-Slack-Retry-Num", "X-Id", "X-Type"} {
			if !strings.Contains(strings.Join(signed, " "), name) {
				names = append(names, name)
			}
		}
		return names
	}
	all := schemes()
	loose := func(timestamp bool) scheme {
		s := scheme{name: "hmac with an id that is not signed", secrets: [2]string{"one", "two"}}
		config := webhook.HMAC{Header: "X-Sig", IDHeader: "X-Id", TypeHeader: "X-Type"}
		if timestamp {
			config.Signed, config.TimestampHeader = "{timestamp}.{body}", "X-Time"
		}
		s.make = func(secrets ...string) (webhook.Verifier, error) {
			config.Secrets = secrets
			return webhook.NewHMAC(config)
		}
		s.sign = func(body []byte, secret, time, id string) http.Header {
			if !timestamp {
				return headers("X-Id", id, "X-Type", "t", "X-Sig", hexSum(secret, string(body)))
			}
			return headers("X-Id", id, "X-Type", "t", "X-Time", time, "X-Sig", hexSum(secret, time, ".", string(body)))
		}
		return s
	}
	all = append(all, loose(true), loose(false))
	for _, s := range all {
		if s.unsigned {
			continue // whoever has recorded it has the token
		}
		verifier, err := s.make(s.secrets[0])
		if err != nil {
			t.Fatal(err)
		}
		for _, body := range [][]byte{s.body("id", []byte(`{"a": 1}`)), []byte("command=%2Fx&text=y")} {
			if s.name == "stripe" && body[0] != ' ' && body[0] != '{' {
				continue // it sends no forms
			}
			r := newRig(t, webhook.Config{Sources: []webhook.Source{{Name: "hook", Verifier: verifier, Cast: byHeader}}})
			genuine := s.sign(body, s.secrets[0], at(0), "id")
			signedHeaders := map[string][]string{"hmac": {"X-Id"}}[s.name]
			if answer := r.post(genuine, body); answer.Code != http.StatusOK || len(r.events()) != 1 {
				t.Fatalf("%s: %d, %d events, %v", s.name, answer.Code, len(r.events()), r.reasons())
			}
			for _, name := range unsigned(signedHeaders...) {
				for _, value := range []string{"application/x-www-form-urlencoded", "application/json", "text/plain; x", "1", ""} {
					again := genuine.Clone()
					if again.Del(name); value != "" {
						again.Set(name, value)
					}
					_ = r.post(again, body) // refused or not
					if n := len(r.events()); n != 1 {
						t.Fatalf("%s: the same signed bytes with %s %q: %d events", s.name, name, value, n)
					}
				}
			}
		}
	}
}

// TestSlackIsParsedFromSignedContent: the same bytes mean the same, whatever their
// Content-Type.
func TestSlackIsParsedFromSignedContent(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"type": "event_callback", "event_id": "E", "event": {"type": "message"}}`: `"message"`,
		"command=%2Fx&text=y": `""`,
	} {
		for _, kind := range []string{"application/json", "application/x-www-form-urlencoded", "", "nonsense; ;"} {
			verifier, err := webhook.Slack("first")
			if err != nil {
				t.Fatal(err)
			}
			r := newRig(t, webhook.Config{Sources: []webhook.Source{{Name: "hook", Verifier: verifier, Cast: byHeader}}})
			r.post(headers("Content-Type", kind, "X-Slack-Request-Timestamp", at(0), "X-Slack-Signature", "v0="+hexSum("first", "v0:", at(0), ":", body)), []byte(body))
			if events := r.events(); len(events) != 1 || events[0].Value != want {
				t.Errorf("%s as %q: %v, %v", body, kind, events, r.reasons())
			}
		}
	}
}

// TestTrustedIDIsUsed: with TrustUnsignedID, an id that is not signed identifies repeats.
func TestTrustedIDIsUsed(t *testing.T) {
	t.Parallel()
	config := webhook.GitHubHMAC("first")
	config.TrustUnsignedID = true
	verifier, err := webhook.NewHMAC(config)
	r := of(t, verifier, err)
	for i := range 3 {
		r.accepts("another id", headers("X-Hub-Signature-256", "sha256="+hexSum("first", "{}"), "X-GitHub-Event", "push", "X-GitHub-Delivery", fmt.Sprint(i)), []byte(`{}`))
	}
}

func TestEventTypeIsReadFromTheBody(t *testing.T) {
	t.Parallel()
	github, err := webhook.GitHub("first")
	if err != nil {
		t.Fatal(err)
	}
	verifier, err := webhook.TypeFromBody(github, "kind", "event.type", "comment", "pull_request", "issue")
	if err != nil {
		t.Fatal(err)
	}
	for body, want := range map[string]string{
		`{"kind": "push", "event": {"type": "other"}}`: "push",
		`{"kind": null, "event": {"type": "other"}}`:   "other",
		`{"issue": {}, "comment": {}}`:                 "comment",
		`{"issue": 17}`:                                "issue",
		`{"Issue": 17, "event": "type"}`:               "",
		`{"kind": ""}`:                                 "",
		`["kind"]`:                                     "",
		`no JSON`:                                      "",
		``:                                             "",
	} {
		verified, err := verifier.Verify(&webhook.Request{Body: []byte(body), Header: headers(
			"X-Hub-Signature-256", "sha256="+hexSum("first", body), "X-GitHub-Event", "forged", "X-GitHub-Delivery", "1")})
		if err != nil || verified.Type != want {
			t.Errorf("%s: %q, %v, want %q", body, verified.Type, err, want)
		}
	}
	if _, err := verifier.Verify(&webhook.Request{Body: []byte(`{}`)}); err == nil {
		t.Error("a request without a signature is genuine")
	}
	for _, fields := range [][]string{nil, {""}, {"a..b"}, {"a", "b."}} {
		if _, err := webhook.TypeFromBody(github, fields...); err == nil {
			t.Errorf("the fields %q are no error", fields)
		}
	}
	if _, err := webhook.TypeFromBody(nil, "a"); err == nil {
		t.Error("no verifier is no error")
	}
}
