package httptarget

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"eventsv2/eventqueue"
)

// MaxFileBytes is the size of the largest handlers file that is read.
const MaxFileBytes = 1 << 20

// DefaultBreakerAfter is the BreakerAfter of the policy of a handler of the file that sets none.
const DefaultBreakerAfter = 20

// File is a valid handlers file.
type File struct {
	// Name is the path that it was read from, for messages.
	Name string
	// Entries are in the order of the file; there is at least one.
	Entries []Entry
	// Webhooks are the sources of webhooks, in the order of the file.
	Webhooks []WebhookEntry
	// Subscriptions are those of other services whose messages become events, in the order of the file.
	Subscriptions []SubscriptionEntry
}

// Entry maps one handler to its target. An optional field is zero when it is absent,
// and eventqueue.Policy has the default.
type Entry struct {
	// Line is where the entry begins, counted from 1.
	Line int
	// Key is the handler, and Canvas the one canvas that it is for; zero means
	// every canvas that has no entry of its own for this handler.
	Key    eventqueue.HandlerKey
	Canvas eventqueue.CanvasID

	// Timeout bounds one run.
	Timeout time.Duration
	// MaxRetries is how often a failed event is tried again; nil means the
	// default.
	MaxRetries *int
	// BackoffBase is the wait before the first retry, which doubles up to
	// BackoffMax. Both are set or none.
	BackoffBase, BackoffMax time.Duration
	// OrderHold is the order hold: for how long at most an event that is put off holds
	// back the next one of its ordering key. Nil means until it has ended.
	OrderHold *time.Duration
	// MaxSnoozes is how often in a row an event may be snoozed, as by a Retry-After;
	// nil means the default. MinSnooze is the shortest snooze; 0 means the default.
	MaxSnoozes *int
	MinSnooze  time.Duration
	// BreakerAfter is after how many runs in a row that did not reach the target its circuit breaker opens;
	// nil means DefaultBreakerAfter, and 0 never.
	BreakerAfter *int

	// Audience is the audience of the identity token of requests; "" sends none.
	Audience string
	// HeaderVariables maps names of headers to the variables of the environment with their
	// values: those are in Config.Header.
	HeaderVariables map[string]string
	// SigningVariables are the variables with the secrets that sign requests by Standard
	// Webhooks, which are in Config.SigningSecrets; none means that requests are not signed.
	SigningVariables []string

	target address
}

// Target is the URL of the entry without user, password and query, for logs and
// messages.
func (e Entry) Target() string { return e.target.String() }

// Policy is the policy of the entry's handler.
func (e Entry) Policy() eventqueue.Policy {
	policy := eventqueue.Policy{Timeout: e.Timeout, MaxRetries: e.MaxRetries, OrderHold: e.OrderHold,
		MaxSnoozes: e.MaxSnoozes, MinSnooze: e.MinSnooze, BreakerAfter: DefaultBreakerAfter}
	if e.BreakerAfter != nil {
		policy.BreakerAfter = *e.BreakerAfter
	}
	if e.BackoffMax > 0 {
		policy.Backoff = eventqueue.Exponential(e.BackoffBase, e.BackoffMax)
	}
	return policy
}

// Load reads a handlers file. The error is from reading it, or lists its
// mistakes, each with path and line; see Problem.
func Load(path string) (*File, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the handlers file: %w", err)
	}
	return Parse(path, data)
}

// Parse is Load for a text that has been read already; name is used as the path in
// messages. It retains no part of data.
func Parse(name string, data []byte) (*File, error) {
	p := &parser{problems: problems{file: name}}
	entries, webhooks, subscriptions := p.parse(data)
	if err := p.problems.err(); err != nil {
		return nil, err
	}
	return &File{Name: name, Entries: entries, Webhooks: webhooks, Subscriptions: subscriptions}, nil
}

// Shared is common to the targets of a file.
type Shared struct {
	// Client sends the requests. Default (nil): one from NewClient.
	Client *http.Client
	// Secret returns the value of a variable that the file names. Default (nil): that of
	// the process's environment, where it must be.
	Secret func(variable string) (string, error)
	// IDTokens gets identity tokens. Default (nil): one from NewIDTokens.
	IDTokens *IDTokens
}

// Register makes a Target for every entry and registers it with the entry's
// policy. The error names the lines whose handlers are registered already, or whose
// secrets are missing or make no sense; the others are registered
// nevertheless, so do not use the registry after an error. It contains no secret.
func (f *File) Register(handlers *eventqueue.Handlers, shared Shared) error {
	if shared.Client == nil {
		shared.Client = NewClient()
	}
	if shared.Secret == nil {
		shared.Secret = environmentSecret
	}
	if shared.IDTokens == nil {
		shared.IDTokens = NewIDTokens()
	}
	var failed []error // few: the file has each handler once
	for _, entry := range f.Entries {
		if err := entry.register(handlers, shared); err != nil {
			failed = append(failed, fmt.Errorf("%s:%d: %w", f.Name, entry.Line, err))
		}
	}
	return errors.Join(failed...)
}

func (e Entry) register(handlers *eventqueue.Handlers, shared Shared) error {
	config, err := e.config(shared)
	if err != nil {
		return err
	}
	target, err := newTarget(e.target, config)
	if err != nil {
		return err
	}
	if e.Canvas == (eventqueue.CanvasID{}) {
		return handlers.Register(e.Key, target, e.Policy())
	}
	return handlers.RegisterOn(e.Canvas, e.Key, target, e.Policy())
}

// config returns the configuration of the entry's target, with the values of the variables that it names.
func (e Entry) config(shared Shared) (config Config, err error) {
	config = Config{Client: shared.Client, Audience: e.Audience, IDTokens: shared.IDTokens, Header: http.Header{}}
	for name, variable := range e.HeaderVariables {
		value, err := shared.Secret(variable)
		if err != nil {
			return config, err
		}
		config.Header.Set(name, value)
	}
	for _, variable := range e.SigningVariables {
		value, err := shared.Secret(variable)
		if err != nil {
			return config, err
		}
		config.SigningSecrets = append(config.SigningSecrets, value)
	}
	return config, nil
}
