package httpapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/validation"
)

// checker compares a JSON text with the schema of a body. Huma would first decode the text into maps, and then note an error,
// with what it is about, for each part of it: that takes gigabytes for some texts. The checker builds nothing of the text,
// leaves alone what may be any JSON, does not look into what should not be there, and ends with the errors that a refusal shows.
//
// It knows the keywords of the schemas of this API; single values, which have the others, are checked by huma.
type checker struct {
	schemas huma.Registry
	text    []byte // valid JSON
	at      int    // what comes next
	path    []byte // where that is
	res     huma.ValidateResult
	scratch *huma.PathBuffer
}

// check returns the errors of a text that is valid JSON.
func check(schemas huma.Registry, schema *huma.Schema, text []byte) []error {
	c := &checker{schemas: schemas, text: text, path: []byte("body"), scratch: huma.NewPathBuffer(nil, 0)}
	c.space()
	c.value(schema)
	return c.res.Errors
}

// full reports whether there are more errors than a refusal shows.
func (c *checker) full() bool { return len(c.res.Errors) > maxErrors }

func (c *checker) add(message string) {
	c.res.Errors = append(c.res.Errors, &huma.ErrorDetail{Message: message, Location: string(c.path)})
}

// within calls f with a part of the path added.
func (c *checker) within(part string, f func()) {
	before := len(c.path)
	c.path = append(c.path, short(part, maxLocationBytes)...)
	f()
	c.path = c.path[:before]
}

// value checks the next value.
func (c *checker) value(s *huma.Schema) {
	for s.Ref != "" {
		s = c.schemas.SchemaFromRef(s.Ref)
	}
	switch next := c.text[c.at]; {
	case s.Type == "": // any JSON
		c.skip()
	case s.Type == huma.TypeObject && next == '{':
		c.object(s)
	case s.Type == huma.TypeArray && next == '[':
		c.array(s)
	default:
		c.single(s, c.skip())
	}
}

// single checks a value that is no object or list, or ought to be none.
func (c *checker) single(s *huma.Schema, text []byte) {
	var value any
	if text[0] == '{' || text[0] == '[' || json.Unmarshal(text, &value) != nil { // a number beyond all bounds fails
		value = struct{}{} // is not what any schema wants
	}
	before := len(c.res.Errors)
	huma.Validate(c.schemas, s, c.scratch, huma.ModeWriteToServer, value, &c.res)
	for _, err := range c.res.Errors[before:] {
		if detail := (*huma.ErrorDetail)(nil); errors.As(err, &detail) {
			detail.Location = string(c.path)
		}
	}
	if text, is := value.(string); is {
		c.noNUL(text)
	}
	if s.Type == huma.TypeInteger && len(c.res.Errors) == before {
		if _, err := strconv.ParseInt(string(text), 10, 64); err != nil { // what JSON has as an integer, and Go decodes into none
			c.add("expected integer, in digits alone")
		}
	}
}

// noNUL adds an error for a text that the database cannot hold.
func (c *checker) noNUL(text string) {
	if strings.ContainsRune(text, 0) {
		c.add("has the character NUL, which no text may have")
	}
}

func (c *checker) array(s *huma.Schema) {
	n := c.count()
	switch {
	case s.MaxItems != nil && n > *s.MaxItems:
		c.add(fmt.Sprintf(validation.MsgExpectedMaxItems, *s.MaxItems))
		c.skip()
		return
	case s.MinItems != nil && n < *s.MinItems:
		c.add(fmt.Sprintf(validation.MsgExpectedMinItems, *s.MinItems))
	}
	for i := 0; c.next(']', i); i++ {
		c.within("["+strconv.Itoa(i)+"]", func() { c.value(s.Items) })
	}
}

// count counts the items of the next list, and stays before it.
func (c *checker) count() (n int) {
	from := c.at
	for ; c.next(']', n); n++ {
		c.skip()
	}
	c.at = from
	return n
}

func (c *checker) object(s *huma.Schema) {
	others, takesOthers := s.AdditionalProperties.(*huma.Schema)
	var seen []string
	pairs := 0
	for i := 0; c.next('}', i); i++ {
		var key string
		_ = json.Unmarshal(c.skip(), &key) // the text is valid
		c.space()
		c.at++ // the colon
		c.space()
		if name, is := propertyOf(s, key); is {
			c.within("."+name, func() { c.property(s, name, slices.Contains(seen, name)) })
			seen = append(seen, name)
			continue
		}
		if pairs++; takesOthers && s.MaxProperties != nil && pairs > *s.MaxProperties {
			c.add(fmt.Sprintf(validation.MsgExpectedMaxProperties, *s.MaxProperties))
			takesOthers = false // of each further one that alone would be said
			c.skip()
			continue
		}
		c.within("."+key, func() {
			switch {
			case takesOthers:
				c.noNUL(key)
				c.value(others)
				return
			case others == nil:
				c.add(validation.MsgUnexpectedProperty)
			}
			c.skip()
		})
	}
	for _, name := range s.Required {
		if !slices.Contains(seen, name) && !c.full() {
			c.add(fmt.Sprintf(validation.MsgExpectedRequiredProperty, name))
		}
	}
}

// property checks the value of a property. It may be null if it may be absent.
func (c *checker) property(s *huma.Schema, name string, again bool) {
	if again { // and which of them counts, readers of JSON do not agree about
		c.add("the property is there twice")
	}
	if c.text[c.at] == 'n' && !slices.Contains(s.Required, name) {
		c.skip()
		return
	}
	c.value(s.Properties[name])
}

// propertyOf returns the property that a key names. As in all of Go's JSON, its case does not matter.
func propertyOf(s *huma.Schema, key string) (name string, is bool) {
	if _, is := s.Properties[key]; is {
		return key, true
	}
	for name := range s.Properties {
		if strings.EqualFold(name, key) {
			return name, true
		}
	}
	return "", false
}

// next goes to the next item of a list or an object, of which i have been read, and reports whether there is one and it is of
// interest. Behind the last one is a closing bracket.
func (c *checker) next(closing byte, i int) bool {
	if c.full() {
		return false
	}
	if i == 0 {
		c.at++ // the opening bracket
	}
	c.space()
	if c.text[c.at] == closing {
		c.at++
		return false
	}
	if i > 0 {
		c.at++ // the comma
		c.space()
	}
	return true
}

func (c *checker) space() {
	for c.at < len(c.text) && strings.IndexByte(" \t\r\n", c.text[c.at]) >= 0 {
		c.at++
	}
}

// skip goes behind the next value, or key, and returns its text.
func (c *checker) skip() []byte {
	from := c.at
	for depth := 0; c.at < len(c.text); {
		switch c.text[c.at] {
		case '"':
			c.quotes()
		case '{', '[':
			depth++
			c.at++
		case '}', ']', ',', ' ', '\t', '\r', '\n':
			if depth == 0 { // behind a number or a word
				return c.text[from:c.at]
			}
			if c.text[c.at] == '}' || c.text[c.at] == ']' {
				depth--
			}
			c.at++
		default: // within a number or a word, or a colon
			c.at++
			continue
		}
		if depth == 0 {
			break
		}
	}
	return c.text[from:c.at]
}

// quotes goes behind a quoted text.
func (c *checker) quotes() {
	for c.at++; c.text[c.at] != '"'; c.at++ {
		if c.text[c.at] == '\\' {
			c.at++
		}
	}
	c.at++
}
