package cause

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

type advised struct{ text, advice string }

func (a advised) Error() string  { return a.text }
func (a advised) Advice() string { return a.advice }

func TestNewCausesAreLogged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var l Log
		down, right := errors.New("unavailable"), errors.New("permission denied")
		for i, step := range []struct {
			after time.Duration
			err   error
			first bool
			want  bool
		}{
			{0, down, true, true},
			{0, down, false, false},
			{time.Hour, down, false, false}, // its cause has not changed
			{0, right, false, true},
			{0, down, false, true},
			{time.Second, right, false, false}, // too soon
			{time.Minute, right, false, true},
			{0, right, true, true}, // after a success
			{0, advised{"port 1", "check that it runs"}, false, true},
			{2 * time.Minute, fmt.Errorf("wrapped: %w", advised{"port 2", "check that it runs"}), false, false},
		} {
			<-time.After(step.after)
			if got := l.Worth(step.err, step.first); got != step.want {
				t.Errorf("step %d: %v is logged: %t", i, step.err, got)
			}
		}
	})
}

func TestNumberOfCausesIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var l Log
		logged := 0
		const minutes = 10
		for i := range 60 * minutes {
			if l.Worth(fmt.Errorf("cause %d", i), false) {
				logged++
			}
			<-time.After(time.Second)
		}
		if logged > most*minutes {
			t.Errorf("%d causes are logged in %d minutes", logged, minutes)
		}
	})
}
