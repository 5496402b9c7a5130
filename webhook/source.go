package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"time"

	"eventsv2/eventqueue"
)

// Source is a sender of webhooks, with a path of its own.
type Source struct {
	// Name is the last part of the path: letters, digits, - and _, at most 64.
	Name string

	// Canvas is the only canvas on whose path this Source is served. There it takes
	// precedence over a Source of the same name for all canvases, which is what the zero
	// value means.
	Canvas eventqueue.CanvasID

	// Scheme is the name of its scheme, for whoever looks at its counts; empty: one of the program's own.
	Scheme string

	// Verifier decides whether a request is genuine.
	Verifier Verifier

	// RefuseOverLimit has Config.Check asked before the events of a request are written. Default (false): they are
	// accepted, and wait in the queue until its rate limits have room. Set it for senders that try again after 429,
	// which GitHub and GitLab do not.
	RefuseOverLimit bool

	// Cast makes events of a genuine request. If it returns no event and no error, the
	// request is ignored, and the answer is 2xx.
	Cast Caster
}

// Request is one delivery. It must not be changed.
type Request struct {
	Canvas eventqueue.CanvasID
	Source string
	// Header may be forged, except for the parts that the scheme signs: no Caster should
	// depend on it.
	Header http.Header
	// Body is as received, byte for byte.
	Body []byte
	// Received is the time of this process's clock.
	Received time.Time

	// Verified is the result of the Verifier.
	Verified
}

// Verified is the result of a Verifier for a genuine request.
type Verified struct {
	// Delivery identifies a delivery: a repeat has the same, and no other delivery has
	// it. Empty means that repeats are not recognised.
	Delivery string

	// Type is the sender's name for this type of event, if it has one.
	Type string

	// Value, if not nil, is the value of the event that ToHandler makes, in place of the body: for schemes that
	// wrap it.
	Value []byte
	// OrderingKey and Attributes are those of the event that ToHandler makes.
	OrderingKey string
	Attributes  map[string]string

	// Reply, if not nil, is the answer to a request that is part of the scheme, such as
	// a challenge: no event is emitted.
	Reply []byte
}

// Verifier decides whether a request is genuine. It must not interpret the body
// before that. Its error says what is wrong, without secrets and signatures; it is
// logged, and not sent. It wraps ErrUnavailable if nobody can say at the moment, and
// ErrUnusable for a request that is genuine. A Verifier is used concurrently.
type Verifier interface {
	Verify(r *Request) (Verified, error)
}

// VerifierFunc is a function as a Verifier.
type VerifierFunc func(r *Request) (Verified, error)

// Verify calls f.
func (f VerifierFunc) Verify(r *Request) (Verified, error) { return f(r) }

// Caster makes events of a genuine request. Their canvas is set afterwards. The
// first event without a UniqueKey of its own gets the key of the delivery and is
// written first; the others follow in their order. If that key is taken, no event is
// emitted. If all events have keys of their own, only these identify repeats.
// ErrUnusable means that no events can ever be made of this request; after any other
// error the sender may try again. A Caster is used concurrently.
type Caster func(ctx context.Context, r *Request) ([]eventqueue.NewEvent, error)

// ErrUnusable is returned, wrapped or not, by a Caster, or a Verifier, for a genuine request of
// which it can make no event. The answer is 400.
var ErrUnusable = errors.New("the request cannot be made an event")

// ErrUnavailable is returned, wrapped or not, by a Verifier that could not find out whether a
// request is genuine. The answer is 503, after which senders try again.
var ErrUnavailable = errors.New("nobody can say at the moment whether the request is genuine")

// payload is what the scheme wraps, or else the body.
func (v Verified) payload(body []byte) []byte {
	if v.Value != nil {
		return v.Value
	}
	return body
}

// ToHandler casts each request to one event for a handler, with the body, or what the
// scheme has found in it, as its value, which has to be JSON.
func ToHandler(key eventqueue.HandlerKey) Caster {
	return func(_ context.Context, r *Request) ([]eventqueue.NewEvent, error) {
		value := r.payload(r.Body)
		if !json.Valid(value) {
			return nil, fmt.Errorf("%w: the body, or the data of the message, is not JSON; have the sender send application/json", ErrUnusable)
		}
		return []eventqueue.NewEvent{{Module: key.Module, Name: key.Name, Modifier: key.Modifier, Value: value,
			OrderingKey: r.OrderingKey, Attributes: r.Attributes}}, nil
	}
}

// ByType casts by the sender's type of event, and ignores types that are not
// named.
func ByType(casters map[string]Caster) Caster {
	return func(ctx context.Context, r *Request) ([]eventqueue.NewEvent, error) {
		cast, ok := casters[r.Type]
		if !ok {
			return nil, nil
		}
		return cast(ctx, r)
	}
}

var sourceName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

func (s Source) validate() error {
	switch {
	case !sourceName.MatchString(s.Name):
		return fmt.Errorf("source %q: a name is 1 to 64 letters, digits, - and _", s.Name)
	case s.Verifier == nil:
		return fmt.Errorf("source %q: Verifier must not be nil", s.Name)
	case s.Cast == nil:
		return fmt.Errorf("source %q: Cast must not be nil", s.Name)
	default:
		return nil
	}
}
