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

// Source is who sends webhooks to one path.
type Source struct {
	// Name is the last part of the path: letters, digits, - and _, at most 64.
	Name string

	// Canvas is the only one whose path is served; it wins over a Source of the same
	// name for all canvases, which is what the zero value means.
	Canvas eventqueue.CanvasID

	// Verifier tells whether a request is genuine.
	Verifier Verifier

	// Cast makes events of a genuine request. No event and no error: it is ignored,
	// and the sender is told that all is well.
	Cast Caster
}

// Request is one delivery. Its parts are not to be changed.
type Request struct {
	Canvas eventqueue.CanvasID
	Source string
	Header http.Header
	// Body is as it came, byte for byte.
	Body []byte
	// Received is the time of this process's clock.
	Received time.Time

	// Verified is for the Caster: what the Verifier said.
	Verified
}

// Verified is what a Verifier says of a genuine request.
type Verified struct {
	// Delivery is the same when the sender sends the same again, and never else.
	// Empty: the sender has no such thing.
	Delivery string

	// Type is what the sender calls this kind of event, if it does.
	Type string

	// Reply, if not nil, is the answer to a request that is no event but part of the
	// scheme, as a challenge is: nothing is emitted.
	Reply []byte
}

// Verifier tells whether a request is genuine. It must not interpret the body
// before it knows. An error, which goes to the log and not to the sender, says
// what is wrong, without secrets and signatures. It is used concurrently.
type Verifier interface {
	Verify(r *Request) (Verified, error)
}

// VerifierFunc is a function as a Verifier.
type VerifierFunc func(r *Request) (Verified, error)

// Verify calls f.
func (f VerifierFunc) Verify(r *Request) (Verified, error) { return f(r) }

// Caster makes events of a genuine request. Their canvas is set afterwards. The
// first event without a UniqueKey of its own gets one, of the delivery, is written
// before the others, which keep their order, and when the key has been seen before
// none is emitted. If all have keys of their own, these alone tell repeats.
// ErrUnusable says that there is nothing to make events of and never will be;
// after any other error the sender may try again. It is used concurrently.
type Caster func(ctx context.Context, r *Request) ([]eventqueue.NewEvent, error)

// ErrUnusable is returned, wrapped or not, by a Caster for a request that is
// genuine and of no use. The sender gets 400.
var ErrUnusable = errors.New("the request cannot be made an event")

// ToHandler casts each request to one event for a handler, with the body as its
// value, which has to be JSON.
func ToHandler(key eventqueue.HandlerKey) Caster {
	return func(_ context.Context, r *Request) ([]eventqueue.NewEvent, error) {
		if !json.Valid(r.Body) {
			return nil, fmt.Errorf("%w: the body is not JSON; have the sender send application/json", ErrUnusable)
		}
		return []eventqueue.NewEvent{{Module: key.Module, Name: key.Name, Modifier: key.Modifier, Value: r.Body}}, nil
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
