package webhook_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"eventsv2/eventqueue"
	"eventsv2/webhook"
)

// TestForgedTokensAreRefused, whatever is wrong with them, with nothing but a status; the genuine token is accepted after all that.
func TestForgedTokensAreRefused(t *testing.T) {
	t.Parallel()
	from := newIssuer(t)
	stranger, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(&signingKey().PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	public := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	rs256 := func(others ...any) string {
		return token(t, jwt.SigningMethodRS256, "k1", signingKey(), said(others...))
	}
	parts := strings.Split(rs256(), ".")
	forged := map[string]string{
		"alg none":                       token(t, jwt.SigningMethodNone, "k1", jwt.UnsafeAllowNoneSignatureType, said()),
		"alg none with a signature":      base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none","kid":"k1"}`)) + "." + parts[1] + "." + parts[2],
		"without a signature":            parts[0] + "." + parts[1] + ".",
		"HS256 with the public key":      token(t, jwt.SigningMethodHS256, "k1", public, said()),
		"HS256 with its DER":             token(t, jwt.SigningMethodHS256, "k1", der, said()),
		"HS256 with its modulus":         token(t, jwt.SigningMethodHS256, "k1", signingKey().N.Bytes(), said()),
		"another algorithm of the key":   token(t, jwt.SigningMethodRS512, "k1", signingKey(), said()),
		"a stranger's key, its id":       token(t, jwt.SigningMethodRS256, "k1", stranger, said()),
		"a stranger's key, another id":   token(t, jwt.SigningMethodRS256, "k2", stranger, said()),
		"no id of a key":                 token(t, jwt.SigningMethodRS256, nil, signingKey(), said()),
		"an id that is no text":          token(t, jwt.SigningMethodRS256, 1, signingKey(), said()),
		"another audience":               rs256("aud", "https://other.example"),
		"a longer audience":              rs256("aud", audience+"/"),
		"no audience":                    rs256("aud", nil),
		"a list without the audience":    rs256("aud", []string{"a", "b"}),
		"another issuer":                 rs256("iss", "https://accounts.google.com"),
		"an issuer without its scheme":   rs256("iss", "issuer.example"),
		"no issuer":                      rs256("iss", nil),
		"expired":                        rs256("exp", now.Unix()),
		"expired long ago":               rs256("exp", 1),
		"without an end":                 rs256("exp", nil),
		"an end that is a text":          rs256("exp", "never"),
		"not yet":                        rs256("nbf", now.Add(time.Minute).Unix()),
		"another service account":        rs256("email", "push@other-project.iam.gserviceaccount.com"),
		"the service account's capitals": rs256("email", strings.ToUpper(sender)),
		"no e-mail":                      rs256("email", nil),
		"an e-mail nobody verified":      rs256("email_verified", false),
		"nothing about the e-mail":       rs256("email_verified", nil),
		"an e-mail verified by a text":   rs256("email_verified", "true"),
		"another payload":                parts[0] + "." + base64.RawURLEncoding.EncodeToString([]byte(`{"iss":"`+issuerName+`"}`)) + "." + parts[2],
		"cut short":                      rs256()[:len(rs256())-4],
		"one part more":                  rs256() + ".x",
		"no token":                       "x",
		"nothing":                        "",
		"too long":                       rs256("pad", strings.Repeat("x", 5000)),
	}
	for _, g := range googles() {
		t.Run(g.name, func(t *testing.T) {
			t.Parallel()
			verifier, err := g.make(from.accepts())
			r := of(t, verifier, err)
			for what, token := range forged {
				r.refuses(what, http.StatusUnauthorized, carrying(token, g.header...), []byte(g.body))
			}
			with := func(authorization ...string) http.Header {
				h := carrying("", g.header...)
				h["Authorization"] = authorization
				return h
			}
			r.refuses("no header", http.StatusUnauthorized, with(), []byte(g.body))
			r.refuses("two headers", http.StatusUnauthorized, with("Bearer "+good(t), "Bearer "+good(t)), []byte(g.body))
			r.refuses("another kind", http.StatusUnauthorized, with("Basic "+good(t)), []byte(g.body))
			r.refuses("no kind", http.StatusUnauthorized, with(good(t)), []byte(g.body))
			r.refuses("forged, and the body is broken", http.StatusUnauthorized, carrying("x"), []byte("{"))
			if answer := r.post(carrying(good(t), g.header...), []byte(g.body)); answer.Code != http.StatusOK || len(r.events()) != 1 {
				t.Errorf("the genuine one: %d, %d events, %v", answer.Code, len(r.events()), r.reasons())
			}
			for _, entry := range r.logs.All() {
				if text := entry.Message + " " + strings.Join(texts(entry.ContextMap()), " "); strings.Contains(text, parts[2]) || strings.Contains(text, parts[1]) || len(text) > 2000 {
					t.Errorf("the log has a token, or a long line: %s", text)
				}
			}
		})
	}
}

// texts are the values of a line that are texts.
func texts(fields map[string]any) (all []string) {
	for value := range maps.Values(fields) {
		if text, is := value.(string); is {
			all = append(all, text)
		}
	}
	return all
}

// TestKeysThatCannotBeGotRefuseForNow: nobody can say whether the token is genuine, so the sender has to come again; known keys go on.
func TestKeysThatCannotBeGotRefuseForNow(t *testing.T) {
	t.Parallel()
	for _, g := range googles() {
		for _, hangs := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, hangs: %t", g.name, hangs), func(t *testing.T) {
				t.Parallel()
				from := newIssuer(t)
				fails := from.down.Store
				if hangs {
					fails = from.hangs.Store
				}
				verifier, err := g.make(from.accepts())
				if err != nil {
					t.Fatal(err)
				}
				clock := now
				r := newRig(t, webhook.Config{Clock: func() time.Time { return clock },
					Sources: []webhook.Source{{Name: "hook", Verifier: verifier, Cast: webhook.ToHandler(key)}}})
				fails(true)
				r.refuses("no keys", http.StatusServiceUnavailable, carrying(good(t), g.header...), []byte(g.body))
				r.refuses("no keys, and a token for another service", http.StatusUnauthorized,
					carrying(token(t, jwt.SigningMethodRS256, "k1", signingKey(), said("aud", "x")), g.header...), []byte(g.body))
				fails(false)
				clock = clock.Add(20 * time.Second)
				for range 2 {
					if answer := r.post(carrying(good(t), g.header...), []byte(g.body)); answer.Code != http.StatusOK || len(r.events()) != 1 {
						t.Errorf("healed: %d, %d events, %v", answer.Code, len(r.events()), r.reasons())
					}
					fails(true) // the keys are known by now
				}
				if reasons := r.reasons(); len(reasons) == 0 || !strings.Contains(reasons[0].(string), "the keys of the issuer cannot be got") {
					t.Errorf("the log says %v", reasons)
				}
			})
		}
	}
}

// TestExpiredTokensAreCountedAsTooOld, so that whoever looks thinks of the clocks.
func TestExpiredTokensAreCountedAsTooOld(t *testing.T) {
	t.Parallel()
	verifier, err := webhook.CloudScheduler(newIssuer(t).accepts())
	if err != nil {
		t.Fatal(err)
	}
	var outcome webhook.Outcome
	r := newRig(t, webhook.Config{Observe: func(_ webhook.Source, o webhook.Outcome, _ error) { outcome = o },
		Sources: []webhook.Source{{Name: "hook", Verifier: verifier, Cast: webhook.ToHandler(key)}}})
	expired := token(t, jwt.SigningMethodRS256, "k1", signingKey(), said("exp", now.Add(-time.Second).Unix()))
	if answer := r.post(carrying(expired), nil); answer.Code != http.StatusUnauthorized || outcome != webhook.BadTime {
		t.Errorf("%d, %s", answer.Code, outcome)
	}
}

// TestPushedMessageBecomesAnEvent once, with its data, its attributes and its ordering key.
func TestPushedMessageBecomesAnEvent(t *testing.T) {
	t.Parallel()
	verifier, err := webhook.PubSub(newIssuer(t).accepts())
	r := of(t, verifier, err)
	push := func(message string) []byte {
		return []byte(`{"message": ` + message + `, "subscription": "projects/p/subscriptions/s", "deliveryAttempt": 3}`)
	}
	data := base64.StdEncoding.EncodeToString([]byte(`{ "order":  7 }`))
	full := push(`{"data": "` + data + `", "messageId": "1", "message_id": "1", "publishTime": "2026-11-29T10:00:00Z", "orderingKey": "order 7",
		"attributes": {"eventType": "PLACED", "Trace Id": "x", "trace_id": "y", "ü": "z"}}`)
	for range 2 {
		if answer := r.post(carrying(good(t)), full); answer.Code != http.StatusOK {
			t.Fatalf("%d, %v", answer.Code, r.reasons())
		}
	}
	want := stored{HandlerKey: key, Canvas: canvas, Value: `{ "order":  7 }`, UniqueKey: "webhook hook projects/p/subscriptions/s 1", UniqueFor: 72 * time.Hour, OrderingKey: "order 7"}
	if got := r.events(); len(got) != 1 || !maps.Equal(got[0].Attributes, map[string]string{"eventtype": "PLACED", "trace_id": "x", "_": "z"}) || got[0].without() != want.without() {
		t.Errorf("the events are %+v", got)
	}
	for what, c := range map[string]struct{ message, value, key string }{
		"no data":       {`{"messageId": "2", "attributes": {"a": "b"}}`, "null", ""},
		"a long key":    {`{"messageId": "3", "data": "MQ==", "orderingKey": "` + strings.Repeat("k", 1024) + `"}`, "1", "sha256:"},
		"the same data": {`{"messageId": "4", "data": "` + data + `"}`, `{ "order":  7 }`, ""},
	} {
		before := len(r.events())
		answer := r.post(carrying(good(t)), push(c.message))
		events := r.events()
		if last := events[len(events)-1]; answer.Code != http.StatusOK || len(events) != before+1 || last.Value != c.value || !strings.HasPrefix(last.OrderingKey, c.key) || len(last.OrderingKey) > eventqueue.MaxNameBytes {
			t.Errorf("%s: %d, %+v, %v", what, answer.Code, last, r.reasons())
		}
	}
	for what, body := range map[string][]byte{
		"no JSON": []byte("{"), "no message": []byte(`{"subscription": "s"}`), "no subscription": []byte(`{"message": {"messageId": "1"}}`),
		"no id": push(`{"data": "MQ=="}`), "no base64": push(`{"messageId": "9", "data": "%%"}`), "attributes that are no texts": push(`{"messageId": "9", "attributes": {"a": 1}}`),
		"unwrapped": []byte(`{"order": 7}`), "data that is no JSON": push(`{"messageId": "9", "data": "aGVsbG8="}`), "empty": nil,
	} {
		r.refuses(what, http.StatusBadRequest, carrying(good(t)), body)
	}
	many := `{"messageId": "9", "attributes": {`
	for i := range 17 {
		many += `"a` + strings.Repeat("x", i) + `": "", `
	}
	r.refuses("17 attributes", http.StatusUnprocessableEntity, carrying(good(t)), push(strings.TrimSuffix(many, ", ")+"}}"))
}

// without is what of an event can be compared.
func (s stored) without() [6]any {
	return [6]any{s.HandlerKey, s.Canvas, s.Value, s.UniqueKey, s.UniqueFor, s.OrderingKey}
}

// TestCloudEventsOfEventarcBecomeEvents once by their source and id, in binary mode only.
func TestCloudEventsOfEventarcBecomeEvents(t *testing.T) {
	t.Parallel()
	verifier, err := webhook.Eventarc(newIssuer(t).accepts())
	r := of(t, verifier, err)
	g := googles()[1]
	long := strings.Repeat("x", 1100)
	h := func(pairs ...string) http.Header { return carrying(good(t), append(g.header, pairs...)...) }
	for i, c := range []struct {
		header http.Header
		body   string
		events int
	}{
		{h("ce-subject", "objects/"+long, "ce-time", "2026-11-29T10:00:00Z"), `{ "bucket": "b" }`, 1}, {h(), `{"other": "body"}`, 1},
		{h("ce-id", "18"), "", 2}, {h("ce-source", "//other"), `1`, 3},
	} {
		if answer := r.post(c.header, []byte(c.body)); answer.Code != http.StatusOK || len(r.events()) != c.events {
			t.Errorf("request %d: %d, %d events, want %d; %v", i, answer.Code, len(r.events()), c.events, r.reasons())
		}
	}
	events := r.events()
	want := map[string]string{"ce-id": "17", "ce-source": g.header[3], "ce-type": g.header[5], "ce-time": "2026-11-29T10:00:00Z"}
	if len(events) != 3 || events[0].Value != `{ "bucket": "b" }` || events[1].Value != "null" || !maps.Equal(events[0].Attributes, want) {
		t.Errorf("the events are %+v", events)
	}
	for _, name := range []string{"ce-id", "ce-source", "ce-type", "ce-specversion"} {
		without := h()
		without.Del(name)
		r.refuses("without "+name, http.StatusBadRequest, without, []byte(`1`))
	}
	r.refuses("of another version", http.StatusBadRequest, h("ce-id", "19", "ce-specversion", "0.3"), []byte(`1`))
	r.refuses("no JSON", http.StatusBadRequest, h("ce-id", "19"), []byte("\x08\x96\x01"))
}

// TestJobsOfCloudSchedulerBecomeEvents once for each time at which they are due.
func TestJobsOfCloudSchedulerBecomeEvents(t *testing.T) {
	t.Parallel()
	verifier, err := webhook.CloudScheduler(newIssuer(t).accepts())
	r := of(t, verifier, err)
	g := googles()[2]
	h := func(pairs ...string) http.Header { return carrying(good(t), append(g.header, pairs...)...) }
	for i, c := range []struct {
		header http.Header
		body   string
		events int
	}{
		{h(), `{ "run": true }`, 1}, {h(), `{ "run": true }`, 1}, {h("X-CloudScheduler-ScheduleTime", "2026-11-30T02:00:00Z"), `{ "run": true }`, 2},
		{h("X-CloudScheduler-JobName", "hourly"), "", 3},
	} {
		if answer := r.post(c.header, []byte(c.body)); answer.Code != http.StatusOK || len(r.events()) != c.events {
			t.Errorf("request %d: %d, %d events, want %d; %v", i, answer.Code, len(r.events()), c.events, r.reasons())
		}
	}
	if events := r.events(); events[0].Value != `{ "run": true }` || events[2].Value != "null" || events[0].UniqueKey != "webhook hook nightly 2026-11-29T02:00:00Z" {
		t.Errorf("the events are %+v", events)
	}
	for _, name := range []string{"X-CloudScheduler-JobName", "X-CloudScheduler-ScheduleTime"} {
		without := h()
		without.Del(name)
		r.refuses("without "+name, http.StatusBadRequest, without, []byte(`1`))
	}
	r.refuses("no JSON", http.StatusBadRequest, h("X-CloudScheduler-JobName", "x"), []byte("hello"))
}

// TestTokensLeadToHandlersByType: by the attribute of a message, the type of a CloudEvent, the name of a job, or a field of the data.
func TestTokensLeadToHandlersByType(t *testing.T) {
	t.Parallel()
	from := newIssuer(t)
	verified := func(v webhook.Verifier, err error, h http.Header, body string) webhook.Verified {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		got, err := v.Verify(&webhook.Request{Header: h, Body: []byte(body), Received: now})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	for _, g := range googles() {
		v, err := g.make(from.accepts())
		want := map[string]string{"pubsub": "", "eventarc": "google.cloud.storage.object.v1.finalized", "cloud-scheduler": "nightly"}[g.name]
		if got := verified(v, err, carrying(good(t), g.header...), g.body).Type; got != want {
			t.Errorf("%s: the type is %q, want %q", g.name, got, want)
		}
		byField, err := webhook.TypeFromBody(v, "a")
		if got := verified(byField, err, carrying(good(t), g.header...), g.body).Type; got != "a" {
			t.Errorf("%s: the type of the data is %q", g.name, got)
		}
	}
	v, err := webhook.PubSub(from.accepts())
	for attributes, want := range map[string]string{`{"eventType": "OBJECT_FINALIZE"}`: "OBJECT_FINALIZE", `{"ce-type": "t", "eventType": "u"}`: "t"} {
		if got := verified(v, err, carrying(good(t)), `{"message": {"messageId": "1", "attributes": `+attributes+`}, "subscription": "s"}`).Type; got != want {
			t.Errorf("%s: the type is %q, want %q", attributes, got, want)
		}
	}
}

// TestUnsafeTokensAreRefusedAtStart: what would accept everybody's tokens makes no Verifier.
func TestUnsafeTokensAreRefusedAtStart(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		change func(*webhook.OIDC)
		want   string
	}{
		"no audience":           {func(o *webhook.OIDC) { o.Audience = " " }, "audience is missing"},
		"no service account":    {func(o *webhook.OIDC) { o.ServiceAccounts = nil }, "there are 0 service_accounts"},
		"17 service accounts":   {func(o *webhook.OIDC) { o.ServiceAccounts = make([]string, 17) }, "there are 17 service_accounts"},
		"an empty one":          {func(o *webhook.OIDC) { o.ServiceAccounts = []string{""} }, "is no e-mail"},
		"the same twice":        {func(o *webhook.OIDC) { o.ServiceAccounts = []string{sender, sender} }, "is there twice"},
		"an issuer alone":       {func(o *webhook.OIDC) { o.Keys = "" }, "issuer and keys go together"},
		"keys alone":            {func(o *webhook.OIDC) { o.Issuer = "" }, "issuer and keys go together"},
		"keys over plain HTTP":  {func(o *webhook.OIDC) { o.Keys = "http://keys.example/" }, "is not safe"},
		"keys from no address":  {func(o *webhook.OIDC) { o.Keys = "keys" }, "is not the address of keys"},
		"Google's, for nothing": {func(o *webhook.OIDC) { *o = webhook.OIDC{} }, "audience is missing"},
	} {
		for _, g := range googles() {
			config := newConfig()
			c.change(&config)
			if v, err := g.make(config); err == nil || v != nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s, %s: %v, want %q", g.name, what, err, c.want)
			}
		}
	}
	for _, g := range googles() {
		if _, err := g.make(webhook.OIDC{Audience: audience, ServiceAccounts: []string{sender}}); err != nil {
			t.Errorf("%s with Google's own issuer: %v", g.name, err)
		}
	}
}

func newConfig() webhook.OIDC {
	return webhook.OIDC{Audience: audience, ServiceAccounts: []string{sender}, Issuer: issuerName, Keys: "https://keys.example/"}
}
