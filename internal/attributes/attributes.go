// Package attributes reads and writes the attributes of events as they stand in the
// database, and has the key under which a context carries the event that is being run.
package attributes

import (
	"bytes"
	"encoding/json"
	"maps"
	"strconv"
)

// Traceparent is the attribute that holds the W3C trace context of the emitter.
const Traceparent = "traceparent"

// ReplayedFrom is the attribute of an event that was emitted again from the history: the id of the one that it repeats.
const ReplayedFrom = "replayed_from"

// OriginalOf returns the id of the event that one with these attributes repeats; 0 if it repeats none.
func OriginalOf(of map[string]string) int64 {
	id, err := strconv.ParseInt(of[ReplayedFrom], 10, 64)
	if err != nil || id < 0 {
		return 0
	}
	return id
}

// Inherited returns the attributes that children inherit from a parent: all but the event that it repeats.
func Inherited(of map[string]string) map[string]string {
	if _, replayed := of[ReplayedFrom]; !replayed {
		return of
	}
	of = maps.Clone(of)
	delete(of, ReplayedFrom)
	return of
}

// ParentKey is the key of a context's value that is the event whose handler runs in it.
type ParentKey struct{}

// Encode returns attributes as JSON with sorted keys; empty for none.
func Encode(attributes map[string]string) string {
	if len(attributes) == 0 {
		return ""
	}
	text, err := json.Marshal(attributes)
	if err != nil {
		panic("attributes: strings cannot be written as JSON: " + err.Error())
	}
	return string(text)
}

// Decode reads attributes. In rows that were written by hand anything may stand: what is no object
// has no attributes, and a value that is no string is empty.
func Decode(text []byte) map[string]string {
	if len(text) == 0 {
		return nil
	}
	var attributes map[string]string
	_ = json.Unmarshal(text, &attributes) // which has read what could be read
	if len(attributes) == 0 {
		return nil
	}
	return attributes
}

// OriginSQL is the expression for the parent, the keys, the priority and the attributes of an event e in one text, which
// DecodeOrigin reads; NULL for an event that has none of them, as most have. No key has a control character.
const OriginSQL = `CASE WHEN e.attributes IS NOT NULL OR e.parent_id IS NOT NULL OR e.unique_key IS NOT NULL OR e.priority IS NOT NULL OR e.ordering_key <> ''
        THEN concat(e.parent_id, chr(31), e.ordering_key, chr(31), e.unique_key, chr(31), e.priority, chr(31), e.attributes) END`

// Origin is what an event has from its emitter beside its value.
type Origin struct {
	Parent                 int64 // 0 for none
	OrderingKey, UniqueKey string
	Priority               string // "" for normal
	Attributes             map[string]string
}

// DecodeOrigin reads the text of OriginSQL. In rows that were written by hand anything may stand.
func DecodeOrigin(text []byte) (o Origin) {
	if len(text) == 0 { // as nearly always
		return o
	}
	parts := bytes.SplitN(text, []byte{31}, 5)
	if len(parts) < 5 {
		return o
	}
	o.Parent, _ = strconv.ParseInt(string(parts[0]), 10, 64) // 0 if there is none
	o.OrderingKey, o.UniqueKey, o.Priority, o.Attributes = string(parts[1]), string(parts[2]), string(parts[3]), Decode(parts[4])
	return o
}

// Bytes is the size of attributes, by which they are limited.
func Bytes(attributes map[string]string) (n int) {
	for key, value := range attributes {
		n += len(key) + len(value)
	}
	return n
}

// Over returns base with the attributes of own added, which replace those of base. It changes
// neither, and may return either.
func Over(base, own map[string]string) map[string]string {
	switch {
	case len(own) == 0:
		return base
	case len(base) == 0:
		return own
	default:
		merged := maps.Clone(base)
		maps.Copy(merged, own)
		return merged
	}
}
