package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// write puts the result of a command on standard output: doc as one JSON
// document, or what human writes as text.
func (a *app) write(doc any, human func(w io.Writer)) error {
	var text bytes.Buffer
	if a.json {
		encoder := json.NewEncoder(&text)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(doc); err != nil {
			return failed(fmt.Errorf("write the result as JSON: %w", err))
		}
		text = *bytes.NewBuffer(printableJSON(text.Bytes()))
	} else {
		human(&text)
	}
	if _, err := a.stdout.Write(text.Bytes()); err != nil {
		return failed(fmt.Errorf("the command has done its work, but its result cannot be written to standard output: %w", err))
	}
	return nil
}

// complain writes an error, or a warning with that kind, to standard error.
func (a *app) complain(kind string, err error) {
	if a.json {
		key := kind
		if key == "" {
			key = "error"
		}
		text, _ := json.Marshal(map[string]string{key: err.Error()}) // a string always becomes JSON
		_, _ = a.stderr.Write(append(printableJSON(text), '\n'))     // nowhere else to say it
		return
	}
	if kind != "" {
		kind += ": "
	}
	_, _ = fmt.Fprintf(a.stderr, "eventctl: %s%s\n", kind, printableLines(err.Error()))
}

// table writes rows of cells in columns; the first row is the heading.
func table(w io.Writer, rows [][]string) {
	columns := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		_, _ = fmt.Fprintln(columns, strings.TrimRight(strings.Join(row, "\t"), "\t")) // to a buffer
	}
	_ = columns.Flush()
}

// printable is a text as a terminal may see it: quoted when anything in it is not
// printable.
func printable(s string) string {
	if !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(s)
	}
	return s
}

// printableLines is printable for messages, whose line ends stay and whose other
// control characters are escaped.
func printableLines(s string) string {
	var b strings.Builder
	for _, r := range strings.ToValidUTF8(s, "\uFFFD") {
		if r == '\n' || unicode.IsPrint(r) {
			b.WriteRune(r)
			continue
		}
		quoted := strconv.QuoteRune(r)
		b.WriteString(quoted[1 : len(quoted)-1])
	}
	return b.String()
}

// printableJSON replaces characters that are not printable by their escapes. In
// valid JSON they stand in strings only, so that it means the same. Outside of
// strings there are the four kinds of white space, of which a carriage return
// is dropped.
func printableJSON(text []byte) []byte {
	out := make([]byte, 0, len(text))
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		switch {
		case r == utf8.RuneError && size == 1:
			out = append(out, "\uFFFD"...)
		case r == '\n' || r == '\t' || unicode.IsPrint(r):
			out = append(out, text[:size]...)
		case r == '\r':
		case r > 0xFFFF:
			high, low := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
		text = text[size:]
	}
	return out
}

// age writes a duration in its two largest units: 12s, 3m12s, 5h3m, 2d7h.
func age(d time.Duration) string {
	d = max(d, 0)
	const day = 24 * time.Hour
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm%ds", d/time.Minute, d%time.Minute/time.Second)
	case d < day:
		return fmt.Sprintf("%dh%dm", d/time.Hour, d%time.Hour/time.Minute)
	default:
		return fmt.Sprintf("%dd%dh", d/day, d%day/time.Hour)
	}
}

// when says how long ago a time was, or how far off it is.
func when(t, now time.Time) string {
	if t.After(now) {
		return "in " + age(t.Sub(now)+time.Second-1) // never in 0s
	}
	return age(now.Sub(t)) + " ago"
}

// jsonValue puts the value of an event into a document. Rows that were written
// by SQL may hold a text that is no JSON: it becomes a string.
func jsonValue(value []byte) json.RawMessage {
	if len(value) == 0 || json.Valid(value) {
		return value
	}
	text, _ := json.Marshal(string(value)) // a string always becomes JSON
	return text
}

func clockTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// plural counts things: 1 event, 2 events.
func plural[N int | int64](n N, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
