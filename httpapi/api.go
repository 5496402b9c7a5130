package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"github.com/danielgtaylor/huma/v2/validation"
	"go.uber.org/zap"

	"eventsv2/access"
	"eventsv2/eventqueue"
	"eventsv2/eventqueue/audit"
	"eventsv2/eventqueue/inspect"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/internal/intake"
	"eventsv2/internal/logkey"
)

// Config configures the API.
type Config struct {
	// Store and Queue are on the same database. Queue publishes the notifications of events that may run.
	Store *pgstore.Store
	Queue *eventqueue.Queue
	// Bulk has the changes of many events. The API only starts them: the program has to Run it.
	Bulk *operate.Operations
	// Access finds out who makes a request.
	Access *access.Authenticator
	// PerSecond is how many requests an identity may make per second, and twice as many at once. Default (0): 50.
	PerSecond float64
	// MaxBufferedBytes is about the memory that all current requests with a body may take together: three times their bodies, and
	// 32 KiB each. Bodies above 64 KiB of one identity take turns in 24 MiB of it. If it is used up when another one arrives, bodies
	// that are being read are cut off with 503: of the identity that takes the most, the one whose reading began first. If that does
	// not make enough room, the new request is refused. Default (0): 64 MiB. At least 26 MiB, the room for one body of 8 MiB.
	MaxBufferedBytes int64
	// Logger gets the errors that answers do not show. Default (nil): none.
	Logger *zap.Logger
}

// What bounds a request.
const (
	requestTimeout = 30 * time.Second
	// readTimeout bounds requests that change nothing, and identifyTimeout how long it takes to find out who makes one: a
	// database that accepts and never answers is named within seconds.
	readTimeout     = 10 * time.Second
	identifyTimeout = 5 * time.Second
)

// api is the handler of all operations.
type api struct {
	Config
	huma     huma.API
	reader   *inspect.Reader
	audit    *audit.Log
	tokens   *access.Tokens
	limits   *access.Limiter
	attempts *access.Attempts
	lines    intake.LogLimiter
	intake   *intake.Intake
	turns    turns
}

// guarded bounds requests, and refuses those that a page of another origin makes with a browser.
func (a *api) guarded(next http.Handler) http.Handler {
	origins := http.NewCrossOriginProtection()
	origins.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		writeProblem(w, http.StatusForbidden, access.OtherOrigin(r))
	}))
	protected := origins.Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store")
		timeout := requestTimeout
		if r.Method == http.MethodGet || r.Method == http.MethodHead {
			timeout = readTimeout
		}
		ctx, cancel := context.WithTimeout(r.Context(), timeout)
		defer cancel()
		r = r.WithContext(ctx)
		if r.ContentLength != 0 && r.Header.Get("Expect") == "" { // who expects something waits before sending
			rest := &leftover{ReadCloser: r.Body}
			r.Body = rest
			defer rest.discard(w)
		}
		protected.ServeHTTP(answerWriter{w, a.Logger}, r)
	})
}

type identityKey struct{}

// caller is the sender of a request, with its address.
type caller struct {
	access.Identity
	address string
}

func callerOf(ctx context.Context) caller { c, _ := ctx.Value(identityKey{}).(caller); return c }

// actor is the caller as the audit log names them.
func (c caller) actor() audit.Actor {
	return c.Actor(c.address, "api")
}

// takeParameters lets requests through whose path, query and headers the database can hold, and whose parameters are there once,
// or any number of times where a list is meant, and not empty: huma takes
// an empty one for absent, and so one that ought to name a key for the whole canvas.
func (a *api) takeParameters(ctx huma.Context, next func(huma.Context)) {
	r, _ := humago.Unwrap(ctx)
	if err := intake.CheckURL(r); err != nil {
		a.refuse(ctx, huma.Error400BadRequest(err.Error()))
		return
	}
	query := r.URL.Query()
	for _, p := range ctx.Operation().Parameters {
		var wrong *huma.ErrorDetail
		switch p.In {
		case "query":
			wrong = parameter(p, query[p.Name])
		case "header":
			wrong = parameter(p, r.Header.Values(p.Name))
		}
		status := http.StatusBadRequest
		if wrong == nil && p.In == "query" && p.Schema.Type == huma.TypeNumber {
			wrong, status = number(p, query.Get(p.Name)), http.StatusUnprocessableEntity
		}
		if wrong != nil {
			_ = huma.WriteErr(a.huma, ctx, status, "validation failed", wrong) // an answerWriter has no errors
			return
		}
	}
	next(ctx)
}

// parameter returns what is wrong with the values of a parameter, or nil.
func parameter(p *huma.Param, values []string) *huma.ErrorDetail {
	wrong := func(message string) *huma.ErrorDetail {
		return &huma.ErrorDetail{Location: p.In + "." + p.Name, Message: message}
	}
	if len(values) > 1 && p.Schema.Type != huma.TypeArray {
		return wrong(fmt.Sprintf("is there %d times: give it once", len(values)))
	}
	for _, value := range values {
		if err := intake.CheckText(value); err != nil {
			return wrong(err.Error())
		}
		if value == "" {
			return wrong("is empty: give it a value, or leave it out")
		}
	}
	return nil
}

// number returns what is wrong with a parameter that is there and has to be a number, or nil: huma takes one that is infinite, or none at all.
func number(p *huma.Param, value string) *huma.ErrorDetail {
	if value == "" || json.Unmarshal([]byte(value), new(float64)) == nil {
		return nil
	}
	return &huma.ErrorDetail{Location: p.In + "." + p.Name, Message: validation.MsgExpectedNumber, Value: value}
}

// authenticate lets requests through whose identity is known, and that are not too many.
func (a *api) authenticate(ctx huma.Context, next func(huma.Context)) {
	r, _ := humago.Unwrap(ctx)
	address := access.AddressOf(r)
	credentials := access.CredentialsOf(r)
	if wait := a.attempts.Wait(address, credentials); wait > 0 {
		a.tooMany(ctx, wait)
		return
	}
	within, cancel := context.WithTimeout(r.Context(), identifyTimeout)
	identity, err := a.Access.Authenticate(r.WithContext(within))
	cancel()
	switch {
	case errors.Is(err, access.ErrNoCredentials), errors.Is(err, access.ErrRefused):
		a.attempts.Refused(address, credentials)
		ctx.SetHeader("WWW-Authenticate", "Bearer")
		message := access.ErrRefused.Error()
		if errors.Is(err, access.ErrNoCredentials) {
			message = access.ErrNoCredentials.Error()
		}
		_ = huma.WriteErr(a.huma, ctx, http.StatusUnauthorized, message) // the client hung up
		return
	case err != nil:
		if errors.Is(err, context.Canceled) { // the client hung up, and an issuer may have been asked
			a.attempts.Refused(address, credentials)
			return
		}
		const failed = "could not find out who makes a request"
		a.lines.Write(failed, func() { a.Logger.Error(failed, zap.Error(err)) }, func(n int) { a.Logger.Error(failed+"; further entries were left out", zap.Int(logkey.Count, n)) })
		message := "it could not be found out who you are: try again"
		if errors.Is(err, context.DeadlineExceeded) {
			message = noAnswer + ": it could not be found out who you are, and nothing was done"
		}
		_ = huma.WriteErr(a.huma, ctx, http.StatusServiceUnavailable, message)
		return
	}
	a.attempts.Accepted(credentials)
	if wait := a.limits.Take(identity.Key); wait > 0 {
		a.tooMany(ctx, wait)
		return
	}
	next(huma.WithValue(ctx, identityKey{}, caller{identity, address}))
}

func (a *api) tooMany(ctx huma.Context, wait time.Duration) {
	ctx.SetHeader("Retry-After", strconv.Itoa(int(math.Ceil(wait.Seconds()))))
	_ = huma.WriteErr(a.huma, ctx, http.StatusTooManyRequests, "too many requests: try again later") // the client hung up
}

// errNoEvent is the answer for an event that does not exist, or whose canvas the caller may not read.
func errNoEvent() error { return huma.Error404NotFound("there is no such event") }

func errForbidden(verb access.Verb) huma.StatusError {
	return huma.Error403Forbidden("your token lacks the verb " + string(verb) + " here")
}
