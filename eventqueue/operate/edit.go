package operate

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"eventsv2/eventqueue"
)

// Edit is a change of an event. At least one field is set.
type Edit struct {
	// Value is the new value; nil leaves the old one. Handlers see it byte for byte.
	Value json.RawMessage
	// Attributes take the place of all that the event has, its trace context as well; nil leaves
	// them, and an empty map removes them.
	Attributes map[string]string
	// Delay is from when the event is due, counted by the database's clock; nil leaves that. 0 is
	// now. At most one of Delay and DelayUntil may be set.
	Delay *time.Duration
	// DelayUntil is the same as a time; zero leaves it.
	DelayUntil time.Time
	// Of is the content that the edit was made from, so that it does not overwrite another edit; nil: any content. An
	// event with another content is refused as ChangeOutdated.
	Of *Content
}

// Content is the part of an event that an edit replaces. The due time is not part of it: that changes with each retry.
type Content struct {
	Value      json.RawMessage
	Attributes map[string]string
}

// Version identifies a content: others have another one. Without the Value it covers the attributes only.
func (c Content) Version() string {
	if c.Attributes == nil {
		c.Attributes = map[string]string{}
	}
	attributes, err := json.Marshal(c.Attributes)
	if err != nil {
		panic(err) // no map of texts has one
	}
	hash := sha256.New()
	_, _ = hash.Write(attributes)
	_, _ = hash.Write([]byte{0})
	_, _ = hash.Write(c.Value)
	return hex.EncodeToString(hash.Sum(nil)[:16])
}

// Retimes reports whether the edit changes when an event is due.
func (e Edit) Retimes() bool { return e.Delay != nil || !e.DelayUntil.IsZero() }

func (e Edit) isZero() bool { return e.Value == nil && e.Attributes == nil && !e.Retimes() }

// Check refuses what no event could be emitted with, and an edit that changes nothing.
func (e Edit) Check(limits eventqueue.Limits) error {
	if e.isZero() {
		return errors.New("the edit changes nothing: set a value, attributes or a time")
	}
	event := eventqueue.NewEvent{Canvas: eventqueue.CanvasID{1}, Module: "_", Name: "_", Modifier: "_",
		Value: e.Value, Attributes: e.Attributes, DelayUntil: e.DelayUntil}
	if e.Value == nil {
		event.Value = json.RawMessage("null")
	}
	if e.Delay != nil {
		if event.Delay = *e.Delay; !e.DelayUntil.IsZero() {
			return errors.New("delay_until: Delay and DelayUntil are both set: set one of them")
		}
	}
	var invalid *eventqueue.InvalidError
	if err := limits.CheckEvents([]eventqueue.NewEvent{event}, time.Now()); errors.As(err, &invalid) {
		return fmt.Errorf("%s: %s", invalid.Field, invalid.Problem)
	}
	return nil
}

// Edit changes 1 to MaxChangeEvents events that wait. It answers for every id once, in their order.
// What the limits of the queue do not allow in an emit is refused before anything is written.
//
// An event whose lock is valid is refused: its run goes on with the value that it began with. An
// expired lock is cleared as by Requeue, so that whoever held it cannot complete the event with its
// old value (I5). It blocks for two statements, and one request to the notifier for events that are
// due by the edit.
//
// Refused rows and errors are as with Cancel.
func (c *Changer) Edit(ctx context.Context, edit Edit, ids ...eventqueue.EventID) ([]Changed, error) {
	if len(ids) == 0 || len(ids) > MaxChangeEvents {
		return nil, fmt.Errorf("edit %d events: give 1 to %d ids in one call", len(ids), MaxChangeEvents)
	}
	if err := edit.Check(c.queue.Limits()); err != nil {
		return nil, fmt.Errorf("edit %d events: %w", len(ids), err)
	}
	results, err := c.store.Edit(ctx, edit, ids)
	if edit.Retimes() {
		notifyFreed(ctx, c.queue, DoneIDs(results), "edited")
	}
	if err != nil {
		return results, fmt.Errorf("edit %d events: %w", len(ids), err)
	}
	return results, nil
}
