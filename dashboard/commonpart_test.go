package dashboard

import (
	"strings"
	"testing"
)

// The part of an error by which a group is retried is in every error of the group.
func TestCommonPartIsInEveryErrorOfTheGroup(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 100)
	for _, group := range [][]string{
		{"card 17 was refused: code 5", "card 2345 was refused: code 0x1f"},
		{"a\n  b 1 second line", "a \n b 22 second line", "a\tb 3 second line"},
		{"  dial tcp 10.0.0.1:5432: refused", "dial tcp 10.0.0.27:1: refused  "},
		{long + " 1 " + long + "a", long + " 22 " + long + "b"},
		{"é" + strings.Repeat("ü", 90) + "1", "é" + strings.Repeat("ü", 90) + "2"},
		{"17", "4"}, {""}, {"a 1 b", "a 2 b"}, {"\x1b[31mred 1\u202e", "\x1b[31mred 2\u202e"},
		{"id 6f1e5bd4-3a56-4a0c-9c2e-6f3b1d0c7a11 is gone", "id 00000000-0000-0000-0000-000000000001 is gone"},
	} {
		for _, from := range group {
			part := commonPart(from)
			for _, text := range group {
				if folded(from) != folded(text) {
					t.Errorf("%q and %q are no group", from, text)
				}
				if !strings.Contains(text, part) {
					t.Errorf("%q of %q is not in %q", part, from, text)
				}
			}
		}
	}
	for text, want := range map[string]string{"card 17 was refused: code 5": "was refused: code", "17": "", "a 1 b": "", "no": ""} {
		if got := commonPart(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
