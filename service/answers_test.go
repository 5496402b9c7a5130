package service

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestReadinessChecksAreBounded: a thousand concurrent requests cause one check, and
// those of the next second none.
func TestReadinessChecksAreBounded(t *testing.T) {
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
		crowd() // which takes 100 ms of the time for which the answer holds
		time.Sleep(answerHolds - 101*time.Millisecond)
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

// peer is a Postgres that is asked for readiness.
type peer struct {
	hangs bool
	away  error
	asked []time.Time // when it was sent a statement
	pings int
}

func (p *peer) ready(ctx context.Context) error {
	p.asked = append(p.asked, time.Now())
	return p.answer(ctx)
}

func (p *peer) reached(ctx context.Context) error {
	p.pings++
	return p.answer(ctx)
}

func (p *peer) answer(ctx context.Context) error {
	if p.hangs {
		<-ctx.Done()
		return ctx.Err()
	}
	return p.away
}

// shows asks until the answer is this, and fails the test when that takes longer than ten seconds.
func (p *peer) shows(t *testing.T, a *answers, well bool) {
	t.Helper()
	for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		_, err := a.ask(t.Context())
		took := time.Since(began)
		if took > answerHolds {
			t.Fatalf("%t is not shown after %s", well, took)
		}
		if (err == nil) == well {
			return
		}
	}
}

// TestStateOfPostgresShowsWithinTenSeconds (I19): asked all the time, a program shows within ten seconds that
// its database is gone, hangs, or is back, whenever that begins, and sends it a statement no more often.
func TestStateOfPostgresShowsWithinTenSeconds(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(p *peer, well bool){
		"it is gone": func(p *peer, well bool) {
			if p.away = errors.New("away"); well {
				p.away = nil
			}
		},
		"it hangs": func(p *peer, well bool) { p.hangs = !well },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for i := range 41 * 21 { // so long after the first answer, and for so long
				after, lasts := time.Duration(i/21)*answerHolds/20, time.Duration(i%21)*answerHolds/10
				synctest.Test(t, func(t *testing.T) {
					var p peer
					a := &answers{ready: p.ready, reached: p.reached}
					for began := time.Now(); time.Since(began) <= after; time.Sleep(50 * time.Millisecond) {
						p.shows(t, a, true)
					}
					change(&p, false)
					p.shows(t, a, false)
					for began := time.Now(); time.Since(began) < lasts; time.Sleep(50 * time.Millisecond) {
						p.shows(t, a, false)
					}
					change(&p, true)
					p.shows(t, a, true)
					for i, at := range p.asked[1:] {
						if after := at.Sub(p.asked[i]); after < answerHolds || after > answerHolds+100*time.Millisecond { // however long the one before took
							t.Errorf("asked again after %s", after)
						}
					}
					if p.pings > len(p.asked) {
						t.Errorf("%d pings beside %d statements", p.pings, len(p.asked))
					}
				})
			}
		})
	}
}

// TestPingSaysNothingAboutTheNotifier: an answer that is confirmed is as old as before, and says the same.
func TestPingSaysNothingAboutTheNotifier(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, verdict := range []error{nil, &notifierError{errors.New("permission denied")}} {
			var pings int
			a := answers{
				ready:   func(context.Context) error { return verdict },
				reached: func(context.Context) error { pings++; return nil },
			}
			for _, after := range []time.Duration{0, reachedHolds, answerHolds - reachedHolds - 1} {
				time.Sleep(after)
				if _, err := a.ask(t.Context()); !errors.Is(err, verdict) {
					t.Errorf("the answer is %v, want %v", err, verdict)
				}
			}
			if age, _ := a.ask(t.Context()); age != answerHolds-1 || pings != 1 {
				t.Errorf("the answer is %s old after %d pings", age, pings)
			}
			time.Sleep(time.Nanosecond)
			if age, _ := a.ask(t.Context()); age != 0 || pings != 1 {
				t.Errorf("the next answer is %s old after %d pings", age, pings)
			}
		}
	})
}

// TestAbandonedCheckAnswersOtherRequests: if a requester hangs up, its check continues for the
// others, for no longer than a check may take.
func TestAbandonedCheckAnswersOtherRequests(t *testing.T) {
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
