package grid

import (
	"encoding/json"
	"errors"
	"math"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"eventsv2/internal/yamlfile"
)

// maxDepth is how deep a literal may be nested. An alias within its own anchor would
// be nested without end.
const maxDepth = 100

// literals converts the literals of a definition.
type literals struct {
	*problems
	size int  // of all literals so far, in bytes
	over bool // they are too long or too deep, which was reported
}

// literal returns a value in the definition as JSON. It reports values that JSON cannot
// express.
func (l *literals) literal(n *yaml.Node, path string) (json.RawMessage, bool) {
	value, ok := l.value(n, place{path: path})
	if !ok {
		return nil, false
	}
	literal, err := json.Marshal(value)
	if err != nil {
		l.at(path)(n.Line, "it cannot be written as JSON: %s", err)
		return nil, false
	}
	return literal, true
}

// place is the position of a value in a literal. Its path is only built for a message.
type place struct {
	path  string // of the whole literal, or the last step
	up    *place // nil for the whole literal
	depth int
}

func (p place) under(step string) place { return place{path: step, up: &p, depth: p.depth + 1} }

func (p place) String() string {
	if p.up == nil {
		return p.path
	}
	return p.up.String() + p.path
}

func (l *literals) value(n *yaml.Node, at place) (any, bool) {
	line := n.Line
	n = yamlfile.Resolve(n)
	if l.over || l.full() { // reported already
		return nil, false
	}
	l.size += len(n.Value) + 1
	switch {
	case at.depth > maxDepth:
		l.at(at.whole())(line, "it is nested deeper than %d levels: does an alias stand within its own anchor?", maxDepth)
		l.over = true
		return nil, false
	case l.size > MaxFileBytes:
		l.at(at.whole())(line, "with what aliases repeat, the literals are longer here than %d bytes", MaxFileBytes)
		l.over = true
		return nil, false
	}
	switch n.Kind {
	case yaml.MappingNode:
		return l.object(n, at)
	case yaml.SequenceNode:
		list, all := make([]any, len(n.Content)), true
		for i, item := range n.Content {
			var ok bool
			list[i], ok = l.value(item, at.under("["+strconv.Itoa(i)+"]"))
			all = all && ok
		}
		return list, all
	default:
		return l.scalar(n, at)
	}
}

// whole returns the path of the literal that contains the place.
func (p place) whole() string {
	for p.up != nil {
		p = *p.up
	}
	return p.path
}

func (l *literals) object(n *yaml.Node, at place) (any, bool) {
	all := true
	entries, _ := yamlfile.Entries(n, "this", "the keys are texts", func(line int, format string, args ...any) {
		all = false
		l.at(at.String())(line, format, args...)
	})
	object := make(map[string]any, len(entries))
	for _, e := range entries {
		if e.Key.ShortTag() == "!!merge" {
			l.at(at.String())(e.Key.Line, "merge keys (<<) are not supported: write the fields out")
			all = false
			continue
		}
		l.size += len(e.Key.Value)
		value, ok := l.value(e.Value, at.under("."+e.Key.Value))
		object[e.Key.Value] = value
		all = all && ok
	}
	return object, all
}

var (
	leadingZero = regexp.MustCompile(`^[-+]?0[0-9_]`)
	// numeric matches a number that YAML takes for a text, since no float64 holds it.
	numeric = regexp.MustCompile(`^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`)
)

func (l *literals) scalar(n *yaml.Node, at place) (any, bool) {
	switch n.ShortTag() {
	case "!!str", "!!timestamp": // a date is the text as written
		if n.Style == 0 && numeric.MatchString(n.Value) {
			l.at(at.String())(n.Line, "%s is too large for a number: write a smaller one, or a text in quotes", n.Value)
			return nil, false
		}
		return n.Value, true
	case "!!null":
		return nil, true
	case "!!bool", "!!int", "!!float":
		if leadingZero.MatchString(n.Value) {
			l.at(at.String())(n.Line, "%s begins with a zero, as an octal number of old YAML does: write it without, or as a text in quotes", n.Value)
			return nil, false
		}
		var value any
		err := n.Decode(&value)
		if f, ok := value.(float64); err == nil && ok && (math.IsInf(f, 0) || math.IsNaN(f)) {
			err = errors.New("JSON has no such number")
		}
		if err != nil {
			l.at(at.String())(n.Line, "%s cannot be used: %s", n.Value, strings.TrimPrefix(err.Error(), "yaml: "))
			return nil, false
		}
		if digits, _, _ := strings.Cut(strings.ToLower(n.Value), "e"); value == 0.0 && strings.ContainsAny(digits, "123456789") {
			l.at(at.String())(n.Line, "%s is too small for a number: write 0, or a text in quotes", n.Value)
			return nil, false
		}
		const whole = 1 << 53 // up to it, a float64 has each whole number, and JSON writes it as one
		if f, ok := value.(float64); ok && json.Valid([]byte(n.Value)) && (f != math.Trunc(f) || math.Abs(f) >= whole) {
			return json.Number(n.Value), true // with all its digits
		}
		return value, true
	default:
		l.at(at.String())(n.Line, "it is %s, which JSON does not have: write it as a text", yamlfile.KindOf(n))
		return nil, false
	}
}
