package typed

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/internal/article"
)

// DecodeError describes why the value of an event cannot be decoded into the struct of a typed event.
// The event ends as FAILED with it.
type DecodeError struct {
	// Key is the handling key of the event.
	Key string
	// Struct is the name of the struct.
	Struct string
	// Field is the path of the field in the JSON, such as items[2].price; empty for the value as
	// a whole.
	Field string
	// Problem describes what is wrong with the field or the value.
	Problem string
}

// Error names the event, the struct, the field and the problem.
func (e *DecodeError) Error() string {
	what := "the value"
	if e.Field != "" {
		what = fmt.Sprintf("field %q", e.Field)
	}
	return fmt.Sprintf("event %s as %s: %s %s", e.Key, e.Struct, what, e.Problem)
}

// plans has the fields of every struct type in a typed event, with their names in JSON. Types that
// are not structs are in it with nil, which marks them as planned.
type plans map[reflect.Type][]field

type field struct {
	name     string
	index    []int // for reflect
	is       reflect.Type
	required bool
	quoted   bool // a number or boolean that JSON has as a string
}

// check decodes a value as the dispatch does, for which no field has to be there.
func (k *kind) check(value []byte) error {
	return k.decode(value, k.key, reflect.New(k.is).Elem(), false)
}

// decode decodes a value into a struct. It ignores fields that the struct does not have. Unless it is
// strict, fields that are missing or null keep their zero values.
func (k *kind) decode(value []byte, key string, into reflect.Value, strict bool) error {
	c := &cursor{text: value, strict: strict}
	var err *misfit
	switch {
	case !json.Valid(value):
		err = &misfit{problem: "is not JSON"}
	case c.peek() == 'n': // a field may be null, and the event itself may not
		err = mistyped(c.value(), k.is, nil)
	default:
		err = k.plans.decode(c, into)
	}
	if err == nil {
		return nil
	}
	return &DecodeError{Key: key, Struct: k.is.String(), Field: strings.TrimPrefix(err.path, "."), Problem: err.problem}
}

// concealed is an error without what it has of the value of an encrypted event.
func concealed(e *eventqueue.Event, err error) error {
	var misfit *DecodeError
	if !e.Encrypted || !errors.As(err, &misfit) {
		return err
	}
	return &DecodeError{Key: misfit.Key, Struct: misfit.Struct, Problem: "does not fit; how is left out, as the value is encrypted"}
}

// misfit is a part of a value that does not fit its type. Each caller adds its step to the path.
type misfit struct{ path, problem string }

func (m *misfit) under(step string) *misfit {
	if m != nil {
		m.path = step + m.path
	}
	return m
}

// decode decodes the next value.
func (p plans) decode(c *cursor, v reflect.Value) *misfit {
	t, first := v.Type(), c.peek()
	switch {
	case first == 'n' && !ownNull(t):
		return decodeNull(c.value(), v, c.strict)
	case readsItself(t):
	case t.Kind() == reflect.Pointer:
		v.Set(reflect.New(t.Elem()))
		return p.decode(c, v.Elem())
	case first == '{' && t.Kind() == reflect.Struct:
		return p.decodeStruct(c, v)
	case first == '{' && t.Kind() == reflect.Map:
		return p.decodeMap(c, v)
	case first == '[' && isList(t):
		return p.decodeList(c, v)
	case isList(t), first == '[' && isBytes(t): // encoding/json accepts an array for bytes
		return mistyped(c.value(), t, nil)
	}
	raw := c.value()
	if err := json.Unmarshal(raw, v.Addr().Interface()); err != nil {
		return mistyped(raw, t, err)
	}
	return nil
}

func decodeNull(raw []byte, v reflect.Value, strict bool) *misfit {
	switch v.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Slice, reflect.Interface: // nil is encoded as null
		v.SetZero()
		return nil
	default:
		if strict {
			return mistyped(raw, v.Type(), nil)
		}
		return nil // it is zero already
	}
}

// decodeStruct decodes the fields in the order of the text. If a field occurs twice, its last value
// counts.
func (p plans) decodeStruct(c *cursor, v reflect.Value) *misfit {
	fields := p[v.Type()]
	found := make([]bool, len(fields))
	for range c.parts {
		name, _ := c.name()
		i := slices.IndexFunc(fields, func(f field) bool { return f.name == name })
		if i < 0 {
			c.value()
			continue
		}
		if m := p.decodeField(c, fields[i], v.FieldByIndex(fields[i].index), found[i]); m != nil {
			return m.under("." + name)
		}
		found[i] = true
	}
	for i, f := range fields {
		if c.strict && f.required && !found[i] {
			return (&misfit{problem: "is missing"}).under("." + f.name)
		}
	}
	return nil
}

func (p plans) decodeField(c *cursor, f field, v reflect.Value, again bool) *misfit {
	if again && v.CanSet() {
		v.SetZero()
	}
	if !f.quoted || c.peek() == 'n' {
		return p.decode(c, v)
	}
	raw := c.value()
	if raw[0] != '"' {
		return &misfit{problem: "is " + nameOf(raw) + ": it must be a string, by its tag"}
	}
	text := []byte(unquoted(raw))
	if !json.Valid(text) || p.decode(&cursor{text: text, strict: true}, v) != nil {
		return &misfit{problem: "is a string: it must hold " + wanted(behind(f.is))}
	}
	return nil
}

func (p plans) decodeList(c *cursor, v reflect.Value) *misfit {
	n := 0
	for range c.parts {
		if v.Kind() == reflect.Slice {
			v.Grow(1)
			v.SetLen(n + 1)
		}
		if n >= v.Len() {
			c.value()
		} else if m := p.decode(c, v.Index(n)); m != nil {
			return m.under("[" + strconv.Itoa(n) + "]")
		}
		n++
	}
	if v.Kind() == reflect.Array && n != v.Len() {
		return &misfit{problem: fmt.Sprintf("is an array of %d: it must be one of %d", n, v.Len())}
	}
	if n == 0 && v.Kind() == reflect.Slice {
		v.Set(reflect.MakeSlice(v.Type(), 0, 0))
	}
	return nil
}

func (p plans) decodeMap(c *cursor, v reflect.Value) *misfit {
	t := v.Type()
	v.Set(reflect.MakeMap(t))
	for range c.parts {
		name, quoted := c.name()
		key, err := keyFrom(name, quoted, t.Key())
		if err != nil {
			return (&misfit{problem: "has a key that is no " + t.Key().String() + ": " + err.Error()}).under("." + name)
		}
		value := reflect.New(t.Elem()).Elem()
		if m := p.decode(c, value); m != nil {
			return m.under("." + name)
		}
		v.SetMapIndex(key, value)
	}
	return nil
}

// keyFrom decodes a key of a map with encoding/json, unless its type is a string.
func keyFrom(name string, quoted []byte, t reflect.Type) (reflect.Value, error) {
	if t.Kind() == reflect.String && !readsItself(t) {
		return reflect.ValueOf(name).Convert(t), nil
	}
	one := reflect.New(reflect.MapOf(t, reflect.TypeFor[struct{}]()))
	if err := json.Unmarshal(slices.Concat([]byte("{"), quoted, []byte(":{}}")), one.Interface()); err != nil {
		return reflect.Value{}, err
	}
	return one.Elem().MapKeys()[0], nil
}

// mistyped describes a value that does not fit a type. err is the error of a type that decodes
// itself.
func mistyped(raw []byte, t reflect.Type, err error) *misfit {
	m := &misfit{problem: "is " + nameOf(raw) + ": it must be " + wanted(t)}
	if err != nil && readsItself(t) {
		m.problem += ": " + err.Error()
	}
	return m
}

// nameOf names the kind of a JSON value. It shows the value only if that is a number, because the
// number may be out of range.
func nameOf(raw []byte) string {
	if len(raw) == 0 {
		return "nothing"
	}
	switch raw[0] {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f', 'n':
		return string(raw[:min(len(raw), len("false"))])
	default:
		return "the number " + string(raw[:min(len(raw), 40)])
	}
}

func wanted(t reflect.Type) string {
	switch kind := t.Kind(); {
	case readsItself(t):
		return article.With(t)
	case kind == reflect.Struct, kind == reflect.Map:
		return "an object"
	case isBytes(t):
		return "a string in base64"
	case isList(t):
		return "an array"
	case kind == reflect.String:
		return "a string"
	case kind == reflect.Bool:
		return "true or false"
	default:
		return "a number that fits " + kind.String()
	}
}

var (
	jsonReader = reflect.TypeFor[json.Unmarshaler]()
	textReader = reflect.TypeFor[encoding.TextUnmarshaler]()
	jsonWriter = reflect.TypeFor[json.Marshaler]()
	textWriter = reflect.TypeFor[encoding.TextMarshaler]()
)

func readsItself(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(jsonReader) || p.Implements(textReader)
}

func writesItself(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(jsonWriter) || p.Implements(textWriter)
}

// isBytes reports whether encoding/json encodes a type as a base64 string.
func isBytes(t reflect.Type) bool {
	return t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8 && !writesItself(t.Elem())
}

// isList reports whether a type is encoded as an array.
func isList(t reflect.Type) bool {
	return t.Kind() == reflect.Array || t.Kind() == reflect.Slice && !isBytes(t)
}

// ownNull reports whether a type itself decides what null means. time.Time does not: null would leave
// it unchanged.
func ownNull(t reflect.Type) bool {
	return reflect.PointerTo(t).Implements(jsonReader) && t != reflect.TypeFor[time.Time]()
}
