package service_test

import (
	"strings"
	"testing"

	"eventsv2/eventqueue/httptarget"
	"eventsv2/internal/service"
)

func handlersFile(t *testing.T, webhooks string) *httptarget.File {
	t.Helper()
	file, err := httptarget.Parse("f", []byte("handlers: [{module: M, name: n, modifier: _, url: http://a}]\nwebhooks:\n"+webhooks))
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func TestSourcesOfAFile(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	for _, scheme := range []string{"github", "gitlab", "gitlab-token", "stripe", "slack", "standard"} {
		text.WriteString("  - {source: " + scheme + ", scheme: " + scheme + ", secrets: [A, B], module: M, modifier: _, name: n}\n")
	}
	text.WriteString("  - {source: own, scheme: hmac, hmac: {header: X-Sig}, secrets: [A], module: M, modifier: _, names: {push: p}}\n")
	file := handlersFile(t, text.String())
	sources, err := service.WebhookSources(file, service.SecretsOf(map[string]string{"A": "c2VjcmV0", "B": "b3RoZXI="}))
	if err != nil || len(sources) != 7 {
		t.Errorf("%d sources, %v", len(sources), err)
	}
	if _, err := service.WebhookSources(file, service.AnySecrets); err != nil {
		t.Errorf("a check without secrets: %v", err)
	}
	if sources, err := service.WebhookSources(&httptarget.File{}, service.AnySecrets); err != nil || sources != nil {
		t.Errorf("without any: %v, %v", sources, err)
	}
}

func TestSourcesThatMakeNoSense(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct{ fields, want string }{
		"an empty secret":  {"source: s, scheme: github, secrets: [EMPTY]", "f:3: source s: the variable EMPTY is not set or empty"},
		"an unset secret":  {"source: s, scheme: github, secrets: [A, NOT_THERE]", "f:3: source s: the variable NOT_THERE is not set"},
		"no base64":        {"source: s, scheme: standard, secrets: [A]", "f:3: source s: webhook.Standard: secret 1 is not base64"},
		"unknown scheme":   {"source: s, scheme: bitbucket, secrets: [A]", `f:3: source s: scheme "bitbucket": it must be`},
		"hmac without":     {"source: s, scheme: hmac, secrets: [A]", "the scheme hmac and the keys under hmac go together"},
		"hmac for another": {"source: s, scheme: github, secrets: [A], hmac: {header: X}", "the scheme hmac and the keys under hmac go together"},
		"hmac in vain":     {"source: s, scheme: hmac, secrets: [A], hmac: {header: X, timestamp_header: T}", "go together"},
		"a bad name":       {"source: a/b, scheme: github, secrets: [A]", `source "a/b": a name is`},
	} {
		file := handlersFile(t, "  - {module: M, modifier: _, name: n, "+c.fields+"}\n")
		_, err := service.WebhookSources(file, service.SecretsOf(map[string]string{"A": "not base64!", "EMPTY": ""}))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", what, err, c.want)
		}
		if err != nil && strings.Contains(err.Error(), "not base64!") {
			t.Errorf("%s: the error has the secret: %v", what, err)
		}
	}
}
