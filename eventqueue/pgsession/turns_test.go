package pgsession

import "testing"

// TestRelaysStaggerTheirSignsOfLife: relays that have heard the same sign of life do not all send the next one.
func TestRelaysStaggerTheirSignsOfLife(t *testing.T) {
	t.Parallel()
	one, other := &Listening{to: ListenTo{Beats: true}}, &Listening{to: ListenTo{Beats: true}}
	for range 100 {
		one.hears()
		other.hears()
		a, _ := one.testAfter()
		b, _ := other.testAfter()
		if a < beatEvery || a >= beatEvery+turnWithin || beatEvery+turnWithin >= silentAfter {
			t.Fatalf("the next sign of life is given after %s, and connections are tested after %s", a, silentAfter)
		}
		if a != b {
			return
		}
	}
	t.Error("two relays always give their next sign of life at the same time")
}
