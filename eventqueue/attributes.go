package eventqueue

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"unicode"
	"unicode/utf8"

	"eventsv2/internal/attributes"
)

// MaxAttributes is how many pairs an event may have. A key has at most 64 bytes, a value 1 KiB of
// UTF-8, and all keys and values together 8 KiB.
const MaxAttributes = 16

const (
	maxAttributeKeyBytes = 64
	maxAttributeBytes    = 1 << 10
	maxAttributesBytes   = 8 << 10
)

// WithParent returns a context in which every form of emit makes children of an event: their
// ParentID is its ID, and they have its attributes, except those that they set themselves. The
// context of a handler is such a context. Use WithParent where a handler's work goes on in another
// one, and with nil where what is emitted has nothing to do with the event.
func WithParent(ctx context.Context, event *Event) context.Context {
	return context.WithValue(ctx, attributes.ParentKey{}, event)
}

// ParentOf returns the event whose children are emitted in ctx: in a handler, and in what it calls
// with its context, the event that it runs. nil: there is none. Do not change the event.
func ParentOf(ctx context.Context) *Event {
	parent, _ := ctx.Value(attributes.ParentKey{}).(*Event)
	return parent
}

// heritage holds the attributes that the events of one emit inherit.
type heritage struct {
	parent      *Event // nil for none
	traceparent string // of the emit's ctx; empty for none
	of          map[string]string
}

func heritageOf(ctx context.Context, traceparent string) heritage {
	h := heritage{parent: ParentOf(ctx), traceparent: traceparent}
	if h.parent != nil {
		h.of = attributes.Inherited(h.parent.Attributes)
	}
	return h
}

// none reports whether there is nothing to inherit, as for most emits outside of handlers.
func (h *heritage) none() bool { return h.parent == nil && h.traceparent == "" }

// give has an event inherit: the parent, its attributes, and the trace context, which takes the
// place of the parent's. What the event has itself stays. The maps of both are not changed. A trace
// context for which there is no room is left out: a trace refuses no event.
func (h *heritage) give(e *NewEvent) error {
	if h.parent != nil && e.ParentID == 0 {
		e.ParentID = h.parent.ID
	}
	merged := attributes.Over(h.of, e.Attributes)
	if err := checkSize(merged); err != nil && len(e.Attributes) > 0 {
		return fmt.Errorf("with those that it inherits from event %s it %w; leave some out, or emit with WithParent(ctx, nil), which inherits nothing",
			h.parent.ID, err)
	}
	if _, own := e.Attributes[attributes.Traceparent]; !own {
		merged = withTrace(merged, h.traceparent)
	}
	e.Attributes = merged
	return nil
}

// withTrace returns attributes with a trace context, if there is one and room for it.
func withTrace(of map[string]string, traceparent string) map[string]string {
	if traceparent == "" || of[attributes.Traceparent] == traceparent {
		return of
	}
	traced := attributes.Over(of, map[string]string{attributes.Traceparent: traceparent})
	if checkSize(traced) != nil {
		return of
	}
	return traced
}

// checkSize refuses too many attributes, and attributes that are too large together.
func checkSize(of map[string]string) error {
	if n := len(of); n > MaxAttributes {
		return fmt.Errorf("has %d pairs: the limit is %d", n, MaxAttributes)
	}
	if n := attributes.Bytes(of); n > maxAttributesBytes {
		return fmt.Errorf("has %d bytes of keys and values: the limit is %d", n, maxAttributesBytes)
	}
	return nil
}

// checkAttributes refuses attributes that could not be stored, or not be sent as headers.
func checkAttributes(of map[string]string) error {
	if len(of) == 0 {
		return nil
	}
	if err := checkSize(of); err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(of)) {
		if err := CheckAttribute(key, of[key]); err != nil {
			return err
		}
	}
	return nil
}

// CheckAttribute refuses what cannot be an attribute: a key that is not 1 to maxAttributeKeyBytes
// lower-case letters, digits, dots, hyphens and underscores, and a value of more than
// maxAttributeBytes, of invalid UTF-8, or with control characters.
func CheckAttribute(key, value string) error {
	switch {
	case key == "":
		return errors.New("has a pair whose key is empty")
	case len(key) > maxAttributeKeyBytes:
		return fmt.Errorf("has a key of %d bytes: the limit is %d", len(key), maxAttributeKeyBytes)
	}
	for _, c := range []byte(key) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' && c != '.' && c != '-' {
			return fmt.Errorf("has the key %q: a key has lower-case letters (a to z), digits, _, . and - only", key)
		}
	}
	switch {
	case len(value) > maxAttributeBytes:
		return fmt.Errorf("has %d bytes at %q: the limit of a value is %d; what is larger belongs into the value of the event", len(value), key, maxAttributeBytes)
	case !utf8.ValidString(value):
		return fmt.Errorf("has %q at %q, which is not valid UTF-8", value, key)
	}
	for _, r := range value {
		if unicode.IsControl(r) {
			return fmt.Errorf("has the control character %U at %q", r, key)
		}
	}
	return nil
}
