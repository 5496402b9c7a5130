package webhook_test

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"
	"time"

	"eventsv2/webhook"
)

func signingSecret(c string) string {
	return "whsec_" + base64.StdEncoding.EncodeToString([]byte(strings.Repeat(c, 32)))
}

// TestSignedRequestsAreVerified: while a secret is changed, a receiver with either of the
// two verifies what is signed with both.
func TestSignedRequestsAreVerified(t *testing.T) {
	t.Parallel()
	old, young, other := signingSecret("o"), signingSecret("y"), signingSecret("x")
	signer, err := webhook.NewStandardSigner(young, old)
	if err != nil {
		t.Fatal(err)
	}
	body, at := []byte(`{"a": 1.0}`), time.Unix(1_700_000_000, 0)
	header := http.Header{}
	signer.Sign(header, "4711", at, body)
	if n := len(strings.Split(header.Get("webhook-signature"), " ")); n != 2 {
		t.Errorf("there are %d signatures, want one by each of 2 secrets: %s", n, header.Get("webhook-signature"))
	}
	for name, c := range map[string]struct {
		secret  string
		body    string
		late    time.Duration
		genuine bool
	}{
		"by the old secret":   {old, string(body), 0, true},
		"by the young secret": {young, string(body), 0, true},
		"by another secret":   {other, string(body), 0, false},
		"of another body":     {old, `{"a": 1}`, 0, false},
		"much later":          {old, string(body), time.Hour, false},
	} {
		verifier, err := webhook.Standard(c.secret)
		if err != nil {
			t.Fatal(err)
		}
		verified, err := verifier.Verify(&webhook.Request{Header: header, Body: []byte(c.body), Received: at.Add(c.late)})
		if (err == nil) != c.genuine {
			t.Errorf("%s: %v", name, err)
		}
		if c.genuine && verified.Delivery != "4711" {
			t.Errorf("%s: the delivery is %q", name, verified.Delivery)
		}
	}
}

// TestSignatureMatchesTheSpecification is the example that the reference implementations of
// Standard Webhooks test with.
func TestSignatureMatchesTheSpecification(t *testing.T) {
	t.Parallel()
	signer, err := webhook.NewStandardSigner("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	if err != nil {
		t.Fatal(err)
	}
	header := http.Header{}
	signer.Sign(header, "msg_p5jXN8AQM9LWM0D4loKWxJek", time.Unix(1614265330, 0), []byte(`{"test": 2432232314}`))
	if got, want := header.Get("webhook-signature"), "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="; got != want {
		t.Errorf("the signature is %s, want %s", got, want)
	}
}

func TestUnusableSecretsAreRefused(t *testing.T) {
	t.Parallel()
	for want, secrets := range map[string][]string{
		"there are 0 secrets":                     {},
		"secret 2 is not base64":                  {signingSecret("a"), "hunter2!"},
		"secret 1 has 7 bytes":                    {base64.StdEncoding.EncodeToString([]byte("hunter2"))},
		"secret 1 has 65 bytes":                   {base64.StdEncoding.EncodeToString([]byte(strings.Repeat("h", 65)))},
		"secret 1 is empty: everybody could sign": {""},
	} {
		_, err := webhook.NewStandardSigner(secrets...)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "aHVudGVyMg") {
			t.Errorf("%d secrets: got %v, want %q", len(secrets), err, want)
		}
	}
}
