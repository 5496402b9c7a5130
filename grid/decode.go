package grid

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"eventsv2/internal/article"
	"eventsv2/internal/exactjson"
)

// read decodes a value or an output. It ignores unknown fields, so that a newer program
// may add fields. Names are case-sensitive.
func read(raw json.RawMessage, into reflect.Value) error {
	if isNull(raw) && !takesNull(into.Type()) {
		return fmt.Errorf("it is null: it must be %s", article.With(into.Type()))
	}
	return guard(func() error {
		if err := exactjson.Unmarshal(raw, into.Addr().Interface()); err != nil {
			return mismatch(err)
		}
		return nil
	})
}

// strictly decodes JSON into the variable that target points to. It refuses unknown
// fields, fields that are there twice, and null for a type that cannot be nil.
func strictly(literal json.RawMessage, target any) error {
	t := reflect.TypeOf(target).Elem()
	if isNull(literal) && !takesNull(t) {
		return fmt.Errorf("it is empty: give it %s", article.With(t))
	}
	if err := exactjson.UnmarshalStrict(literal, target); err != nil {
		return mismatch(err)
	}
	return nil
}

// isNull reports whether JSON is null, which may have white space around it.
func isNull(raw json.RawMessage) bool { return string(bytes.TrimSpace(raw)) == "null" }

func takesNull(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Slice, reflect.Interface:
		return true
	default:
		p := reflect.PointerTo(t)
		return p.Implements(reflect.TypeFor[json.Unmarshaler]()) || p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
	}
}

// mismatch rewords an error of the JSON library in the terms of a definition.
func mismatch(err error) error {
	var wrong *exactjson.UnmarshalTypeError
	switch {
	case !errors.As(err, &wrong):
		return errors.New(strings.TrimPrefix(err.Error(), "json: "))
	case wrong.Field != "":
		return fmt.Errorf("field %s is %s: it must be %s", wrong.Field, article.With(wrong.Value), article.With(wrong.Type))
	default:
		return fmt.Errorf("it is %s: it must be %s", article.With(wrong.Value), article.With(wrong.Type))
	}
}

// guard calls f, which is an action's code, and turns a panic into an error.
func guard(f func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = fmt.Errorf("the action's code panicked: %v", value)
		}
	}()
	return f()
}
