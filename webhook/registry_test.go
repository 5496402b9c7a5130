package webhook_test

import (
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"eventsv2/webhook"
)

// TestEveryRegisteredSchemeIsUsable makes a verifier of each scheme by its name, has it
// refuse a request that nobody has signed, and searches for the name in the page that lists
// the schemes.
func TestEveryRegisteredSchemeIsUsable(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range webhook.Schemes() {
		options := webhook.SchemeOptions{Secrets: []string{"c2VjcmV0"}}
		switch name {
		case "hmac":
			options.HMAC = map[string]string{"header": "X-Signature"}
		case "cloud-scheduler", "eventarc", "pubsub":
			options = webhook.SchemeOptions{OIDC: &webhook.OIDC{Audience: "https://a", ServiceAccounts: []string{"a@b"}}}
		}
		verifier, err := webhook.NewVerifier(name, options)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if _, err := verifier.Verify(&webhook.Request{Header: http.Header{}, Body: []byte(`{}`), Received: time.Now()}); err == nil {
			t.Errorf("%s takes a request that nobody has signed", name)
		}
		_, sources, _ := strings.Cut(string(page), "\nwebhooks:\n")
		_, list, _ := strings.Cut(sources, "scheme: ")
		if list, _, _ = strings.Cut(list, "\n"); !strings.Contains(strings.NewReplacer(",", " ").Replace(list)+" ", " "+name+" ") {
			t.Errorf("%s is not in the list of docs/configuration.md: %s", name, list)
		}
	}
	_, err = webhook.NewVerifier("guthub", webhook.SchemeOptions{Secrets: []string{"x"}})
	if want := `scheme "guthub": it must be cloud-scheduler, eventarc, github, gitlab, gitlab-token, hmac, pubsub, slack, standard or stripe`; err == nil || err.Error() != want {
		t.Errorf("the error is %v, want %s", err, want)
	}
}

// TestOptionsOfOtherSchemesAreRefused is refused by name.
func TestOptionsOfOtherSchemesAreRefused(t *testing.T) {
	t.Parallel()
	secrets := []string{"c2VjcmV0"}
	for name, c := range map[string]struct {
		scheme  string
		options webhook.SchemeOptions
		want    string
	}{
		"hmac without keys":         {"hmac", webhook.SchemeOptions{Secrets: secrets}, "go together"},
		"keys without hmac":         {"github", webhook.SchemeOptions{Secrets: secrets, HMAC: map[string]string{"header": "X"}}, "go together"},
		"trust where all is signed": {"stripe", webhook.SchemeOptions{Secrets: secrets, TrustUnsignedID: true}, "trust_unsigned_id is for"},
		"tokens without oidc":       {"pubsub", webhook.SchemeOptions{Secrets: secrets}, "scheme pubsub: oidc is missing"},
		"tokens and secrets":        {"eventarc", webhook.SchemeOptions{Secrets: secrets, OIDC: &webhook.OIDC{}}, "remove secrets"},
		"oidc for another":          {"stripe", webhook.SchemeOptions{Secrets: secrets, OIDC: &webhook.OIDC{}}, "scheme stripe: oidc is for"},
	} {
		if _, err := webhook.NewVerifier(c.scheme, c.options); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want one that says %q", name, err, c.want)
		}
	}
}
