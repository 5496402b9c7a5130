package service

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/httptarget"
	"eventsv2/eventqueue/operate"
	"eventsv2/webhook"
)

// maxFailed is how many sources that make no sense are reported.
const maxFailed = 100

// CheckHandlersFile validates a handlers file without connecting to anything, and without
// the secrets that it names. It returns how many handlers and sources of webhooks the file
// has. The error names the lines that make no sense.
func CheckHandlersFile(path string) (handlers, sources int, err error) {
	file, err := httptarget.Load(path)
	if err != nil {
		return 0, 0, err
	}
	if err := file.Register(eventqueue.NewHandlers(), dry); err != nil {
		return 0, 0, err
	}
	if _, err := webhookSources(file, dry.Secret); err != nil {
		return 0, 0, err
	}
	if _, err := subscriptionsOf(file); err != nil {
		return 0, 0, err
	}
	return len(file.Entries), len(file.Webhooks), nil
}

// dry makes targets that are not called. Its secret is one that every scheme accepts, and a
// header.
var dry = httptarget.Shared{Client: http.DefaultClient, Secret: func(string) (string, error) { return "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0", nil }}

// webhookSources makes the sources of a handlers file. secret returns the value of a
// variable. The error names the lines of those that make no sense.
func webhookSources(file *httptarget.File, secret func(variable string) (string, error)) ([]webhook.Source, error) {
	var sources []webhook.Source
	var failed []error
	for _, entry := range file.Webhooks {
		source, err := webhookSource(entry, secret)
		if err != nil && len(failed) == maxFailed {
			return nil, errors.Join(append(failed, fmt.Errorf("%s: and perhaps more: correct these first", file.Name))...)
		}
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
	source = webhook.Source{Name: entry.Source, Canvas: entry.Canvas, Scheme: entry.Scheme, Verifier: verifier, RefuseOverLimit: entry.RefuseOverLimit, Cast: webhook.ToHandler(entry.Key)}
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
	verifier, err := webhook.NewVerifier(entry.Scheme, webhook.SchemeOptions{Secrets: secrets, TrustUnsignedID: entry.TrustUnsignedID, HMAC: entry.HMAC, OIDC: entry.OIDC})
	if err != nil || entry.TypeFields == nil {
		return verifier, err
	}
	return webhook.TypeFromBody(verifier, entry.TypeFields...)
}

// newWebhooks is a handler that accepts requests for a canvas that is over its rate limit, whose events
// wait for it, and answers 429 where the source says so.
func newWebhooks(queue *eventqueue.Queue, store operate.RateStore, config webhook.Config) (http.Handler, error) {
	if !slices.ContainsFunc(config.Sources, func(s webhook.Source) bool { return s.RefuseOverLimit }) {
		return webhook.New(queue, config)
	}
	limits, err := operate.NewRateLimits(store, queue)
	if err != nil {
		return nil, err
	}
	config.Check = func(ctx context.Context, canvas eventqueue.CanvasID) (time.Duration, error) {
		return limits.Check(ctx, canvas, eventqueue.HandlerKey{})
	}
	return webhook.New(queue, config)
}
