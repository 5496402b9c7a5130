package fallback

import (
	"testing"
	"time"
)

// TestIdlePullWaits, at least for a moment, also when everything that it
// might do is overdue and another Pull's: otherwise it would spin until that has done it.
func TestIdlePullWaits(t *testing.T) {
	t.Parallel()
	r, err := New(struct{ Primary }{}, struct{ Store }{}, Config{})
	if err != nil {
		t.Fatal(err)
	}
	r.down, r.pulling = true, 1
	if wait := r.nextTime(); wait < time.Millisecond {
		t.Errorf("while the notifier is down a Pull waits %s", wait)
	}
	r.down = false
	if wait := r.nextTime(); wait < time.Millisecond {
		t.Errorf("while the notifier is well a Pull waits %s", wait)
	}
}
