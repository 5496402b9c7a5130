package grid

import (
	"bytes"
	"crypto/sha256"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"eventsv2/internal/yamlfile"
)

// maxDepth is how deep a literal may be nested. An alias within its own anchor
// would be so without an end.
const maxDepth = 100

// literal makes JSON of a value in the definition. It reports what JSON does not
// have.
func (c *checker) literal(n *yaml.Node, path string) (json.RawMessage, bool) {
	value, ok := c.value(n, place{path: path})
	if !ok {
		return nil, false
	}
	literal, err := json.Marshal(value)
	if err != nil {
		c.at(path)(n.Line, "it cannot be written as JSON: %s", err)
		return nil, false
	}
	return literal, true
}

// place is where a value stands. Its path is only put together for a mistake.
type place struct {
	path  string // of the whole, or the last step
	up    *place // nil for the whole
	depth int
}

func (p place) under(step string) place { return place{path: step, up: &p, depth: p.depth + 1} }

func (p place) String() string {
	if p.up == nil {
		return p.path
	}
	return p.up.String() + p.path
}

func (c *checker) value(n *yaml.Node, at place) (any, bool) {
	line := n.Line
	n = yamlfile.Resolve(n)
	if c.size > MaxFileBytes || c.full() { // reported already
		return nil, false
	}
	c.size += len(n.Value) + 1
	switch {
	case at.depth > maxDepth:
		c.at(at.whole())(line, "it is nested deeper than %d levels: does an alias stand within its own anchor?", maxDepth)
		c.size = MaxFileBytes + 1
		return nil, false
	case c.size > MaxFileBytes:
		c.at(at.whole())(line, "with what aliases repeat, the literals are longer here than %d bytes", MaxFileBytes)
		return nil, false
	}
	switch n.Kind {
	case yaml.MappingNode:
		return c.object(n, at)
	case yaml.SequenceNode:
		list, all := make([]any, len(n.Content)), true
		for i, item := range n.Content {
			var ok bool
			list[i], ok = c.value(item, at.under("["+strconv.Itoa(i)+"]"))
			all = all && ok
		}
		return list, all
	default:
		return c.scalar(n, at)
	}
}

// whole is the path of the literal in which a place is.
func (p place) whole() string {
	for p.up != nil {
		p = *p.up
	}
	return p.path
}

func (c *checker) object(n *yaml.Node, at place) (any, bool) {
	all := true
	entries, _ := yamlfile.Entries(n, "this", "the keys are texts", func(line int, format string, args ...any) {
		all = false
		c.at(at.String())(line, format, args...)
	})
	object := make(map[string]any, len(entries))
	for _, e := range entries {
		if e.Key.ShortTag() == "!!merge" {
			c.at(at.String())(e.Key.Line, "merge keys (<<) are not supported: write the fields out")
			all = false
			continue
		}
		c.size += len(e.Key.Value)
		value, ok := c.value(e.Value, at.under("."+e.Key.Value))
		object[e.Key.Value] = value
		all = all && ok
	}
	return object, all
}

func (c *checker) scalar(n *yaml.Node, at place) (any, bool) {
	switch n.ShortTag() {
	case "!!str", "!!timestamp": // a date is what it is written as
		return n.Value, true
	case "!!null":
		return nil, true
	case "!!bool", "!!int", "!!float":
		var value any
		err := n.Decode(&value)
		if f, ok := value.(float64); err == nil && ok && (math.IsInf(f, 0) || math.IsNaN(f)) {
			err = errors.New("JSON has no such number")
		}
		if err != nil {
			c.at(at.String())(n.Line, "%s cannot be used: %s", n.Value, strings.TrimPrefix(err.Error(), "yaml: "))
			return nil, false
		}
		return value, true
	default:
		c.at(at.String())(n.Line, "it is %s, which JSON does not have: write it as a text", yamlfile.KindOf(n))
		return nil, false
	}
}

// strictly reads JSON into what target points to. It refuses unknown fields, and
// null for what cannot be nil.
func strictly(literal json.RawMessage, target any) error {
	t := reflect.TypeOf(target).Elem()
	if string(literal) == "null" && !takesNull(t) {
		return fmt.Errorf("it is empty: give it a %s", t)
	}
	decoder := json.NewDecoder(bytes.NewReader(literal))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(target); err != nil {
		return mismatch(err)
	}
	return nil
}

func takesNull(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Slice, reflect.Interface:
		return true
	default:
		p := reflect.PointerTo(t)
		return p.Implements(reflect.TypeFor[json.Unmarshaler]()) || p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
	}
}

// mismatch says in the words of a definition what the JSON library says in Go's.
func mismatch(err error) error {
	var wrong *json.UnmarshalTypeError
	switch {
	case !errors.As(err, &wrong):
		return errors.New(strings.TrimPrefix(err.Error(), "json: "))
	case wrong.Field != "":
		return fmt.Errorf("field %s is a %s: it must be a %s", wrong.Field, wrong.Value, wrong.Type)
	default:
		return fmt.Errorf("it is a %s: it must be a %s", wrong.Value, wrong.Type)
	}
}

// identity is the hash of what the output of a step depends on, the definitions
// of those that it takes from included. Their identities are known already.
func (s *step) identity() [32]byte {
	type input struct {
		Origin  Origin
		From    []byte          `json:",omitempty"`
		Literal json.RawMessage `json:",omitempty"`
	}
	inputs, params := map[string]input{}, map[string]json.RawMessage{}
	for i, slot := range s.uses.inputs {
		in := input{Origin: s.inputs[i].origin, Literal: s.inputs[i].literal}
		if from := s.inputs[i].from; from != nil {
			in.From = from.fingerprint[:]
		}
		if in.Origin != "" {
			inputs[slot.name] = in
		}
	}
	for i, slot := range s.uses.params {
		if s.params[i] != nil {
			params[slot.name] = s.params[i]
		}
	}
	text, err := json.Marshal([]any{s.uses.name, s.uses.version, s.uses.out.String(), s.serviceNames, params, inputs})
	if err != nil {
		panic(fmt.Sprintf("grid: texts and literals do not become JSON: %v", err))
	}
	return sha256.Sum256(text)
}
