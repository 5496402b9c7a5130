package typed

import (
	"encoding/json"
)

// Split takes an array or an object apart as typed events are read, and returns
// what is behind it.
func Split(text []byte) (items []json.RawMessage, members map[string]json.RawMessage, rest string) {
	c := cursor{text: text}
	if c.peek() == '[' {
		for range c.parts {
			items = append(items, c.value())
		}
		return items, nil, string(text[c.at:])
	}
	members = map[string]json.RawMessage{}
	for range c.parts {
		name, _ := c.name()
		members[name] = c.value()
	}
	return nil, members, string(text[c.at:])
}
