package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/inspect"
)

// Outcome is how an event has ended.
type Outcome struct {
	// Status is how it ended. Where the history does not keep completed events, one that is gone has completed.
	Status inspect.LogStatus
	// Result is what its handler has set with Run.SetResult, in the clear; nil if it has not, or the history does not keep it.
	Result json.RawMessage
	// LastError is that of a failed event, and Reason that of a cancelled one.
	LastError, Reason string
}

// ErrNoResult is the error of Decode if there is no result.
var ErrNoResult = errors.New("the event has no result: its handler has set none, it did not complete, or the history does not keep completed events (RETAIN_HISTORY)")

// Decode decodes the result into a variable, as encoding/json does. Without one its error is ErrNoResult.
func (o Outcome) Decode(result any) error {
	if o.Result == nil {
		return fmt.Errorf("%w; its status is %s", ErrNoResult, o.Status)
	}
	return json.Unmarshal(o.Result, result)
}

// Await waits until an event has ended, and says how. Call it after the emit is committed: an event that is not there has
// completed. While retries are left, a failed attempt ends nothing, so give ctx a deadline; its error is then that of ctx. See
// [inspect.Reader.Await].
func (s *Service) Await(ctx context.Context, id eventqueue.EventID) (Outcome, error) {
	ended, err := inspect.NewIn(s.config.Schema, s.pool).Await(ctx, id)
	if err != nil {
		return Outcome{}, err
	}
	if ended == nil {
		return Outcome{Status: inspect.LogCompleted}, nil
	}
	outcome := Outcome{Status: ended.Status, Result: ended.Result, LastError: ended.LastError, Reason: ended.Reason}
	if s.config.Codec != nil && outcome.Result != nil {
		if outcome.Result, err = s.config.Codec.OpenResult(&ended.Event, ended.Result); err != nil {
			return Outcome{}, fmt.Errorf("await the end of event %s: %w", id, err)
		}
	}
	return outcome, nil
}
