package httptarget

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"eventsv2/eventqueue"
)

// Keys of a handlers file.
const (
	keyHandlers   = "handlers"
	keyModule     = "module"
	keyName       = "name"
	keyModifier   = "modifier"
	keyCanvas     = "canvas"
	keyURL        = "url"
	keyTimeout    = "timeout"
	keyMaxRetries = "max_retries"
	keyBackoff    = "backoff"
	keyBase       = "base"
	keyMax        = "max"
)

// parser reads a handlers file and goes on after a mistake, so that all of them
// are reported together.
type parser struct {
	problems problems
	seen     map[eventqueue.CanvasHandler]int // its line
}

// parse returns the entries; they are right if and only if there are no problems.
func (p *parser) parse(data []byte) []Entry {
	root := p.document(data)
	if root == nil {
		return nil
	}
	fields, ok := p.mapping(root, "the file", keyHandlers)
	if !ok {
		return nil
	}
	list := resolve(fields[keyHandlers])
	switch {
	case list == nil && len(root.Content) > 0:
		// What is there instead has been reported already.
		return nil
	case list == nil || list.ShortTag() == "!!null" || list.Kind == yaml.SequenceNode && len(list.Content) == 0:
		p.problems.add(root.Line, "there are no handlers: list at least one under %q", keyHandlers)
		return nil
	case list.Kind != yaml.SequenceNode:
		p.problems.add(list.Line, "%q is %s: make it a list, one handler after each dash", keyHandlers, kindOf(list))
		return nil
	}
	p.seen = make(map[eventqueue.CanvasHandler]int, len(list.Content))
	entries := make([]Entry, len(list.Content))
	for i, item := range list.Content {
		entries[i] = p.entry(item)
	}
	return entries
}

func (p *parser) entry(item *yaml.Node) Entry {
	e := Entry{Line: item.Line}
	fields, ok := p.mapping(resolve(item), "a handler",
		keyModule, keyName, keyModifier, keyCanvas, keyURL, keyTimeout, keyMaxRetries, keyBackoff)
	if !ok {
		return e
	}
	whole := p.require(e.Line, fields, keyModule, keyName, keyModifier, keyURL)
	for _, part := range []struct {
		key  string
		into *string
	}{
		{keyModule, &e.Key.Module}, {keyName, &e.Key.Name}, {keyModifier, &e.Key.Modifier},
	} {
		whole = p.name(fields, part.key, part.into) && whole
	}
	whole = p.canvas(fields, &e.Canvas) && whole
	p.target(fields, &e.target)
	p.duration(fields, keyTimeout, &e.Timeout)
	p.retries(fields, &e.MaxRetries)
	p.backoff(fields, &e)
	if whole {
		p.once(e)
	}
	return e
}

// once refuses a second entry for the same handler: which of them would run is
// nothing to guess at.
func (p *parser) once(e Entry) {
	at := eventqueue.CanvasHandler{Canvas: e.Canvas, Key: e.Key}
	first, taken := p.seen[at]
	if !taken {
		p.seen[at] = e.Line
		return
	}
	where := ""
	if e.Canvas != (eventqueue.CanvasID{}) {
		where = " of canvas " + e.Canvas.String()
	}
	p.problems.add(e.Line, "handler %s%s has a target already, in line %d: remove one of the two", e.Key, where, first)
}

// require reports the keys that are absent.
func (p *parser) require(line int, fields map[string]*yaml.Node, keys ...string) bool {
	all := true
	for _, key := range keys {
		if fields[key] == nil {
			p.problems.add(line, "%s is missing: add it to this handler", key)
			all = false
		}
	}
	return all
}

// mapping returns the values of a mapping by their keys and reports keys that
// are unknown or doubled. what names it in messages.
func (p *parser) mapping(n *yaml.Node, what string, known ...string) (map[string]*yaml.Node, bool) {
	if n.Kind != yaml.MappingNode {
		p.problems.add(n.Line, "%s is %s: write it as keys and values; the keys are %s",
			what, kindOf(n), strings.Join(known, ", "))
		return nil, false
	}
	fields := make(map[string]*yaml.Node, len(n.Content)/2)
	lines := make(map[string]int, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		switch first, doubled := lines[key.Value]; {
		case key.Kind != yaml.ScalarNode:
			p.problems.add(key.Line, "a key of %s is %s: the keys are %s", what, kindOf(key), strings.Join(known, ", "))
		case doubled:
			p.problems.add(key.Line, "%q is there twice, first in line %d: remove one of the two", key.Value, first)
		case !slices.Contains(known, key.Value):
			lines[key.Value] = key.Line
			p.problems.add(key.Line, "unknown key %q: the keys of %s are %s", key.Value, what, strings.Join(known, ", "))
		default:
			lines[key.Value] = key.Line
			fields[key.Value] = value
		}
	}
	return fields, true
}

// resolve follows an alias to its anchor. An alias cannot lead to another one.
func resolve(n *yaml.Node) *yaml.Node {
	if n != nil && n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// kindOf says what a node is, for messages.
func kindOf(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias"
	default:
	}
	switch n.ShortTag() {
	case "!!null":
		return "empty"
	case "!!bool":
		return "a truth value"
	case "!!int", "!!float":
		return "a number"
	case "!!timestamp":
		return "a date"
	case "!!str":
		return "a text"
	default:
		return "of type " + n.ShortTag()
	}
}
