package yamlfile

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Entry is one key of a mapping with its value.
type Entry struct {
	Key, Value *yaml.Node
}

// Entries returns the keys and values of a mapping whose keys the author chooses, in
// their order. Duplicate keys and keys that are not scalars are reported and left
// out. what names the mapping in messages. If n is not a mapping, Entries reports it
// with hint and returns false.
func Entries(n *yaml.Node, what, hint string, report Report) ([]Entry, bool) {
	if n.Kind != yaml.MappingNode {
		report(n.Line, "%s is %s: write it as keys and values; %s", what, KindOf(n), hint)
		return nil, false
	}
	entries := make([]Entry, 0, len(n.Content)/2)
	lines := make(map[string]int, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		switch first, doubled := lines[key.Value]; {
		case key.Kind != yaml.ScalarNode:
			report(key.Line, "a key of %s is %s: %s", what, KindOf(key), hint)
		case doubled:
			report(key.Line, "%q is there twice, first in line %d: remove one of the two", key.Value, first)
		default:
			lines[key.Value] = key.Line
			entries = append(entries, Entry{key, value})
		}
	}
	return entries, true
}

// Mapping returns the values of a mapping by their keys and reports unknown and
// duplicate keys. what names the mapping in messages.
func Mapping(n *yaml.Node, what string, report Report, known ...string) (map[string]*yaml.Node, bool) {
	entries, ok := Entries(n, what, "the keys are "+strings.Join(known, ", "), report)
	if !ok {
		return nil, false
	}
	fields := make(map[string]*yaml.Node, len(entries))
	for _, e := range entries {
		if !slices.Contains(known, e.Key.Value) {
			report(e.Key.Line, "unknown key %q: the keys of %s are %s", e.Key.Value, what, strings.Join(known, ", "))
			continue
		}
		fields[e.Key.Value] = e.Value
	}
	return fields, true
}

// Resolve follows an alias to its anchor. An alias cannot lead to another one.
func Resolve(n *yaml.Node) *yaml.Node {
	if n != nil && n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// IsNull reports whether a node is null; an absent value is null, too.
func IsNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

// KindOf names the kind of a node, for messages.
func KindOf(n *yaml.Node) string {
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
