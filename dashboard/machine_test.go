package dashboard

import (
	"strings"
	"testing"

	"eventsv2/eventqueue/machine"
)

// The picture has every state and every arrow of the code, and a way to each label.
func TestThePictureIsTheMachine(t *testing.T) {
	t.Parallel()
	for _, a := range machine.Arrows() {
		p := way(a.Label)
		if len(p.Arrows) != len(machine.Arrows()) {
			t.Fatalf("%d arrows are drawn, the machine has %d", len(p.Arrows), len(machine.Arrows()))
		}
		taken := false
		for _, drawn := range p.Arrows {
			taken = taken || drawn.Taken && drawn.Label == string(a.Label)
			if drawn.Y <= 0 || drawn.Y > p.Height {
				t.Errorf("the arrow %q is drawn at %d of %d", drawn.Label, drawn.Y, p.Height)
			}
		}
		if !taken || !strings.HasPrefix(p.Text, "Queue ") {
			t.Errorf("no way with %q: %s", a.Label, p.Text)
		}
	}
}

// Errors that differ in ids and numbers only are one group.
func TestErrorsAreFolded(t *testing.T) {
	t.Parallel()
	a := folded("user 17 (6f1e5bd4-3a56-4a0c-9c2e-6f3b1d0c7a11) not found at 0xc0ffee")
	b := folded("user 4 (00000000-3a56-4a0c-9c2e-6f3b1d0c7a11) not found at 0x12")
	if a != b || a != "user # (#) not found at #" {
		t.Errorf("%q and %q", a, b)
	}
}
