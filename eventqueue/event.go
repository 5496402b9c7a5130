package eventqueue

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"
)

// EventID identifies an event for ever. It comes from the sequence events_id_seq and is never
// reused.
type EventID int64

// String returns the id in decimal, as it stands in the database.
func (id EventID) String() string { return strconv.FormatInt(int64(id), 10) }

// CanvasID is the tenant that an event belongs to.
type CanvasID uuid.UUID

// ParseCanvasID reads a uuid in its usual form of 36 characters.
func ParseCanvasID(s string) (CanvasID, error) {
	id, err := uuid.Parse(s)
	if err != nil || len(s) != 36 {
		return CanvasID{}, fmt.Errorf("canvas_id %q is not a uuid: write it as 8-4-4-4-12 hexadecimal digits", s)
	}
	return CanvasID(id), nil
}

// String returns the canvas as a lower-case uuid.
func (c CanvasID) String() string { return uuid.UUID(c).String() }

// MarshalText writes the canvas as a uuid.
func (c CanvasID) MarshalText() ([]byte, error) { return uuid.UUID(c).MarshalText() }

// UnmarshalText reads what MarshalText writes.
func (c *CanvasID) UnmarshalText(text []byte) error {
	id, err := ParseCanvasID(string(text))
	if err != nil {
		return err
	}
	*c = id
	return nil
}

// HandlerKey names a handler; together with the canvas it says exactly which
// code an event is for. Keys are compared byte by byte.
type HandlerKey struct {
	Module   string
	Name     string
	Modifier string
}

// String returns the key as module/name/modifier, for logs and messages.
func (k HandlerKey) String() string { return k.Module + "/" + k.Name + "/" + k.Modifier }

// NewEvent is an event as its emitter passes it in.
type NewEvent struct {
	Canvas   CanvasID
	Module   string
	Name     string
	Modifier string

	// Value is the JSON text that the handler will see, byte for byte (I8).
	Value json.RawMessage

	// DelayUntil is the earliest time at which the event may run, by the database's clock (I6). The
	// zero value and a time in the past mean at once. Set DelayUntil or Delay, not both.
	DelayUntil time.Time

	// Delay is the same, relative to the database's clock at the time of the emit, so that the
	// emitter's clock does not matter. A negative delay is refused.
	Delay time.Duration

	// OrderingKey, when it is not empty, puts the event into an ordering group: events of one
	// canvas with the same key run one at a time and in the order in which they were emitted,
	// whatever handlers they are for; see docs/ordering.md. A delayed event joins the group when it
	// is due. It is at most MaxNameBytes long, without control characters.
	OrderingKey string

	// Attributes are small texts that go with the event: to its handler, as extensions of a
	// CloudEvent to an HTTP target, into the history, and to the events that its handler emits; for
	// example a request id, a user, a source. At most MaxAttributes pairs; see CheckAttribute. The
	// attribute traceparent is the W3C trace context of the emit's ctx, unless it is set here.
	Attributes map[string]string

	// ParentID is the event that caused this one. 0: the event whose handler emits, known by ctx
	// (see WithParent), or none. It is not checked that there is such an event.
	ParentID EventID

	// UniqueKey, when it is not empty, stands for this event on its canvas, for as long as UniqueMode
	// says: emitting the key again inserts nothing and returns the id of this event, whatever else is
	// in the new one. It is at most MaxNameBytes long, without control characters.
	UniqueKey string

	// UniqueMode is until_end ("" means that), until_start or replace, as docs/unique.md has them: for how
	// long the key stands for an event, and whether this one replaces what waits under it.
	UniqueMode string

	// UniqueFor is how long the key holds after the event has ended, completed or
	// FAILED, in seconds, rounded up. 0: not beyond the end. At most MaxUniqueFor.
	// What counts is the UniqueFor of the event that was inserted, not that of the
	// repeat.
	UniqueFor time.Duration

	// MaxWait bounds replace: the event is due at most MaxWait after its first emit. 0: no bound.
	MaxWait time.Duration

	// Priority is high, normal ("" means that) or low, as docs/priority.md has them.
	Priority string
}

// Handler is the key of the handler that the event is for.
func (e NewEvent) Handler() HandlerKey { return HandlerKey{e.Module, e.Name, e.Modifier} }

// addressed returns the events with the canvas, module and modifier of missing where they
// name none. It does not change the caller's slice.
func addressed(events []NewEvent, missing *NewEvent) []NewEvent {
	copied := false
	for i := range events {
		e := events[i]
		e.Canvas = cmp.Or(e.Canvas, missing.Canvas)
		e.Module = cmp.Or(e.Module, missing.Module)
		e.Modifier = cmp.Or(e.Modifier, missing.Modifier)
		if e.Canvas == events[i].Canvas && e.Handler() == events[i].Handler() {
			continue
		}
		if !copied {
			events, copied = slices.Clone(events), true
		}
		events[i] = e
	}
	return events
}

// Event is an event as its handler sees it.
type Event struct {
	ID       EventID
	Canvas   CanvasID
	Module   string
	Name     string
	Modifier string
	Value    json.RawMessage

	// Encrypted says to the handler that the database has its Value encrypted (package valuecodec), so that errors and logs
	// should have nothing of it.
	Encrypted bool

	// Attributes are those that the event was emitted with, and those that it inherited. Do not
	// change the map: events that are emitted meanwhile inherit from it.
	Attributes map[string]string

	// ParentID is the event whose handler emitted this one; 0 for none.
	ParentID EventID

	// OrderingKey, UniqueKey and Priority are those that the event was emitted with, or has from the event
	// that it goes on for; "" for none.
	OrderingKey, UniqueKey, Priority string

	// Retries counts the runs of this event that failed so far: errors,
	// panics, time-outs, and workers that died while they held its lock.
	Retries    int
	DelayUntil time.Time
	EnqueuedAt time.Time
}

// Handler is the key of the handler that the event is for.
func (e Event) Handler() HandlerKey { return HandlerKey{e.Module, e.Name, e.Modifier} }

// Notification suggests to try the event, without a trace context.
func (e Event) Notification() Notification { return Notification{Event: e.ID, Canvas: e.Canvas} }

// CanvasHandler is a handler on one canvas.
type CanvasHandler struct {
	Canvas CanvasID
	Key    HandlerKey
}
