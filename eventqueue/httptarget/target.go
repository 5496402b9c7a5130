package httptarget

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"syscall"
	"time"

	"eventsv2/eventqueue"
)

// Config configures a Target.
type Config struct {
	// URL is where events are POSTed: absolute, http or https. A user and
	// password in it are sent as basic authentication and never printed.
	URL string

	// Client sends the requests. Redirects are not followed, whatever its CheckRedirect
	// returns. Default (nil): a client of its own, from NewClient. Only a client from there
	// sends a request again that a used connection has lost.
	Client *http.Client

	// Audience has requests carry an identity token of Google for this audience, as
	// Authorization: Bearer. The URL then has to be https, or lead to this machine, and
	// has no user. Default (""): no token.
	Audience string

	// IDTokens gets the tokens. Default (nil), if there is an Audience: its own.
	IDTokens *IDTokens

	// Header is sent with each request. It cannot have what the worker itself sends: ce-…,
	// webhook-…, and those of HTTP. Its values are never printed. Default (nil): none.
	Header http.Header

	// SigningSecrets have each request signed by Standard Webhooks, once by each of them,
	// with the id of the event as webhook-id: base64, with or without whsec_. Default
	// (nil): requests are not signed.
	SigningSecrets []string

	// Answers is what becomes of the bodies of 2xx answers. Default (""): IgnoreAnswers.
	Answers Answers
}

// Target is an eventqueue.Handler that POSTs events to one URL. It is safe for
// concurrent use.
type Target struct {
	to          address
	client      *http.Client
	credentials credentials
	answers     Answers

	// byEvent means that the modifier of events is their handling key, which is their type as CloudEvents.
	byEvent bool

	// bodyTime is how long the body of an answer may take. The body does not affect
	// the outcome, so it must not delay the worker.
	bodyTime time.Duration
}

// New makes a Target. It makes no connection; the error names the field that is wrong,
// and contains no secret.
func New(config Config) (*Target, error) {
	to, err := parseAddress(config.URL)
	if err != nil {
		return nil, fmt.Errorf("httptarget.New: URL %w", err)
	}
	target, err := newTarget(to, config)
	if err != nil {
		return nil, fmt.Errorf("httptarget.New: %w", err)
	}
	return target, nil
}

// newTarget is New for an address in place of the URL.
func newTarget(to address, config Config) (*Target, error) {
	switch config.Answers {
	case IgnoreAnswers, EmitAnswers, RetainAnswers:
	default:
		return nil, fmt.Errorf("Answers is %q: it is IgnoreAnswers, EmitAnswers or RetainAnswers", config.Answers)
	}
	credentials, err := newCredentials(to, config)
	if err != nil {
		return nil, err
	}
	client := config.Client
	if client == nil {
		client = NewClient()
	}
	still := *client
	still.CheckRedirect = stayHere
	return &Target{to: to, client: &still, credentials: credentials, answers: config.Answers, bodyTime: 2 * time.Second}, nil
}

// String is the URL without user, password and query, for logs.
func (t *Target) String() string { return t.to.String() }

// Handle POSTs the event of the run and blocks until the target has answered or
// ctx ends. The package comment says which answer is which outcome.
func (t *Target) Handle(ctx context.Context, run *eventqueue.Run) error {
	event := &run.Event
	sending, cancel := context.WithCancel(ctx)
	defer cancel()
	request, err := newRequest(sending, t.to, event)
	if err != nil {
		return fmt.Errorf("make the request for event %s to %s: %w", event.ID, t.to, err)
	}
	if t.byEvent {
		request.Header.Set("Ce-Type", percentEncode(event.Modifier))
	}
	what := sent{id: event.ID.String(), body: event.Value, encrypted: event.Encrypted}
	switch t.answers {
	case EmitAnswers:
		what.answered = func(response *http.Response) error { return t.emit(ctx, run, request.Header, response) }
	case RetainAnswers:
		what.answered = func(response *http.Response) error { return t.keep(ctx, run, response) }
	case IgnoreAnswers:
	}
	return t.send(ctx, cancel, request, what)
}

// concealed is in place of what a target has answered to an event whose value is encrypted.
const concealed = "its text is left out, as it may repeat the value, which is encrypted"

// sent is what a request has.
type sent struct {
	id        string // that it is signed with
	body      []byte
	encrypted bool // the target gets what nobody else may read
	mixed     bool // what the target says may be of an event of another canvas
	together  bool // it has several events, of which any may be at fault
	// answered is called for a 2xx answer, whose body it reads and closes; nil: the status alone counts.
	answered func(*http.Response) error
}

// send sends a request and returns the outcome of the runs that it is for. ctx is theirs, and cancel ends the request.
func (t *Target) send(ctx context.Context, cancel func(), request *http.Request, what sent) error {
	token, err := t.credentials.apply(ctx, request, what.id, what.body)
	if err != nil {
		return unanswered(ctx, fmt.Errorf("POST %s: not sent: %w", t.to, err))
	}
	response, err := t.client.Do(request)
	var refused *AddressError
	switch {
	case errors.As(err, &refused):
		return eventqueue.Permanent(fmt.Errorf("POST %s: %w", t.to, refused))
	case err != nil:
		return t.noAnswer(ctx, what.encrypted, err)
	case what.answered != nil && response.StatusCode >= 200 && response.StatusCode <= 299:
		return what.answered(response)
	}
	received := time.Now()
	tooSlow := time.AfterFunc(t.bodyTime, cancel)
	defer tooSlow.Stop()
	excerpt, location := t.credentials.redact(drainBody(response), request.Header), t.credentials.redact(newLocation(response.Header), request.Header)
	if what.encrypted && excerpt+location != "" {
		excerpt, location = concealed, ""
	}
	if what.mixed && excerpt+location != "" {
		excerpt, location = "its text is left out, as it may be about an event of another canvas", ""
	}
	err = verdict(answer{
		status:   response.StatusCode,
		header:   response.Header,
		excerpt:  excerpt,
		location: location,
		received: received,
		token:    token != "",
	})
	if token != "" && response.StatusCode == http.StatusUnauthorized {
		t.credentials.tokens.Refused(t.credentials.audience, token)
	}
	if err != nil {
		err = fmt.Errorf("POST %s: %w", t.to, err)
	}
	if err != nil && what.together && blamesRequest(response.StatusCode) {
		return togetherError{fmt.Errorf("one of the events of a request may be at fault, so each is sent again alone: %w", err)}
	}
	return err
}

// noAnswer is the error of a run whose request got no answer, or not all of it.
func (t *Target) noAnswer(ctx context.Context, encrypted bool, err error) error {
	err = fmt.Errorf("POST %s: no answer: %w", t.to, reason(ctx, encrypted, err))
	if ctx.Err() == nil && brokenInHand(err) {
		return lostError{err}
	}
	return unanswered(ctx, err)
}

// unanswered says that the target counts as away, unless the run ended for a reason of its worker's.
func unanswered(ctx context.Context, err error) error {
	if ctx.Err() != nil && !errors.Is(context.Cause(ctx), eventqueue.ErrTimeout) {
		return err
	}
	return eventqueue.Unavailable(err, 0)
}

// lostError is the error of a run that the target had in hand when its connections broke, as when its process dies: because
// of this request, or of another one.
type lostError struct{ error }

func (e lostError) Unwrap() error { return e.error }

// Lost makes the event a suspect; see docs/guarantees.md.
func (lostError) Lost() bool { return true }

// brokenInHand reports whether a connection broke that was there when the request was sent.
func brokenInHand(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// reason removes the wrapper of the HTTP client, which repeats the URL, and prefers
// the cause for which the context of the run ended. What a target has sent in place of an answer may repeat the value.
func reason(ctx context.Context, encrypted bool, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var wrapper *url.Error
	if errors.As(err, &wrapper) {
		err = wrapper.Err
	}
	if encrypted && !brokenInHand(err) && !errors.As(err, new(net.Error)) && !errors.As(err, new(*tls.CertificateVerificationError)) {
		return errors.New("what came is not HTTP; it is left out, as it may repeat the value, which is encrypted")
	}
	return err
}
