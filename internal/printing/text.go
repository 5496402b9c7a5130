package printing

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Printable returns a text that is safe for a terminal: unchanged, or quoted if anything
// in it is not printable.
func Printable(s string) string {
	if !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(s)
	}
	return s
}

// PrintableLines is Printable for messages of several lines: it leaves line ends unchanged and
// escapes other control characters.
func PrintableLines(s string) string {
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

// PrintableJSON escapes characters that are not printable. In valid JSON these occur only in
// strings, so the meaning does not change. Of the white space outside of strings, it drops
// carriage returns.
func PrintableJSON(text []byte) []byte {
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

// Brief returns the printable beginning of a text, of 80 bytes or less.
func Brief(s string) string {
	const most = 80
	if len(s) <= most {
		return Printable(s)
	}
	cut := most
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return Printable(s[:cut]) + "…"
}
