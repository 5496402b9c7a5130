package webhook_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"eventsv2/webhook"
)

// TestSignedRequestsOfEachSchemeBecomeEvents: signed with either of two secrets, real bodies among
// them, they are emitted byte for byte; the same JSON in other bytes is refused.
func TestSignedRequestsOfEachSchemeBecomeEvents(t *testing.T) {
	t.Parallel()
	all := bodies(t)
	for _, s := range schemes() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			verifier, err := s.make(s.secrets[:]...)
			r := of(t, verifier, err)
			seen := map[string]bool{}
			for i, data := range all {
				id := fmt.Sprintf("id-%d", i)
				body := s.body(id, data)
				if seen[string(body)] && s.name == "github" {
					continue // nothing that is signed distinguishes the two
				}
				seen[string(body)] = true
				header := s.sign(body, s.secrets[i%2], at(int64(i%601)-300), id)
				if !s.unsigned {
					r.refuses("re-serialised", http.StatusUnauthorized, header, reserialised(t, body))
					r.refuses("cut short", http.StatusUnauthorized, header, body[:len(body)-1])
				}
				r.accepts(id, header, body)
			}
		})
	}
}

// TestForgeriesAreRefused, whatever is wrong with the proof.
func TestForgeriesAreRefused(t *testing.T) {
	t.Parallel()
	for _, s := range schemes() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			verifier, err := s.make(s.secrets[0])
			r := of(t, verifier, err)
			body := s.body("id", []byte(`{"a": 1}`))
			good := s.sign(body, s.secrets[0], at(0), "id")
			value := good.Get(s.signature)
			refuses := func(what string, change func(h http.Header)) {
				t.Helper()
				h := good.Clone()
				change(h)
				r.refuses(what, http.StatusUnauthorized, h, body)
			}
			set := func(to string) func(http.Header) { return func(h http.Header) { h.Set(s.signature, to) } }
			refuses("missing", func(h http.Header) { h.Del(s.signature) })
			refuses("empty", set(""))
			refuses("only the prefix", set(s.prefix))
			refuses("doubled", func(h http.Header) { h.Add(s.signature, value) })
			refuses("doubled, with another first", func(h http.Header) { h[http.CanonicalHeaderKey(s.signature)] = []string{"x", value} })
			refuses("the name in capitals", set(strings.ToUpper(s.prefix)+"X"+strings.TrimPrefix(value, s.prefix)))
			refuses("10,000 signatures", set(strings.Repeat(value+" ", 10_000)+value))
			refuses("10,000 signatures with commas", set(strings.Repeat(value+",", 10_000)+value))
			refuses("not in the encoding", set(s.prefix+"%%%"))
			refuses("a signature of nothing", set(s.prefix+"00"))
			r.refuses("another secret", http.StatusUnauthorized, s.sign(body, s.secrets[1], at(0), "id"), body)
			for name := range maps.Keys(good) {
				if name != "Content-Type" && (name != "X-Gitlab-Event" || s.name != "standard") {
					refuses("without "+name, func(h http.Header) { h.Del(name) })
				}
			}
			if !s.unsigned {
				r.refuses("another body", http.StatusUnauthorized, good, s.body("id", []byte(`{"a": 2}`)))
				r.refuses("no body", http.StatusUnauthorized, good, nil)
			}
			if s.timed {
				for what, timestamp := range map[string]string{
					"0": "0", "-1": "-1", "2^63": "9223372036854775808", "2^63-1": "9223372036854775807", "2^64": "18446744073709551616",
					"301 s ago": at(-301), "301 s ahead": at(301), "signed": "+" + at(0), "a space": " " + at(0), "a float": at(0) + ".0", "empty": "", "hex": "0x10",
					"a zero before it": "0" + at(0), // another text, the same number
					"milliseconds":     at(0) + "000",
				} {
					r.refuses("a time of "+what, http.StatusUnauthorized, s.sign(body, s.secrets[0], timestamp, "id"), body)
				}
			}
			r.accepts("after all that, the genuine one", good, body)
		})
	}
}

// TestWrongAlgorithmIsRefused are refused although the secret is right.
func TestWrongAlgorithmIsRefused(t *testing.T) {
	t.Parallel()
	verifier, err := webhook.GitHub("first")
	r := of(t, verifier, err)
	body := []byte(`{}`)
	h := headers("X-GitHub-Delivery", "d", "X-GitHub-Event", "push", "X-Hub-Signature", "sha1=8c", "X-Hub-Signature-256", "")
	for _, value := range []string{"sha1=" + hexSum("first", "{}"), "SHA256=" + hexSum("first", "{}"), "sha512=00", hexSum("first", "{}"), "sha256=sha256=" + hexSum("first", "{}")} {
		h.Set("X-Hub-Signature-256", value)
		r.refuses(value, http.StatusUnauthorized, h, body)
	}
	// Digits in capitals are the same number.
	h.Set("X-Hub-Signature-256", "sha256="+strings.ToUpper(hexSum("first", "{}")))
	r.accepts("capitals", h, body)
}

// TestLongSignatureHeaderIsRefused although all is genuine.
func TestLongSignatureHeaderIsRefused(t *testing.T) {
	t.Parallel()
	verifier, err := webhook.GitHub("first")
	r := of(t, verifier, err)
	h := headers("X-Hub-Signature-256", "sha256="+hexSum("first", "{}"), "X-GitHub-Event", "push", "X-GitHub-Delivery", strings.Repeat("d", 4097))
	r.refuses("4,097 bytes", http.StatusUnauthorized, h, []byte(`{}`))
	h.Set("X-GitHub-Delivery", strings.Repeat("d", 4096))
	r.accepts("4,096 bytes", h, []byte(`{}`))
}

// TestOlderGitLabIsAccepted has the id of the delivery in another header.
func TestOlderGitLabIsAccepted(t *testing.T) {
	t.Parallel()
	verifier, err := webhook.GitLabToken("first")
	r := of(t, verifier, err)
	h := headers("X-Gitlab-Token", "first", "X-Gitlab-Event", "Push Hook", "X-Gitlab-Event-UUID", "17")
	r.accepts("the first", h, []byte(`1`))
	if answer := r.post(h, []byte(`1`)); answer.Code != http.StatusOK || len(r.events()) != 1 {
		t.Errorf("the same again: %d, %d events", answer.Code, len(r.events()))
	}
}

// TestOneValidSignatureOfSeveralSuffices: while a secret is being changed, a request may have several
// signatures of one version, and others of unknown versions.
func TestOneValidSignatureOfSeveralSuffices(t *testing.T) {
	t.Parallel()
	for _, s := range schemes() {
		if s.name != "standard" && s.name != "stripe" {
			continue
		}
		verifier, err := s.make(s.secrets[0])
		r := of(t, verifier, err)
		body := s.body("id", []byte(`1`))
		h := s.sign(body, s.secrets[0], at(0), "id")
		old := s.sign(body, s.secrets[1], at(0), "id").Get(s.signature)
		if s.name == "standard" {
			h.Set(s.signature, "v1a,xx "+old+" v2,zz "+h.Get(s.signature))
		} else {
			_, v1, _ := strings.Cut(old, ",")
			h.Set(s.signature, h.Get(s.signature)+","+v1)
		}
		r.accepts(s.name, h, body)
		separator, one := " ", old
		if s.name == "stripe" {
			_, one, _ = strings.Cut(old, ",")
			one, _, _ = strings.Cut(one, ",")
			separator = ","
		}
		h.Set(s.signature, h.Get(s.signature)+strings.Repeat(separator+one, 16))
		r.refuses("more than 16", http.StatusUnauthorized, h, body)
	}
}

// TestStripeSignatureHasOneTime: with two it would not be clear which is signed.
func TestStripeSignatureHasOneTime(t *testing.T) {
	t.Parallel()
	verifier, err := webhook.Stripe("first")
	r := of(t, verifier, err)
	body := []byte(`{"id": "evt", "type": "t"}`)
	v1 := "v1=" + hexSum("first", at(0), ".", string(body))
	r.refuses("two times", http.StatusUnauthorized, headers("Stripe-Signature", "t="+at(0)+",t="+at(0)+","+v1), body)
	r.refuses("v0 only", http.StatusUnauthorized, headers("Stripe-Signature", "t="+at(0)+",v0"+v1[2:]), body)
	noID := []byte(`{"type": "t"}`)
	r.refuses("no id", http.StatusUnauthorized, headers("Stripe-Signature", "t="+at(0)+",v1="+hexSum("first", at(0), ".", string(noID))), noID)
}

// TestSlackChallengeIsAnswered, when it is genuine.
func TestSlackChallengeIsAnswered(t *testing.T) {
	t.Parallel()
	verifier, err := webhook.Slack("first")
	r := of(t, verifier, err)
	body := []byte(`{"type": "url_verification", "challenge": "<b>3eZb</b>"}`)
	sign := func(body []byte) http.Header {
		return headers("X-Slack-Request-Timestamp", at(0), "X-Slack-Signature", "v0="+hexSum("first", "v0:", at(0), ":", string(body)))
	}
	answer := r.post(sign(body), body)
	if answer.Header().Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("a browser may guess what the answer is: %v", answer.Header())
	}
	if answer.Code != http.StatusOK || answer.Body.String() != "<b>3eZb</b>" || !strings.HasPrefix(answer.Header().Get("Content-Type"), "text/plain") {
		t.Errorf("the answer is %d %q %v", answer.Code, answer.Body, answer.Header())
	}
	r.refuses("a forged challenge", http.StatusUnauthorized, sign(nil), body)
	r.refuses("other JSON", http.StatusUnauthorized, sign([]byte("[]")), []byte("[]"))
	form := sign([]byte("command=%2Fx"))
	form.Set("Content-Type", "application/x-www-form-urlencoded")
	r.refuses("a form that is cast to a handler", http.StatusBadRequest, form, []byte("command=%2Fx"))
	if len(r.events()) != 0 {
		t.Errorf("events: %v", r.events())
	}
}

// TestIDCannotExtendIntoTheBody: moving the border between what is signed must not
// make another genuine request.
func TestIDCannotExtendIntoTheBody(t *testing.T) {
	t.Parallel()
	for _, s := range schemes() {
		if s.name != "standard" && s.name != "hmac" {
			continue
		}
		verifier, err := s.make(s.secrets[0])
		r := of(t, verifier, err)
		separator := map[string]string{"standard": ".", "hmac": ":"}[s.name]
		body := []byte(at(0) + separator + `{}`)
		h := s.sign(body, s.secrets[0], at(0), "id")
		for _, name := range []string{"Webhook-Id", "X-Id"} {
			if h.Get(name) != "" {
				h.Set(name, "id"+separator+at(0))
			}
		}
		r.refuses(s.name, http.StatusUnauthorized, h, []byte(`{}`))
	}
}

// TestUnprotectedSchemesAreRefusedAtStart, empty secrets above all.
func TestUnprotectedSchemesAreRefusedAtStart(t *testing.T) {
	t.Parallel()
	for _, s := range schemes() {
		for _, secrets := range [][]string{{}, {""}, {s.secrets[0], ""}, {" \n"}, slices.Repeat([]string{s.secrets[0]}, 17)} {
			if v, err := s.make(secrets...); err == nil || v != nil && v != webhook.Verifier(nil) {
				t.Errorf("%s with the secrets %q: %v", s.name, secrets, err)
			}
		}
	}
	for _, secret := range []string{"whsec_", "no base64!"} {
		if _, err := webhook.Standard(secret); err == nil {
			t.Errorf("Standard takes %q", secret)
		}
	}
	good := webhook.HMAC{Secrets: []string{"s"}, Header: "X-Sig"}
	if _, err := webhook.NewHMAC(good); err != nil {
		t.Error(err)
	}
	for what, change := range map[string]func(*webhook.HMAC){
		"no header": func(h *webhook.HMAC) { h.Header = "" },
		"md5":       func(h *webhook.HMAC) { h.Algorithm = "md5" },
		"base32":    func(h *webhook.HMAC) { h.Encoding = "base32" },
		"no body":   func(h *webhook.HMAC) { h.Signed = "{id}" },
		"two bodies": func(h *webhook.HMAC) {
			h.Signed = "{body}{body}"
		},
		"a time that is not signed": func(h *webhook.HMAC) { h.TimestampHeader = "X-Time" },
		"a time from nowhere":       func(h *webhook.HMAC) { h.Signed = "{timestamp}.{body}" },
		"no ASCII":                  func(h *webhook.HMAC) { h.Signed, h.IDHeader = "{id}·{body}", "X-Id" },
		"a signed id that is trusted": func(h *webhook.HMAC) {
			h.Signed, h.IDHeader, h.TrustUnsignedID = "{id}.{body}", "X-Id", true
		},
		"an id from nowhere":       func(h *webhook.HMAC) { h.Signed = "{id}.{body}" },
		"a part that is not known": func(h *webhook.HMAC) { h.Signed = "{time}.{body}" },
	} {
		config := good
		change(&config)
		if _, err := webhook.NewHMAC(config); err == nil {
			t.Errorf("NewHMAC takes %s", what)
		}
	}
}
