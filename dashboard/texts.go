package dashboard

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html/template"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/inspect"
	"eventsv2/internal/humantime"
	"eventsv2/internal/view"
)

// Longer texts are cut, so that a page stays small.
const (
	maxText  = 4 << 10
	maxValue = 48 << 10
	maxLine  = 160
)

func functions() template.FuncMap {
	return template.FuncMap{
		"clean": clean, "line": line, "count": count, "number": func(n int) string { return count(int64(n)) }, "age": humantime.Age, "requests": view.Requests, "refused": view.Refused,
		"stamp":       func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
		"exact":       exact,
		"since":       func(t, now time.Time) string { return humantime.Age(now.Sub(t)) + " ago" },
		"capitalized": func(word string) string { return strings.ToUpper(word[:1]) + word[1:] },
		"label":       strings.ToLower, "bounded": boundedCount,
		"sentence": sentence,
		"words":    func(name string) string { return strings.ReplaceAll(line(name), "_", " ") },
		"moment":   func(name, value string) any { return struct{ Name, Value string }{name, value} },
		"short":    func(c eventqueue.CanvasID) string { return c.String()[:8] },
	}
}

// exact shows a time to the second.
func exact(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

// choice is an option of a list in a form.
type choice struct{ Value, Text string }

// validities are how long a form offers that a token is valid, in days.
var validities = []choice{{"1", "1 day"}, {"30", "30 days"}, {"90", "90 days"}, {"365", "1 year"}}

var stamp = regexp.MustCompile(`\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`)

// sentence is clean, with times that a script shows on the clock of the viewer.
func sentence(s string) template.HTML {
	text := template.HTMLEscapeString(clean(s))
	return template.HTML(stamp.ReplaceAllStringFunc(text, func(at string) string { //nolint:gosec // what is not the pattern is escaped
		t, err := time.Parse(time.RFC3339, at)
		if err != nil {
			return at
		}
		return fmt.Sprintf(`<time class="clock" datetime="%s">%s</time>`, at, exact(t))
	}))
}

// clean shows characters that are not printable, or that reorder the text around them, as
// escapes; line ends and tabs stay.
func clean(s string) string {
	s, cut := shorten(s, maxText)
	var b strings.Builder
	for _, c := range strings.ToValidUTF8(s, "�") {
		if c == '\n' || c == '\t' || unicode.IsPrint(c) {
			b.WriteRune(c)
			continue
		}
		quoted := strconv.QuoteRuneToASCII(c)
		b.WriteString(quoted[1 : len(quoted)-1])
	}
	if cut {
		b.WriteString(" …")
	}
	return b.String()
}

// withoutControls replaces the control characters of a page but line ends and tabs. Texts that are shown have none; fields of
// forms have what an address, a form or a row says, and no name has any.
func withoutControls(page []byte) []byte {
	return bytes.Map(func(c rune) rune {
		switch {
		case c == '\r': // as browsers send before \n
			return -1
		case unicode.IsControl(c) && c != '\n' && c != '\t':
			return unicode.ReplacementChar
		default:
			return c
		}
	}, page)
}

// line is the beginning of a text, in one line.
func line(s string) string {
	s, cut := shorten(s, maxLine)
	s = strings.Join(strings.Fields(clean(s)), " ")
	if cut {
		s += " …"
	}
	return s
}

// shorten cuts a text between two characters.
func shorten(s string, limit int) (string, bool) {
	if len(s) <= limit {
		return s, false
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit], true
}

// value is a value of an event for a page: indented if it is short enough to be shown as a whole.
func value(v json.RawMessage) (text string, cut bool) {
	var b bytes.Buffer
	if len(v) <= maxValue && json.Indent(&b, v, "", "  ") == nil && b.Len() <= maxValue {
		v = b.Bytes()
	}
	text, cut = shorten(string(v), maxValue)
	return escaped(text), cut
}

// escaped is clean without its limit.
func escaped(s string) string {
	var b strings.Builder
	for part := s; part != ""; {
		head, _ := shorten(part, maxText)
		b.WriteString(clean(head))
		part = part[len(head):]
	}
	return b.String()
}

// count writes a number with separators of thousands.
func count(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// boundedCount writes a count of the events of a group.
func boundedCount(n int) string {
	if n > inspect.CountedInGroup {
		return "more than " + count(inspect.CountedInGroup)
	}
	return count(int64(n))
}
