package sim_test

import (
	"strings"
	"testing"

	"eventsv2/test/sim"
)

func TestPart(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ first, second, want string }{
		{"a b", "a b", ""},
		{"", "", ""},
		{"a b", "a c", "line 2"},
		{"a", "a b", "(the end)"},
		{"a b", "a", "(the end)"},
	} {
		got := sim.Part(strings.Fields(c.first), strings.Fields(c.second))
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%q and %q: got %q, want %q", c.first, c.second, got, c.want)
		}
	}
}
