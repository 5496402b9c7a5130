package ndjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"eventsv2/eventqueue"
)

// The keys of a line.
const (
	keyCanvas     = "canvas_id"
	keyModule     = "module"
	keyName       = "name"
	keyModifier   = "modifier"
	keyValue      = "value"
	keyDelay      = "delay"
	keyDelayUntil = "delay_until"
	keyUniqueKey  = "unique_key"
	keyUniqueFor  = "unique_for"
	keyUniqueMode = "unique_mode"
	keyMaxWait    = "max_wait"
	keyOrdering   = "ordering_key"
	keyPriority   = "priority"
	keyAttributes = "attributes"
)

func requiredKeys() []string {
	return []string{keyCanvas, keyModule, keyName, keyModifier, keyValue}
}

func allKeys() []string {
	return append(requiredKeys(), keyDelay, keyDelayUntil, keyUniqueKey, keyUniqueFor, keyUniqueMode, keyMaxWait, keyOrdering, keyPriority, keyAttributes)
}

// parse reads one line that is not blank. It leaves out the Name and the Line of an
// Error.
func parse(text []byte, limits eventqueue.Limits, now time.Time) (eventqueue.NewEvent, *Error) {
	fields, problem := object(text)
	if problem != nil {
		return eventqueue.NewEvent{}, problem
	}
	event, problem := eventOf(fields)
	if problem != nil {
		return event, problem
	}
	var invalid *eventqueue.InvalidError
	switch err := limits.CheckEvents([]eventqueue.NewEvent{event}, now); {
	case err == nil:
		return event, nil
	case !errors.As(err, &invalid):
		return event, &Error{Problem: err.Error()}
	case invalid.Field == keyDelayUntil && fields[keyDelay] != nil:
		return event, &Error{Field: keyDelay, Problem: invalid.Problem}
	default:
		return event, &Error{Field: invalid.Field, Problem: invalid.Problem}
	}
}

// object splits a line into its fields, each byte for byte as in the line.
func object(text []byte) (map[string]json.RawMessage, *Error) {
	if problem := syntax(text); problem != nil {
		return nil, problem
	}
	// The text is one JSON text from here on, so the decoder cannot fail.
	decoder := json.NewDecoder(bytes.NewReader(text))
	if start, err := decoder.Token(); err != nil || start != json.Delim('{') {
		return nil, &Error{Problem: "is JSON, but no object: write {" + `"` + strings.Join(requiredKeys(), `": …, "`) + `": …}`}
	}
	fields := make(map[string]json.RawMessage, len(allKeys()))
	for decoder.More() {
		token, err := decoder.Token()
		key, ok := token.(string)
		if err != nil || !ok {
			return nil, &Error{Problem: fmt.Sprintf("is not JSON: %v where a key should be", token)}
		}
		if !slices.Contains(allKeys(), key) {
			return nil, &Error{Field: key, Problem: "is not a key of an event: the keys are " + strings.Join(allKeys(), ", ")}
		}
		if _, twice := fields[key]; twice {
			return nil, &Error{Field: key, Problem: "is there twice: leave one of them out"}
		}
		var raw json.RawMessage
		if err := decoder.Decode(&raw); err != nil {
			return nil, &Error{Field: key, Problem: "is not JSON: " + err.Error()}
		}
		fields[key] = raw
	}
	for _, key := range requiredKeys() {
		if fields[key] == nil {
			return nil, &Error{Field: key, Problem: "is missing"}
		}
	}
	return fields, nil
}

// syntax refuses a line that is not one JSON text, and reports where the mistake is.
func syntax(text []byte) *Error {
	var whole json.RawMessage
	err := json.Unmarshal(text, &whole)
	if err == nil {
		return nil
	}
	var at *json.SyntaxError
	if errors.As(err, &at) {
		return &Error{Problem: fmt.Sprintf("is not JSON, at byte %d: %s", at.Offset, at)}
	}
	return &Error{Problem: "is not JSON: " + err.Error()}
}

// eventOf reads the fields. eventqueue.CheckEvents checks the rest.
func eventOf(fields map[string]json.RawMessage) (eventqueue.NewEvent, *Error) {
	event := eventqueue.NewEvent{Value: fields[keyValue]}
	var canvas, delay, delayUntil, uniqueFor, maxWait string
	for _, field := range []struct {
		key  string
		into *string
	}{
		{keyCanvas, &canvas}, {keyModule, &event.Module}, {keyName, &event.Name}, {keyModifier, &event.Modifier},
		{keyDelay, &delay}, {keyDelayUntil, &delayUntil}, {keyUniqueKey, &event.UniqueKey}, {keyUniqueFor, &uniqueFor},
		{keyUniqueMode, &event.UniqueMode}, {keyMaxWait, &maxWait}, {keyOrdering, &event.OrderingKey}, {keyPriority, &event.Priority},
	} {
		if fields[field.key] == nil {
			continue
		}
		text, err := str(fields[field.key])
		if err != nil {
			return event, &Error{Field: field.key, Problem: err.Error()}
		}
		*field.into = text
	}
	var err error
	if event.Canvas, err = eventqueue.ParseCanvasID(canvas); err != nil {
		return event, &Error{Field: keyCanvas, Problem: strings.TrimPrefix(err.Error(), keyCanvas+" ")}
	}
	for _, field := range []struct{ key, text, without string }{
		{keyUniqueKey, event.UniqueKey, "an event that may be repeated"},
		{keyUniqueMode, event.UniqueMode, "until_end"},
		{keyOrdering, event.OrderingKey, "an event that is in no line"},
		{keyPriority, event.Priority, "an event of normal priority"},
	} {
		if fields[field.key] != nil && field.text == "" {
			return event, &Error{Field: field.key, Problem: "is empty: leave it out for " + field.without}
		}
	}
	for _, field := range []struct {
		key, text string
		into      *time.Duration
	}{{keyDelay, delay, &event.Delay}, {keyUniqueFor, uniqueFor, &event.UniqueFor}, {keyMaxWait, maxWait, &event.MaxWait}} {
		if fields[field.key] == nil {
			continue
		}
		if *field.into, err = time.ParseDuration(field.text); err != nil {
			return event, &Error{Field: field.key, Problem: fmt.Sprintf("%q is not a duration: write it like 30s, 10m or 1h30m", field.text)}
		}
	}
	if fields[keyDelayUntil] != nil {
		if fields[keyDelay] != nil {
			return event, &Error{Field: keyDelay, Problem: "is there together with " + keyDelayUntil + ": leave one of them out"}
		}
		if event.DelayUntil, err = time.Parse(time.RFC3339, delayUntil); err != nil {
			return event, &Error{Field: keyDelayUntil, Problem: fmt.Sprintf("%q is not a time: write it like 2030-01-31T09:00:00Z", delayUntil)}
		}
	}
	if fields[keyAttributes] != nil {
		if event.Attributes, err = attributes(fields[keyAttributes]); err != nil {
			return event, &Error{Field: keyAttributes, Problem: err.Error()}
		}
	}
	return event, nil
}

// attributes reads an object of strings. A library's map would keep the last of two equal keys.
func attributes(raw json.RawMessage) (map[string]string, error) {
	if raw[0] != '{' {
		return nil, fmt.Errorf("is %s: write an object of texts, as in {\"user\": \"ada\"}", kind(raw[0]))
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	if _, err := decoder.Token(); err != nil {
		return nil, err
	}
	of := map[string]string{}
	for decoder.More() {
		token, err := decoder.Token()
		if err != nil {
			return nil, err
		}
		key, _ := token.(string) // a key of valid JSON
		if _, twice := of[key]; twice {
			return nil, fmt.Errorf("has %q twice: leave one of them out", key)
		}
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			return nil, err
		}
		if of[key], err = str(value); err != nil {
			return nil, fmt.Errorf("has at %q what %w", key, err)
		}
	}
	return of, nil
}

// str reads a JSON string. The library replaces invalid characters by U+FFFD, which
// would name another handler; so such a string is refused.
func str(raw json.RawMessage) (string, error) {
	if raw[0] != '"' {
		return "", fmt.Errorf("is %s: put a text in quotes", kind(raw[0]))
	}
	if !utf8.Valid(raw) {
		return "", errors.New("is not valid UTF-8")
	}
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return "", err
	}
	if replaced := strings.Count(text, "\uFFFD"); replaced > literalReplacements(raw) {
		return "", errors.New("holds half a surrogate pair")
	}
	return text, nil
}

// literalReplacements counts how often a JSON string contains U+FFFD itself.
func literalReplacements(raw []byte) int {
	count := bytes.Count(raw, []byte("\uFFFD"))
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		if i+6 <= len(raw) && bytes.EqualFold(raw[i:i+6], []byte(`\ufffd`)) && raw[i+1] == 'u' {
			count++
		}
		i++ // the escaped character begins no escape itself
	}
	return count
}

// kind returns the kind of a JSON text, from its first byte.
func kind(first byte) string {
	switch first {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case 'n':
		return "null"
	case '"':
		return "a text"
	case 't', 'f':
		return "a boolean"
	default:
		return "a number"
	}
}
