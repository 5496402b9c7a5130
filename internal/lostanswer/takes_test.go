package lostanswer_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"go.uber.org/zap"

	"eventsv2/internal/lostanswer"
)

// store has events whose rows others hold for a time.
type store struct {
	mu        sync.Mutex
	heldUntil map[int]time.Time
	marked    [4]int // how often each was
}

// times returns how often each event was marked.
func (s *store) times() [4]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.marked
}

func (s *store) MarkPending(context.Context, []int) error { return errors.New("not for this store") }

func (s *store) MarkPendingOrHeld(_ context.Context, ids []int) (held []int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range ids {
		if time.Now().Before(s.heldUntil[id]) {
			held = append(held, id)
		} else {
			s.marked[id]++
		}
	}
	return held, nil
}

// TestRowsHeldByAnUnansweredStatementAreMarkedLater (I19): its commit may come after its client has given up; and what
// stays locked for ever is left to the relay in the end.
func TestRowsHeldByAnUnansweredStatementAreMarkedLater(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &store{heldUntil: map[int]time.Time{2: time.Now().Add(3 * time.Second), 3: time.Now().Add(time.Hour)}}
		takes := lostanswer.New(s, zap.NewNop())
		takes.AwaitFailure([]int{1, 2, 3})(context.DeadlineExceeded)
		<-time.After(time.Second)
		if got := s.times(); got != [4]int{1: 1} {
			t.Errorf("at first they were marked %v times", got)
		}
		<-time.After(2*time.Second + lostanswer.MaxWait)
		if got := s.times(); got != [4]int{1: 1, 2: 1} {
			t.Errorf("after the commit they were marked %v times", got)
		}
		<-time.After(2 * time.Hour)
		if err := takes.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if got := s.times(); got != [4]int{1: 1, 2: 1} {
			t.Errorf("in the end they were marked %v times", got)
		}
	})
}

// hung is a store that answers nothing.
type hung struct {
	mu           sync.Mutex
	under, marks int
}

func (h *hung) count(under, marks int) (int, int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.under += under
	h.marks += marks
	return h.under, h.marks
}

func (h *hung) MarkPending(ctx context.Context, _ []int) error {
	h.count(1, 1)
	defer h.count(-1, 0)
	<-ctx.Done()
	return ctx.Err()
}

// TestCloseWaitsForItsGoroutines: when its context has ended, no mark is under way, and none follows.
func TestCloseWaitsForItsGoroutines(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := &hung{}
		takes := lostanswer.New(h, zap.NewNop())
		takes.AwaitFailure([]int{1})(context.DeadlineExceeded)
		<-time.After(time.Second)
		if under, _ := h.count(0, 0); under != 1 {
			t.Errorf("%d marks are under way, want 1", under)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		began := time.Now()
		if err := takes.Close(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > 500*time.Millisecond {
			t.Errorf("Close returned %v after %s", err, time.Since(began))
		}
		under, marks := h.count(0, 0)
		<-time.After(2 * lostanswer.GiveUpAfter)
		if _, later := h.count(0, 0); under != 0 || later != marks {
			t.Errorf("behind Close %d marks were under way, and %d followed", under, later-marks)
		}
	})
}

// refusing is a store whose marks fail.
type refusing struct {
	err   error
	marks atomic.Int32
}

func (r *refusing) MarkPending(context.Context, []int) error {
	r.marks.Add(1)
	return r.err
}

// TestRefusedMarkIsNotRepeated: the same statement would be refused again; a mark that fails for a while is repeated.
func TestRefusedMarkIsNotRepeated(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]bool{"42501": false, "23514": false, "53300": true, "57P01": true} {
		synctest.Test(t, func(t *testing.T) {
			s := &refusing{err: &pgconn.PgError{Code: code}}
			takes := lostanswer.New(s, zap.NewNop())
			takes.AwaitFailure([]int{1})(context.DeadlineExceeded)
			<-time.After(lostanswer.GiveUpAfter / 2)
			if marks := s.marks.Load(); (marks > 1) != want || marks == 0 {
				t.Errorf("%s: it was marked %d times", code, marks)
			}
			if err := takes.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}
