// Package pubsubmessage says what a message of Pub/Sub becomes as an event, however the message comes: pushed to an
// address, or pulled.
package pubsubmessage

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"eventsv2/internal/shortkey"
)

// Message is a message of a subscription.
type Message struct {
	Subscription string // projects/…/subscriptions/…
	ID           string
	Data         []byte
	Attributes   map[string]string
	OrderingKey  string
}

// Value is the data; null if the message has none.
func (m Message) Value() []byte {
	if len(m.Data) == 0 {
		return []byte("null")
	}
	return m.Data
}

// Delivery identifies the message: however often it is delivered it has this text, and no other message has it.
func (m Message) Delivery() string { return m.Subscription + " " + m.ID }

// Type is the type that its publisher gave the message, in the attribute of CloudEvents or in that of Google's own
// publishers; "" if neither is there.
func (m Message) Type() string { return cmp.Or(m.Attributes["ce-type"], m.Attributes["eventType"]) }

// EventAttributes are the attributes with the keys that an event may have: in lower case, and with _ for what is no letter,
// digit, dot or hyphen. Of two that become the same key, the first in alphabetical order is taken.
func (m Message) EventAttributes() map[string]string {
	if len(m.Attributes) == 0 {
		return nil
	}
	attributes := make(map[string]string, len(m.Attributes))
	for _, name := range slices.Sorted(maps.Keys(m.Attributes)) {
		key := strings.Map(attributeRune, name)
		if _, taken := attributes[key]; !taken {
			attributes[key] = m.Attributes[name]
		}
	}
	return attributes
}

func attributeRune(r rune) rune {
	switch {
	case r >= 'A' && r <= 'Z':
		return r - 'A' + 'a'
	case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '.', r == '-':
		return r
	default:
		return '_'
	}
}

// maxOrderingKey is the longest ordering key of an event, in bytes.
const maxOrderingKey = 255

// EventOrderingKey orders the events as the ordering key orders the messages: it is the same, or its hash if an event
// cannot have it.
func (m Message) EventOrderingKey() string { return shortkey.Of(m.OrderingKey, maxOrderingKey) }
