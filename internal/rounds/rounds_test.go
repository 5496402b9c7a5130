package rounds

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestStalledLoopIsNamed, once it is certain.
func TestStalledLoopIsNamed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var w Watch
		loop, other := w.Loop("pull loop"), w.Loop("relay")
		other.Waits()
		loop.Within(time.Minute)
		<-time.After(time.Minute + grace - 1)
		expect(t, &w, "")
		<-time.After(1)
		expect(t, &w, "") // seen for the first time
		<-time.After(sure - 1)
		expect(t, &w, "")
		<-time.After(1)
		expect(t, &w, "the pull loop has not gone round for 1m35s")
		loop.Within(time.Minute) // it was only late
		expect(t, &w, "")
		<-time.After(time.Hour)
		expect(t, &w, "")
		<-time.After(sure)
		expect(t, &w, "the pull loop has not gone round for 1h0m5s")
		loop.Waits()
		expect(t, &w, "")
		other.Within(0)
		other.Ends()
		<-time.After(time.Hour)
		expect(t, &w, "")
		<-time.After(time.Hour)
		expect(t, &w, "")
	})
}

// TestThawedProgramIsGivenTime: while it was frozen, nothing in it went round.
func TestThawedProgramIsGivenTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var w Watch
		loop := w.Loop("pull loop")
		loop.Within(0)
		<-time.After(24 * time.Hour)
		expect(t, &w, "")
		<-time.After(sure / 2)
		loop.Within(0)
		<-time.After(sure)
		expect(t, &w, "")
	})
}

// TestLoopRunsWithoutAWatch: a loop without a watch goes round as well.
func TestLoopRunsWithoutAWatch(t *testing.T) {
	t.Parallel()
	var loop *Loop
	loop.Within(time.Second)
	loop.Waits()
	loop.Ends()
}

func expect(t *testing.T, w *Watch, want string) {
	t.Helper()
	got := ""
	if err := w.Stalled(); err != nil {
		got = err.Error()
	}
	if got != want {
		t.Errorf("stalled: %q, want %q", got, want)
	}
}
