package service

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/inspect"
	"eventsv2/internal/envelope"
)

// Outcome is how an event has ended.
type Outcome struct {
	// Status is how it ended. "": it is neither in the queue nor in the history. Then it has completed where the history does not
	// retain completed events, or was deleted, by an operator or with the history, or there never was one.
	Status inspect.LogStatus
	// Result is what its handler has set with Run.SetResult, in the clear; nil if it has not.
	Result json.RawMessage
	// LastError is that of a failed event, and Reason that of a cancelled one.
	LastError, Reason string
}

// ErrNoResult is the error of Decode if there is no result.
var ErrNoResult = errors.New("the event has no result: its handler has set none, it did not complete, the history does not retain completed events (RETAIN_HISTORY), or it is a typed event, whose handlers have events of their own")

// Decode decodes the result into a variable, as encoding/json does. Without one its error is ErrNoResult.
func (o Outcome) Decode(result any) error {
	if o.Result == nil {
		return fmt.Errorf("%w; its status is %s", ErrNoResult, cmp.Or(string(o.Status), "not known, as it has left the queue and is not in the history"))
	}
	return json.Unmarshal(o.Result, result)
}

// Await waits until an event has ended, and says how. Call it after the emit is committed: an event that is not in the queue has
// ended. While retries are left, a failed attempt ends nothing, so give ctx a deadline; the error is then that of ctx. An error
// of the database ends the wait, not the event. Of a typed event it awaits the dispatch, which has no result. See [inspect.Reader.Await].
func (s *Service) Await(ctx context.Context, id eventqueue.EventID) (Outcome, error) {
	ended, err := inspect.NewIn(s.config.Schema, s.pool).Await(ctx, id)
	if err != nil {
		return Outcome{}, err
	}
	if ended == nil {
		return Outcome{}, nil
	}
	outcome := Outcome{Status: ended.Status, Result: ended.Result, LastError: ended.LastError, Reason: ended.Reason}
	switch key, encrypted := envelope.Key(outcome.Result); {
	case !encrypted:
	case s.config.Codec == nil:
		return Outcome{}, fmt.Errorf("await the end of event %s: its result is encrypted with key %d, and this program has no Codec: set that of service.Config", id, key)
	default:
		if outcome.Result, err = s.config.Codec.OpenResult(&ended.Event, ended.Result); err != nil {
			return Outcome{}, fmt.Errorf("await the end of event %s: %w", id, err)
		}
	}
	return outcome, nil
}
