package operate_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"eventsv2/eventqueue/operate"
)

// Errors that differ in ids and numbers only are one group.
func TestErrorGroupReplacesNumbers(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ü", 200)
	for text, want := range map[string]string{
		"user 17 (6f1e5bd4-3a56-4a0c-9c2e-6f3b1d0c7a11) not found at 0xc0ffee": "user # (#) not found at #",
		"":                 "(no error)",
		" \t\n":            "(no error)",
		"column bad":       "column bad",
		"column #":         "column #",
		"column 0x":        "column #x",
		"column bad1":      "column bad#",
		"  a\tb\r\n\x1b[ ": "a b [",
		"17":               "#",
		long:               strings.Repeat("ü", operate.MaxErrorGroupBytes/2),
		"deadbeef6f1e5bd4-3a56-4a0c-9c2e-6f3b1d0c7a11": "deadbeef#",
		"a\u202eb\u0085c": "a\u202eb c",
	} {
		if got := operate.ErrorGroup(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// What a statement reads of an error, its beginning, is in the same group as the error.
func FuzzErrorGroupIsOfTheBeginning(f *testing.F) {
	f.Add(strings.Repeat("6f1e5bd4-3a56-4a0c-9c2e-6f3b1d0c7a11 ", 40))
	f.Add("card 17 was refused: " + strings.Repeat("x", 2000))
	f.Add(strings.Repeat(" é1", 500) + "\x00\u2028")
	f.Fuzz(func(t *testing.T, text string) {
		if !utf8.ValidString(text) {
			t.Skip() // the database has none
		}
		group := operate.ErrorGroup(text)
		beginning := []rune(text)
		beginning = beginning[:min(len(beginning), operate.ErrorGroupReads)]
		if of := operate.ErrorGroup(string(beginning)); of != group {
			t.Errorf("%q, and of the beginning %q", group, of)
		}
		if len(group) > operate.MaxErrorGroupBytes || group == "" || strings.TrimSpace(group) != group || strings.ContainsAny(group, "\x00\n\t\x1b") || !utf8.ValidString(group) {
			t.Errorf("%q is no name of a group", group)
		}
	})
}
