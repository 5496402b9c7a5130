package httptarget

import (
	"net/http"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/batch"
)

// DefaultBreakerAfter is the BreakerAfter of the policy of a handler of the file that sets none.
const DefaultBreakerAfter = 20

// Entry maps one handler to its target. An optional field is zero when it is absent,
// and eventqueue.Policy has the default.
type Entry struct {
	// Line is where the entry begins, counted from 1.
	Line int
	// Key is the handler, and Canvas the one canvas that it is for; zero means
	// every canvas that has no entry of its own for this handler.
	Key    eventqueue.HandlerKey
	Canvas eventqueue.CanvasID

	// Event is the handling key of the events that the handler gets, with those below it: a handler of order also
	// gets order.placed. Each handler of an event has an event of its own for it. Key is then that of the events that it has for
	// Event itself; for those below it the modifier is their handling key. "": events are emitted for Key, and for no other
	// handler.
	Event string

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
	// Answers is as in Config.
	Answers Answers
	// BatchSize is how many events one request may have, of which the first waits for the others no longer than BatchWait; 0: each
	// event is a request.
	BatchSize int
	BatchWait time.Duration

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

// newHandler returns what runs the events of the entry, all of them.
func (e *Entry) newHandler(shared Shared) (eventqueue.Handler, error) {
	config, err := e.config(shared)
	if err != nil {
		return nil, err
	}
	target, err := newTarget(e.target, config)
	if err != nil {
		return nil, err
	}
	target.byEvent = e.Event != ""
	if e.BatchSize == 0 {
		return target, nil
	}
	handler, err := batch.Handler(e.BatchSize, e.BatchWait, target.HandleBatch)
	if err != nil {
		return nil, err
	}
	return &inBatches{handler}, nil
}

// inBatches is a handler that can be told from others, so that a worker has one circuit breaker for all events of a target.
type inBatches struct{ eventqueue.Handler }

func (e *Entry) registerAt(handlers *eventqueue.Handlers, key eventqueue.HandlerKey, handler eventqueue.Handler) error {
	if e.Canvas == (eventqueue.CanvasID{}) {
		return handlers.Register(key, handler, e.Policy())
	}
	return handlers.RegisterOn(e.Canvas, key, handler, e.Policy())
}

// config returns the configuration of the entry's target, with the values of the variables that it names.
func (e Entry) config(shared Shared) (config Config, err error) {
	config = Config{Client: shared.Client, Audience: e.Audience, IDTokens: shared.IDTokens, Header: http.Header{}, Answers: e.Answers}
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
