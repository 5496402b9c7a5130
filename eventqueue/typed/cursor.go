package typed

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// cursor reads a JSON text once, from its beginning to its end, so that the time is proportional to
// the length, however deep the text is nested. The text must be valid.
type cursor struct {
	text []byte
	at   int
	// strict is that of the handler for which it is read; see Strict.
	strict bool
}

// peek skips white space and returns the next byte; 0 at the end.
func (c *cursor) peek() byte {
	for ; c.at < len(c.text); c.at++ {
		if b := c.text[c.at]; b != ' ' && b != '\t' && b != '\n' && b != '\r' {
			return b
		}
	}
	return 0
}

// parts reads an array or an object. It yields at the beginning of each item or member, which the
// body of the loop has to read.
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

// name reads the name of a member and the colon after it. It returns the name, and the name as
// written, in quotes.
func (c *cursor) name() (name string, quoted []byte) {
	quoted = c.value()
	c.peek()
	c.at++
	return unquoted(quoted), quoted
}

// unquoted decodes a JSON string.
func unquoted(quoted []byte) (text string) {
	if plain := quoted[1 : len(quoted)-1]; !bytes.ContainsRune(plain, '\\') && utf8.Valid(plain) {
		return string(plain)
	}
	if err := json.Unmarshal(quoted, &text); err != nil {
		panic(fmt.Sprintf("eventqueue: a string in valid JSON cannot be read: %v", err))
	}
	return text
}

// value reads a value and returns its text.
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

// string skips a string.
func (c *cursor) string() {
	for c.at++; c.text[c.at] != '"'; c.at++ {
		if c.text[c.at] == '\\' {
			c.at++
		}
	}
	c.at++
}

// literal skips a number, true, false or null.
func (c *cursor) literal() {
	for c.at < len(c.text) && !strings.ContainsRune(",:]} \t\r\n", rune(c.text[c.at])) {
		c.at++
	}
}
