package rig

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Stall is a call that does not return: one that honors its context returns when that has ended, as it does when a
// database does not answer; any other stays until it is released, as in a program that has come to a deadlock.
type Stall struct {
	call     string
	honors   bool
	released chan struct{}

	mu    sync.Mutex
	asked int
}

// NewStall is of a call that honors its context.
func NewStall(call string) *Stall {
	return &Stall{call: call, honors: true, released: make(chan struct{})}
}

// In is called by each call of a test's store or notifier, with its name.
func (s *Stall) In(ctx context.Context, call string) error {
	if call != s.call {
		return nil
	}
	s.mu.Lock()
	s.asked++
	s.mu.Unlock()
	if s.honors {
		<-ctx.Done()
		return ctx.Err()
	}
	<-s.released
	return context.Canceled
}

// AskedAgain requires that a call which never answers is made again, several times in ten minutes.
func (s *Stall) AskedAgain(t *testing.T) {
	t.Helper()
	Pass(10 * time.Minute)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asked < 5 {
		t.Errorf("what does not answer was asked %d times in ten minutes", s.asked)
	}
}

// Release has the call return.
func (s *Stall) Release() { close(s.released) }

// Run runs a part in which the call is made until stop releases it.
func (s *Stall) Run(t *testing.T, run func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- run(ctx) }()
	return func() {
		cancel()
		s.Release()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// Stalls runs a test twice for each call, in virtual time: stalled of what begin starts names the loop whose call never
// returns within ten minutes, and nothing where the call ends by its time-out. stop releases the stall. Without a call,
// nothing stalls.
func Stalls(t *testing.T, loops map[string]string, begin func(t *testing.T, s *Stall) (stalled func() error, stop func())) {
	t.Helper()
	for call, loop := range loops {
		for _, honors := range []bool{false, true} {
			if call == "" && !honors {
				continue
			}
			synctest.Test(t, func(t *testing.T) {
				s := NewStall(call)
				s.honors = honors
				stalled, stop := begin(t, s)
				defer stop()
				var why error
				for polled := 0; polled < 120 && why == nil; polled++ {
					Pass(5 * time.Second)
					why = stalled()
				}
				switch {
				case honors && why != nil:
					t.Errorf("%s ends by its time-out, and %v", call, why)
				case !honors && (why == nil || !strings.Contains(why.Error(), loop)):
					t.Errorf("%s does not return, and what is said is %v, want the %s", call, why, loop)
				}
			})
		}
	}
}
