package service_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"eventsv2/eventqueue/httptarget"
	"eventsv2/service"
	"eventsv2/webhook"
)

func handlersFile(t *testing.T, webhooks string) *httptarget.File {
	t.Helper()
	file, err := httptarget.Parse("f", []byte("handlers: [{module: M, name: n, modifier: _, url: http://a}]\nwebhooks:\n"+webhooks))
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// secretsIn is a Config.Secret.
func secretsIn(environment map[string]string) func(string) (string, error) {
	return func(variable string) (string, error) {
		if environment[variable] == "" {
			return "", fmt.Errorf("the variable %s is not set or empty", variable)
		}
		return environment[variable], nil
	}
}

func TestSourcesAreReadFromAFile(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	for _, scheme := range []string{"github", "gitlab", "gitlab-token", "stripe", "slack", "standard"} {
		text.WriteString("  - {source: " + scheme + ", scheme: " + scheme + ", secrets: [A, B], module: M, modifier: _, name: n}\n")
	}
	text.WriteString("  - {source: own, scheme: hmac, hmac: {header: X-Sig}, secrets: [A], module: M, modifier: _, names: {push: p}}\n")
	text.WriteString("  - {source: body, scheme: github, trust_unsigned_id: true, type_fields: [comment, issue], secrets: [A], module: M, modifier: _, names: {issue: i}}\n")
	for _, scheme := range []string{"pubsub", "eventarc", "cloud-scheduler"} {
		text.WriteString("  - {source: " + scheme + ", scheme: " + scheme + ", oidc: {audience: https://a, service_accounts: [a@b, c@d]}, module: M, modifier: _, name: n}\n")
	}
	file := handlersFile(t, text.String())
	sources, err := service.SourcesOf(file, secretsIn(map[string]string{"A": "c2VjcmV0", "B": "b3RoZXI="}))
	if err != nil || len(sources) != 11 {
		t.Errorf("%d sources, %v", len(sources), err)
	}
	if sources, err := service.SourcesOf(&httptarget.File{}, secretsIn(nil)); err != nil || sources != nil {
		t.Errorf("without any: %v, %v", sources, err)
	}
}

func TestInvalidSourcesAreRefused(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct{ fields, want string }{
		"an empty secret":       {"source: s, scheme: github, secrets: [EMPTY]", "f:3: source s: the variable EMPTY is not set or empty"},
		"an unset secret":       {"source: s, scheme: github, secrets: [A, NOT_THERE]", "f:3: source s: the variable NOT_THERE is not set"},
		"no base64":             {"source: s, scheme: standard, secrets: [A]", "f:3: source s: webhook.Standard: secret 1 is not base64"},
		"unknown scheme":        {"source: s, scheme: bitbucket, secrets: [A]", `f:3: source s: scheme "bitbucket": it must be`},
		"hmac without":          {"source: s, scheme: hmac, secrets: [A]", "the scheme hmac and the keys under hmac go together"},
		"hmac for another":      {"source: s, scheme: github, secrets: [A], hmac: {header: X}", "the scheme hmac and the keys under hmac go together"},
		"hmac in vain":          {"source: s, scheme: hmac, secrets: [A], hmac: {header: X, timestamp_header: T}", "go together"},
		"trust for a signed id": {"source: s, scheme: standard, secrets: [A], trust_unsigned_id: true", "trust_unsigned_id is for the schemes github and hmac"},
		"an ambiguous text":     {`source: s, scheme: hmac, secrets: [A], hmac: {header: X, id_header: I, signed: "{body}{id}"}`, "an id could reach into what follows"},
		"tokens with secrets":   {"source: s, scheme: pubsub, secrets: [A]", "f:3: source s: scheme pubsub: oidc is missing"},
		"secrets with tokens":   {"source: s, scheme: github, oidc: {audience: a, service_accounts: [a@b]}", "f:3: source s: scheme github: oidc is for"},
		"anybody's tokens":      {"source: s, scheme: eventarc, oidc: {audience: https://a}", "f:3: source s: webhook.Eventarc: there are 0 service_accounts"},
		"any audience":          {"source: s, scheme: cloud-scheduler, oidc: {service_accounts: [a@b]}", "f:3: source s: webhook.CloudScheduler: audience is missing"},
		"keys from anywhere":    {"source: s, scheme: pubsub, oidc: {audience: a, service_accounts: [a@b], issuer: i, keys: http://a.example}", "is not safe"},
		"a bad name":            {"source: a/b, scheme: github, secrets: [A]", `source "a/b": a name is`},
	} {
		file := handlersFile(t, "  - {module: M, modifier: _, name: n, "+c.fields+"}\n")
		_, err := service.SourcesOf(file, secretsIn(map[string]string{"A": "not base64!", "EMPTY": ""}))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", what, err, c.want)
		}
		if err != nil && strings.Contains(err.Error(), "not base64!") {
			t.Errorf("%s: the error has the secret: %v", what, err)
		}
	}
}

// TestEventTypeComesFromTheBody when the file says so, and from the header otherwise.
func TestEventTypeComesFromTheBody(t *testing.T) {
	t.Parallel()
	for fields, want := range map[string]string{"": "forged", ", type_fields: [comment, issue]": "issue"} {
		file := handlersFile(t, "  - {source: s, scheme: github, secrets: [A], module: M, modifier: _, names: {issue: i}"+fields+"}\n")
		sources, err := service.SourcesOf(file, secretsIn(map[string]string{"A": "secret"}))
		if err != nil {
			t.Fatal(err)
		}
		mac := hmac.New(sha256.New, []byte("secret"))
		_, _ = mac.Write([]byte(`{"issue": {}}`))
		verified, err := sources[0].Verifier.Verify(&webhook.Request{Body: []byte(`{"issue": {}}`), Header: http.Header{
			"X-Hub-Signature-256": {"sha256=" + hex.EncodeToString(mac.Sum(nil))}, "X-Github-Event": {"forged"}, "X-Github-Delivery": {"1"}}})
		if err != nil || verified.Type != want {
			t.Errorf("with %q: %+v, %v, want the type %s", fields, verified, err, want)
		}
	}
}
