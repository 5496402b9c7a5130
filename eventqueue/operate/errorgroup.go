package operate

import (
	"cmp"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// MaxErrorGroupBytes is how long the name of an error group may be.
	MaxErrorGroupBytes = 240
	// ErrorGroupReads is how many characters of an error decide its group.
	ErrorGroupReads = 1024
	// noErrorGroup is the group of what failed without a text.
	noErrorGroup = "(no error)"
)

// ErrorGroup is the name of the group of an error: the beginning of its text, in one line, with # for each UUID and each
// number. Errors that differ in nothing else are in one group.
func ErrorGroup(text string) string {
	text = firstRunes(text, ErrorGroupReads) // as statements read it: so a number at the cut is the same for all
	var b strings.Builder
	for text != "" {
		n, piece := nextOfGroup(text)
		if b.Len()+len(piece) > MaxErrorGroupBytes {
			break
		}
		if piece != " " || b.Len() > 0 {
			b.WriteString(piece)
		}
		text = text[n:]
	}
	return cmp.Or(strings.TrimRight(b.String(), " "), noErrorGroup)
}

func firstRunes(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for i := range text {
		if n == 0 {
			return text[:i]
		}
		n--
	}
	return text
}

// nextOfGroup returns how many bytes of a text come next, and what stands for them.
func nextOfGroup(text string) (n int, piece string) {
	if n = uuidAt(text); n == 0 {
		n = numberAt(text)
	}
	if n > 0 {
		return n, "#"
	}
	if n = len(text) - len(strings.TrimLeftFunc(text, isGap)); n > 0 {
		return n, " "
	}
	r, size := utf8.DecodeRuneInString(text)
	return size, string(r)
}

// isGap reports whether a character is white space, or one that no line shows.
func isGap(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }

// numberAt returns the length of the number with which a text begins; 0: it begins with none.
func numberAt(text string) (n int) {
	if strings.HasPrefix(text, "0x") {
		for n = len("0x"); n < len(text) && isHex(text[n]); n++ {
		}
		if n > len("0x") {
			return n
		}
	}
	for n = 0; n < len(text) && text[n] >= '0' && text[n] <= '9'; n++ {
	}
	return n
}

// uuidAt returns the length of the UUID with which a text begins; 0: it begins with none.
func uuidAt(text string) int {
	const length = len("00000000-0000-0000-0000-000000000000")
	if len(text) < length {
		return 0
	}
	for i := range length {
		switch i {
		case 8, 13, 18, 23:
			if text[i] != '-' {
				return 0
			}
		default:
			if !isHex(text[i]) {
				return 0
			}
		}
	}
	return length
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}
