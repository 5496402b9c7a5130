package service

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestAskingForReadinessIsBounded: a thousand concurrent requests cause one check, and
// those of the next second none.
func TestAskingForReadinessIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var (
			a       answers
			looks   int
			verdict = errors.New("away")
			asking  sync.WaitGroup
		)
		a.ready = func(context.Context) error {
			looks++
			time.Sleep(100 * time.Millisecond)
			return verdict
		}
		crowd := func() {
			for range 1000 {
				asking.Go(func() {
					if _, err := a.ask(t.Context()); !errors.Is(err, verdict) {
						t.Errorf("the answer is %v", err)
					}
				})
			}
			asking.Wait()
		}
		crowd()
		time.Sleep(answerHolds - time.Millisecond)
		crowd()
		if looks != 1 {
			t.Errorf("%d looks", looks)
		}
		time.Sleep(time.Millisecond)
		crowd()
		if looks != 2 {
			t.Errorf("%d looks after the answer has expired", looks)
		}
	})
}

// TestWhoGivesUpTakesNobodysAnswer: if a requester hangs up, its check continues for the
// others, for no longer than a check may take.
func TestWhoGivesUpTakesNobodysAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := answers{ready: func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		}}
		hasty, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		began := time.Now()
		if _, err := a.ask(hasty); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Millisecond {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
		if _, err := a.ask(t.Context()); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != readyTimeout {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
	})
}
