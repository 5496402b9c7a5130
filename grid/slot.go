package grid

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"eventsv2/internal/article"
)

// Origin is the kind of source that an input comes from.
type Origin string

// The origins.
const (
	// FromAction is the output of another action of the grid.
	FromAction Origin = "action"
	// FromEvent is the value of the event that started the run.
	FromEvent Origin = "event"
	// FromStatic is a literal of the definition.
	FromStatic Origin = "static"
)

// tagKey is the key of the struct tags.
const tagKey = "grid"

const optional = "optional"

// slot is a struct field that a definition sets.
type slot struct {
	name     string
	index    int
	is       reflect.Type
	optional bool
	origins  []Origin // that an input may have
}

// readTypes reads the slots from the types, and checks the tags and the options.
func (a *goAction) readTypes(in, params, services reflect.Type) error {
	var problems []error
	for _, part := range []struct {
		what  string
		is    reflect.Type
		into  *[]slot
		words []string
	}{
		{"inputs", in, &a.inputs, []string{optional, string(FromAction), string(FromEvent), string(FromStatic)}},
		{"params", params, &a.params, []string{optional}},
		{"services", services, &a.services, []string{optional}},
	} {
		slots, err := slotsOf(part.is, part.words)
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", part.what, err))
		}
		*part.into = slots
	}
	for i := range a.inputs {
		problems = append(problems, a.checkInput(&a.inputs[i]))
	}
	for _, param := range a.params {
		problems = append(problems, readable("param", param))
	}
	for input := range a.casts {
		if !slices.ContainsFunc(a.inputs, func(s slot) bool { return s.name == input }) {
			problems = append(problems, fmt.Errorf("there is a cast of input %q, which the inputs do not have", input))
		}
	}
	problems = append(problems, writable(a.out))
	return errors.Join(problems...)
}

func (a *goAction) checkInput(s *slot) error {
	if len(s.origins) == 0 {
		s.origins = []Origin{FromAction, FromEvent}
	}
	c, castable := a.casts[s.name]
	static := slices.Contains(s.origins, FromStatic)
	switch {
	case static && !castable:
		return fmt.Errorf("input %q may be static and has no cast: add grid.Cast(%q, …), perhaps with grid.Strict[%s]", s.name, s.name, s.is)
	case castable && !static:
		return fmt.Errorf("input %q has a cast and may not be static: add static to its tag", s.name)
	case castable && c.to != s.is:
		return fmt.Errorf("the cast of input %q makes %s: it must make %s", s.name, article.With(c.to), article.With(s.is))
	}
	if static && len(s.origins) == 1 {
		return nil // its value always comes from the cast, and is never decoded
	}
	return readable("input", *s)
}

// writable refuses types whose values cannot be JSON. It ignores other errors about the
// zero value, since they need not hold for other values.
func writable(out reflect.Type) error {
	var unsupported *json.UnsupportedTypeError
	err := guard(func() error {
		_, err := json.Marshal(reflect.New(out).Elem().Interface())
		return err
	})
	if errors.As(err, &unsupported) {
		return fmt.Errorf("the output cannot be written as JSON: %w", err)
	}
	return nil
}

// readable refuses types into which JSON cannot be decoded.
func readable(what string, s slot) error {
	switch s.is.Kind() {
	case reflect.Interface:
		if s.is.NumMethod() == 0 {
			return nil
		}
	case reflect.Chan, reflect.Func, reflect.Complex64, reflect.Complex128, reflect.UnsafePointer:
	default:
		return nil
	}
	return fmt.Errorf("%s %q is %s, which cannot be read from JSON", what, s.name, article.With(s.is))
}

// slotsOf reads the tags of a struct. words are the words that may follow a name.
func slotsOf(t reflect.Type, words []string) ([]slot, error) {
	if t.Kind() != reflect.Struct {
		return nil, fmt.Errorf("%s is %s: it must be a struct, or grid.None", t, article.With(t.Kind()))
	}
	var slots []slot
	var problems []error
	for i := range t.NumField() {
		field := t.Field(i)
		tag, tagged := field.Tag.Lookup(tagKey)
		if !field.IsExported() && !tagged {
			continue
		}
		s, err := slotOf(field, tag, words)
		if err == nil && slices.ContainsFunc(slots, func(other slot) bool { return other.name == s.name }) {
			err = fmt.Errorf("is called %q like another one", s.name)
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("field %s of %s %w", field.Name, t, err))
		}
		s.index = i
		slots = append(slots, s)
	}
	return slots, errors.Join(problems...)
}

func slotOf(field reflect.StructField, tag string, words []string) (slot, error) {
	name, rest, more := strings.Cut(tag, ",")
	s := slot{name: name, is: field.Type}
	switch {
	case !field.IsExported():
		return s, errors.New("has a tag and is not exported")
	case name == "":
		return s, fmt.Errorf("has no name: give it a tag like `%s:\"name\"`", tagKey)
	}
	if err := checkName(name); err != nil {
		return s, fmt.Errorf("has a name that %w", err)
	}
	if !more {
		return s, nil
	}
	for word := range strings.SplitSeq(rest, ",") {
		switch {
		case !slices.Contains(words, word):
			return s, fmt.Errorf("has %q in its tag: what may follow the name is %s", word, strings.Join(words, ", "))
		case s.optional && word == optional, slices.Contains(s.origins, Origin(word)):
			return s, fmt.Errorf("has %q twice in its tag", word)
		case word == optional:
			s.optional = true
		default:
			s.origins = append(s.origins, Origin(word))
		}
	}
	return s, nil
}

// takes reports whether an input can take an output of this type: JSON of a T reads as a *T, too.
func (s slot) takes(out reflect.Type) bool {
	if s.is == reflect.TypeFor[json.RawMessage]() || s.is.Kind() == reflect.Interface {
		return true
	}
	return out.AssignableTo(s.is) || s.is.Kind() == reflect.Pointer && out.AssignableTo(s.is.Elem())
}

func (s slot) allows(o Origin) bool { return slices.Contains(s.origins, o) }

// namesOf lists slots for messages.
func namesOf(slots []slot) string {
	if len(slots) == 0 {
		return "none"
	}
	names := make([]string, len(slots))
	for i, s := range slots {
		names[i] = s.name
	}
	return strings.Join(names, ", ")
}
