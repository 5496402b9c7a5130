package httptarget

import (
	"io"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// drainBytes is how much of an answer is read so that its connection can be
	// used again; beyond that a new connection is cheaper.
	drainBytes = 64 << 10

	// excerptBytes is how much of an answer goes into an error.
	excerptBytes = 200

	// cutOff is behind the beginning of an answer that is longer.
	cutOff = "…"
)

// drainBody reads the body as far as that saves a new connection, closes it, and
// returns its beginning in printable form. An error while reading changes nothing:
// the status has been received, and it alone decides.
func drainBody(response *http.Response) string {
	defer response.Body.Close()
	if response.StatusCode < 200 {
		// After 101 the body is the raw connection, on which a read never ends.
		return ""
	}
	head := make([]byte, excerptBytes)
	n, err := io.ReadFull(response.Body, head)
	if err != nil {
		return printable(head[:n])
	}
	more, _ := io.CopyN(io.Discard, response.Body, drainBytes-excerptBytes)
	if more > 0 {
		return printable(wholeRunes(head)) + cutOff
	}
	return printable(head)
}

// wholeRunes drops the last rune if it is incomplete.
func wholeRunes(b []byte) []byte {
	for i := len(b) - 1; i >= max(len(b)-utf8.UTFMax, 0); i-- {
		if utf8.RuneStart(b[i]) {
			if !utf8.FullRune(b[i:]) {
				return b[:i]
			}
			break
		}
	}
	return b
}

// printable turns any bytes into one line of valid UTF-8 without control characters.
func printable(b []byte) string {
	valid := strings.ToValidUTF8(string(b), "\uFFFD")
	line := strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, valid)
	return strings.Join(strings.Fields(line), " ")
}
