package service

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"go.uber.org/zap"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/httptarget"
	"eventsv2/webhook"
)

// WebhookSources makes the sources of a handlers file. secret returns the value of a
// variable. The error names the lines of those that make no sense.
func WebhookSources(file *httptarget.File, secret func(variable string) (string, error)) ([]webhook.Source, error) {
	var sources []webhook.Source
	var failed []error
	for _, entry := range file.Webhooks {
		source, err := webhookSource(entry, secret)
		if err != nil {
			failed = append(failed, fmt.Errorf("%s:%d: source %s: %w", file.Name, entry.Line, entry.Source, err))
		}
		sources = append(sources, source)
	}
	if len(failed) == 0 && len(sources) > 0 {
		failed = append(failed, webhook.Config{Sources: sources}.Validate())
	}
	return sources, errors.Join(failed...)
}

// SecretsOf reads secrets from an environment, where they must be.
func SecretsOf(environment map[string]string) func(variable string) (string, error) {
	return func(variable string) (string, error) {
		if environment[variable] == "" {
			return "", fmt.Errorf("the variable %s is not set or empty: it has to hold a secret", variable)
		}
		return environment[variable], nil
	}
}

// AnySecrets stands for secrets that a check of the file does not know.
func AnySecrets(string) (string, error) { return "c2VjcmV0", nil }

func webhookSource(entry httptarget.WebhookEntry, secret func(string) (string, error)) (source webhook.Source, err error) {
	secrets := make([]string, len(entry.Secrets))
	for i, variable := range entry.Secrets {
		if secrets[i], err = secret(variable); err != nil {
			return source, err
		}
	}
	verifier, err := verifierOf(entry, secrets)
	if err != nil {
		return source, err
	}
	source = webhook.Source{Name: entry.Source, Canvas: entry.Canvas, Verifier: verifier, Cast: webhook.ToHandler(entry.Key)}
	if entry.Names != nil {
		casters := map[string]webhook.Caster{}
		for typ, name := range entry.Names {
			casters[typ] = webhook.ToHandler(eventqueue.HandlerKey{Module: entry.Key.Module, Name: name, Modifier: entry.Key.Modifier})
		}
		source.Cast = webhook.ByType(casters)
	}
	return source, nil
}

func verifierOf(entry httptarget.WebhookEntry, secrets []string) (webhook.Verifier, error) {
	if (entry.Scheme == "hmac") != (entry.HMAC != nil) {
		return nil, errors.New("the scheme hmac and the keys under hmac go together")
	}
	switch entry.Scheme {
	case "github":
		return webhook.GitHub(secrets...)
	case "gitlab":
		return webhook.GitLab(secrets...)
	case "gitlab-token":
		return webhook.GitLabToken(secrets...)
	case "stripe":
		return webhook.Stripe(secrets...)
	case "slack":
		return webhook.Slack(secrets...)
	case "standard":
		return webhook.Standard(secrets...)
	case "hmac":
		return webhook.NewHMAC(webhook.HMAC{Secrets: secrets, Header: entry.HMAC["header"], Prefix: entry.HMAC["prefix"],
			Algorithm: entry.HMAC["algorithm"], Encoding: entry.HMAC["encoding"], Signed: entry.HMAC["signed"],
			TimestampHeader: entry.HMAC["timestamp_header"], IDHeader: entry.HMAC["id_header"], TypeHeader: entry.HMAC["type_header"]})
	default:
		return nil, fmt.Errorf("scheme %q: it must be github, gitlab, gitlab-token, stripe, slack, standard or hmac", entry.Scheme)
	}
}

// Webhooks is the handler of sources, or nil when there are none. While a canvas is over
// its rate limit, it answers 429 to requests for that canvas.
func Webhooks(queue *eventqueue.Queue, store eventqueue.RateStore, sources []webhook.Source, config Config, log *zap.Logger) (http.Handler, error) {
	if len(sources) == 0 {
		return nil, nil
	}
	limits, err := eventqueue.NewRateLimits(store, queue)
	if err != nil {
		return nil, err
	}
	return webhook.New(queue, webhook.Config{Sources: sources, MaxBodyBytes: int64(config.MaxValueBytes), Logger: log,
		Check: func(ctx context.Context, canvas eventqueue.CanvasID) (time.Duration, error) {
			return limits.Check(ctx, canvas, eventqueue.HandlerKey{})
		}})
}
