package typed

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// cursor walks once over a JSON text, from its beginning to its end, so that
// reading a value takes time in proportion to its length, however deep it is. The
// text must be valid.
type cursor struct {
	text []byte
	at   int
}

// peek steps over space and returns the byte behind it; 0 at the end.
func (c *cursor) peek() byte {
	for ; c.at < len(c.text); c.at++ {
		if b := c.text[c.at]; b != ' ' && b != '\t' && b != '\n' && b != '\r' {
			return b
		}
	}
	return 0
}

// parts steps over an array or an object. It yields where an item or a member
// begins, and the body of the loop steps over that.
func (c *cursor) parts(yield func() bool) {
	c.peek()
	c.at++
	for b := c.peek(); b != ']' && b != '}'; b = c.peek() {
		if b == ',' {
			c.at++
		}
		if !yield() {
			return
		}
	}
	c.at++
}

// name steps over the name of a member and its colon. It returns the name, and
// as it is written, in quotes.
func (c *cursor) name() (name string, quoted []byte) {
	quoted = c.value()
	c.peek()
	c.at++
	return unquoted(quoted), quoted
}

// unquoted is what a string of JSON says.
func unquoted(quoted []byte) (text string) {
	if plain := quoted[1 : len(quoted)-1]; !bytes.ContainsRune(plain, '\\') && utf8.Valid(plain) {
		return string(plain)
	}
	if err := json.Unmarshal(quoted, &text); err != nil {
		panic(fmt.Sprintf("eventqueue: a string in valid JSON cannot be read: %v", err))
	}
	return text
}

// value steps over a value and returns it.
func (c *cursor) value() []byte {
	c.peek()
	from := c.at
	for depth := 0; c.at < len(c.text); {
		switch b := c.text[c.at]; {
		case b == '"':
			c.string()
		case b == '{' || b == '[':
			depth++
			c.at++
		case b == '}' || b == ']':
			depth--
			c.at++
		case depth > 0:
			c.at++
		default:
			c.literal()
		}
		if depth == 0 {
			break
		}
	}
	return c.text[from:c.at]
}

// string steps over a string.
func (c *cursor) string() {
	for c.at++; c.text[c.at] != '"'; c.at++ {
		if c.text[c.at] == '\\' {
			c.at++
		}
	}
	c.at++
}

// literal steps over a number, true, false or null.
func (c *cursor) literal() {
	for c.at < len(c.text) && !strings.ContainsRune(",:]} \t\r\n", rune(c.text[c.at])) {
		c.at++
	}
}
