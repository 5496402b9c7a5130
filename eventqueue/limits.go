package eventqueue

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"time"
	"unicode"
	"unicode/utf8"

	"eventsv2/internal/escapes"
	"eventsv2/internal/keymode"
	"eventsv2/internal/priority"
)

// MaxNameBytes is the longest module, name or modifier, in bytes of UTF-8.
const MaxNameBytes = 255

// Limits bound what can be emitted.
type Limits struct {
	// MaxValueBytes is the largest value. Default (0): 256 KiB.
	MaxValueBytes int

	// MaxDelay is how far in the future an event may be due. Default (0): 366
	// days; at most a hundred times that.
	MaxDelay time.Duration
}

func (l Limits) withDefaults() Limits {
	l.MaxValueBytes = cmp.Or(l.MaxValueBytes, 256<<10)
	l.MaxDelay = cmp.Or(l.MaxDelay, 366*24*time.Hour)
	return l
}

// maxMaxDelay keeps computations with delays, here and in the database, exact and free of
// overflows.
const maxMaxDelay = 100 * 366 * 24 * time.Hour

// Validate names the first invalid limit.
func (l Limits) Validate() error {
	if l.MaxValueBytes < 0 {
		return fmt.Errorf("MaxValueBytes is %d: it must not be negative", l.MaxValueBytes)
	}
	if l.MaxDelay < 0 {
		return fmt.Errorf("MaxDelay is %s: it must not be negative", l.MaxDelay)
	}
	if l.MaxDelay > maxMaxDelay {
		return fmt.Errorf("MaxDelay is %s: it must be at most %s", l.MaxDelay, maxMaxDelay)
	}
	return nil
}

// InvalidError describes what is wrong with one of the events to emit. Emit in all its forms
// returns it before anything is written.
type InvalidError struct {
	// Index is the position of the event among those of the call, from 0.
	Index int
	// Field is the name of the field, as in the database.
	Field string
	// Problem describes what is wrong with the field and what is allowed.
	Problem string
}

// Error names the position, the field and the problem.
func (e *InvalidError) Error() string {
	return fmt.Sprintf("event %d: %s: %s", e.Index, e.Field, e.Problem)
}

// CheckEvents returns an *InvalidError for the first of the events that cannot be accepted, or nil.
// now is the caller's time; it is only used to refuse a DelayUntil that is too far off.
func (l Limits) CheckEvents(events []NewEvent, now time.Time) error {
	l = l.withDefaults()
	for i := range events {
		if field, err := l.check(&events[i], now); err != nil {
			return &InvalidError{Index: i, Field: field, Problem: err.Error()}
		}
	}
	return nil
}

func (l Limits) check(e *NewEvent, now time.Time) (field string, err error) {
	if e.Canvas == (CanvasID{}) {
		return "canvas_id", errors.New("is missing")
	}
	if field, err := CheckHandler(e.Handler()); err != nil {
		return field, err
	}
	if err := l.checkDelay(e, now); err != nil {
		return "delay_until", err
	}
	if field, err := checkUnique(e); err != nil {
		return field, err
	}
	if err := checkAttributes(e.Attributes); err != nil {
		return "attributes", err
	}
	if e.ParentID < 0 {
		return "parent_id", fmt.Errorf("%d is the id of no event: use 0 for no parent", e.ParentID)
	}
	if err := priority.Check(e.Priority); err != nil {
		return "priority", err
	}
	if err := CheckName(e.OrderingKey); err != nil && e.OrderingKey != "" {
		return "ordering_key", err
	}
	return "value", checkValue(e.Value, l.MaxValueBytes)
}

// MaxUniqueFor is the longest time that a key may hold after the end of its event.
const MaxUniqueFor = 366 * 24 * time.Hour

func checkUnique(e *NewEvent) (field string, err error) {
	if field, err = keymode.Check(e.UniqueKey != "", e.UniqueMode, e.UniqueFor, e.MaxWait, MaxUniqueFor); err == nil && e.UniqueKey != "" {
		return "unique_key", CheckName(e.UniqueKey)
	}
	return field, err
}

func (l Limits) checkDelay(e *NewEvent, now time.Time) error {
	switch {
	case e.Delay != 0 && !e.DelayUntil.IsZero():
		return errors.New("Delay and DelayUntil are both set: set one of them")
	case e.Delay < 0:
		return fmt.Errorf("a delay of %s is negative: use 0 for at once", e.Delay)
	case e.Delay > l.MaxDelay:
		return fmt.Errorf("a delay of %s is more than the limit of %s", e.Delay, l.MaxDelay)
	case e.DelayUntil.After(now.Add(l.MaxDelay)):
		return fmt.Errorf("%s is more than the limit of %s away", e.DelayUntil.Format(time.RFC3339), l.MaxDelay)
	default:
		return nil
	}
}

// CheckHandler returns the name of the first field of a handler key that cannot
// be stored, and what is wrong with it.
func CheckHandler(k HandlerKey) (field string, err error) {
	for _, part := range []struct{ field, text string }{
		{"module", k.Module}, {"name", k.Name}, {"modifier", k.Modifier},
	} {
		if err := CheckName(part.text); err != nil {
			return part.field, err
		}
	}
	return "", nil
}

// CheckName refuses what cannot be a module, a name or a modifier: nothing, more than
// MaxNameBytes, invalid UTF-8, control characters.
func CheckName(s string) error {
	switch {
	case s == "":
		return errors.New("is empty")
	case len(s) > MaxNameBytes:
		return fmt.Errorf("is %d bytes long: the limit is %d", len(s), MaxNameBytes)
	case !utf8.ValidString(s):
		return fmt.Errorf("%q is not valid UTF-8", s)
	}
	for _, r := range s {
		if unicode.IsControl(r) {
			return fmt.Errorf("%q holds the control character %U", s, r)
		}
	}
	return nil
}

// checkValue refuses values that a text column or a strict JSON reader would refuse later, so that
// handlers see every accepted value unchanged (I8).
func checkValue(value []byte, maxBytes int) error {
	if len(value) == 0 {
		return errors.New("is empty: give a JSON text, null for nothing")
	}
	if len(value) > maxBytes {
		return fmt.Errorf("is %d bytes long: the limit is %d; keep large data elsewhere and emit a reference", len(value), maxBytes)
	}
	if !json.Valid(value) {
		return notJSON(value)
	}
	if !utf8.Valid(value) {
		return errors.New("is not valid UTF-8")
	}
	return escapes.Check(value)
}

// notJSON finds the position of the mistake, for the message.
func notJSON(value []byte) error {
	var raw json.RawMessage
	var syntax *json.SyntaxError
	if err := json.Unmarshal(value, &raw); errors.As(err, &syntax) {
		return fmt.Errorf("is not JSON, at byte %d: %w", syntax.Offset, syntax)
	}
	return errors.New("is not JSON")
}
