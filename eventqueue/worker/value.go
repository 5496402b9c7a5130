package worker

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"go.uber.org/zap"

	"eventsv2/eventqueue"
	"eventsv2/internal/envelope"
	"eventsv2/internal/logkey"
)

// valuesAtOnce is how many large values are read at a time: a value of megabytes occupies a
// connection for long, and claims and completions need some too.
const valuesAtOnce = 2

// laterError is why a claimed event is released without a call of its handler, and tried again after a moment.
type laterError struct{ error }

func (e laterError) Unwrap() error { return e.error }

// valueReader reads the values of events that claims left out, see MaxClaimedValueBytes.
type valueReader struct {
	part
	reading chan struct{} // has an element for each value that is being read
}

func newValueReader(p part) *valueReader {
	return &valueReader{p, make(chan struct{}, valuesAtOnce)}
}

// takes is the time that reading the value may take, which a run has in addition to that of its
// handler.
func (v *valueReader) takes(f *ClaimResult) time.Duration {
	if f.ValueApart {
		return v.config.LockTimeout / 2
	}
	return 0
}

// read reads the value of a claimed event for its run. The claim is renewed meanwhile, which records
// that the run has begun: an event that is too large for its workers, and kills them, uses its
// attempts.
func (v *valueReader) read(ctx context.Context, run *eventqueue.Run) error {
	ctx, cancel := context.WithTimeout(ctx, v.config.LockTimeout/2)
	defer cancel()
	select {
	case v.reading <- struct{}{}:
		defer func() { <-v.reading }()
	case <-ctx.Done():
		return laterError{fmt.Errorf("wait until other large values are read: %w", context.Cause(ctx))}
	}
	value, held, err := v.store.Value(ctx, Claim{Event: run.ID, Attempt: run.Attempt, ID: run.ClaimID})
	switch {
	case err != nil:
		v.log.Error("could not read the value of this event, which is too large for the answer of a claim; the event is tried again by itself",
			zap.Stringer(logkey.Event, run.ID), zap.Stringer(logkey.Handler, run.Handler()), zap.Error(err))
		return laterError{fmt.Errorf("read the event's value: %w", err)}
	case !held:
		return laterError{eventqueue.ErrLockLost}
	case ctx.Err() != nil: // it came too late: the event is released, or will be
		return laterError{fmt.Errorf("read the event's value: %w", context.Cause(ctx))}
	}
	run.Value = value
	return nil
}

// decrypted is a run of an event whose value is encrypted, with the value in the clear. The run itself retains what the database
// has, for whoever is told of it. openValue is Config.OpenValue.
func decrypted(run *eventqueue.Run, openValue func(*eventqueue.Event) (json.RawMessage, error)) (*eventqueue.Run, error) {
	if openValue == nil {
		key, _ := envelope.Key(run.Value)
		return nil, fmt.Errorf("the value is encrypted with key %d, and this worker has no key set: give it one (VALUE_KEYSET_FILE, or Codec in service.Config), and retry the event", key)
	}
	value, err := openValue(&run.Event)
	if err != nil {
		return nil, err
	}
	plain := *run
	plain.Value, plain.Encrypted = value, true
	return &plain, nil
}
