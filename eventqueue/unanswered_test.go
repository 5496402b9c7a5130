package eventqueue_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/memnotify"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/test/rig"
)

var errCut = errors.New("read: connection reset by peer")

// promisedStart is within what an event starts after any single failure.
const promisedStart = 2 * time.Second

// cutRig is a queue whose database loses answers, in virtual time.
type cutRig struct {
	*testing.T
	pool     *pgxpool.Pool
	store    *rig.FaultyStore
	notifier *memnotify.Notifier
	queue    *eventqueue.Queue

	mu       sync.Mutex
	lose     map[rig.Op]func(context.Context) error
	searches int
	marks    int
}

func withCutQueue(t *testing.T, test func(r *cutRig)) {
	t.Helper()
	rig.InBubble(t, func(t *testing.T, pool *pgxpool.Pool) {
		r := &cutRig{T: t, pool: pool, notifier: memnotify.New(memnotify.Config{})}
		r.store = rig.Faulty(pgstore.New(pool), rig.Faults{After: r.after})
		var err error
		if r.queue, err = eventqueue.New(r.store, r.notifier, eventqueue.QueueConfig{NoMinutes: true}); err != nil {
			t.Fatal(err)
		}
		test(r)
		if err := r.queue.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func (r *cutRig) after(ctx context.Context, op rig.Op) error {
	r.mu.Lock()
	if op == rig.OpUnclaimed {
		r.searches++
	}
	if op == rig.OpMarkPending {
		r.marks++
	}
	lose := r.lose[op]
	r.mu.Unlock()
	if lose == nil {
		return nil
	}
	return lose(ctx)
}

// loses has the answers of operations lost from now on.
func (r *cutRig) loses(how func(context.Context) error, ops ...rig.Op) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lose = map[rig.Op]func(context.Context) error{}
	for _, op := range ops {
		r.lose[op] = how
	}
}

// The ways to lose an answer: at once, and with a connection that stays silent.
func cut(context.Context) error { return errCut }

func silent(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// published waits, and returns how many notifications were published in that time or before.
func (r *cutRig) published(wait time.Duration) int {
	time.Sleep(wait)
	synctest.Wait()
	return int(r.notifier.Stats().Published)
}

func (r *cutRig) searched() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.searches
}

func (r *cutRig) inTx(ctx context.Context, events ...eventqueue.NewEvent) error {
	return r.queue.InTx(ctx, func(ctx context.Context, tx *eventqueue.Tx) error {
		_, err := tx.Emit(ctx, events...)
		return err
	})
}

func keyedEvent(unique, ordering string) eventqueue.NewEvent {
	e := groupEvent(`{}`)
	e.UniqueKey, e.OrderingKey = unique, ordering
	return e
}

// TestUnansweredEmitIsNotified (I19): in every form of emit, and however the answer is lost.
func TestUnansweredEmitIsNotified(t *testing.T) {
	t.Parallel()
	delayed := groupEvent(`{}`)
	delayed.Delay = time.Minute
	for name, c := range map[string]struct {
		op   rig.Op
		emit func(ctx context.Context, r *cutRig) error
		want int
	}{
		"one": {rig.OpInsert, func(ctx context.Context, r *cutRig) error { _, err := r.queue.Emit(ctx, groupEvent(`{}`)); return err }, 1},
		"many": {rig.OpInsert, func(ctx context.Context, r *cutRig) error {
			_, err := r.queue.EmitMany(ctx, groupEvents(1500))
			return err
		}, 1500},
		"unique": {rig.OpInsert, func(ctx context.Context, r *cutRig) error {
			_, err := r.queue.EmitUnique(ctx, keyedEvent("a", ""), keyedEvent("b", ""))
			return err
		}, 2},
		"ordered: the first of each group": {rig.OpInsert, func(ctx context.Context, r *cutRig) error {
			_, err := r.queue.EmitMany(ctx, []eventqueue.NewEvent{keyedEvent("", "a"), keyedEvent("", "a"), keyedEvent("", "b")})
			return err
		}, 2},
		"delayed":          {rig.OpInsert, func(ctx context.Context, r *cutRig) error { _, err := r.queue.Emit(ctx, delayed); return err }, 1},
		"in a transaction": {rig.OpCommit, func(ctx context.Context, r *cutRig) error { return r.inTx(ctx, groupEvent(`{}`), groupEvent(`{}`)) }, 2},
	} {
		for how, lose := range map[string]func(context.Context) error{"cut": cut, "silent": silent} {
			t.Run(name+", "+how, func(t *testing.T) {
				t.Parallel()
				withCutQueue(t, func(r *cutRig) {
					r.loses(lose, c.op)
					result := make(chan error, 1)
					go func() {
						ctx, cancel := context.WithTimeout(r.Context(), 30*time.Second)
						defer cancel()
						result <- c.emit(ctx, r)
					}()
					if n := r.published(promisedStart); n != c.want {
						r.Errorf("%d notifications were published %s after the commit, want %d", n, promisedStart, c.want)
					}
					r.loses(nil)
					most := c.want
					if how == "silent" { // and once more when the emit has failed
						most *= 2
					}
					if n := r.published(time.Minute); n > most {
						r.Errorf("%d notifications were published in the end, want at most %d", n, most)
					}
					if err := <-result; err == nil {
						r.Error("the emit returned no error")
					}
				})
			})
		}
	}
}

func groupEvents(n int) []eventqueue.NewEvent {
	events := make([]eventqueue.NewEvent, n)
	for i := range events {
		events[i] = groupEvent(`{}`)
	}
	return events
}

// TestNoSearchWithoutALostAnswer (I12): what was answered, or cannot have been committed, costs nothing.
func TestNoSearchWithoutALostAnswer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err error
		op  rig.Op
	}{
		"answered":           {nil, rig.OpInsert},
		"refused":            {&pgconn.PgError{Code: "23514"}, rig.OpInsert},
		"no connection":      {&pgconn.ConnectError{}, rig.OpInsert},
		"rolled back":        {pgx.ErrTxCommitRollback, rig.OpCommit},
		"a statement before": {errCut, rig.OpInsert},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			withCutQueue(t, func(r *cutRig) {
				r.loses(func(context.Context) error { return c.err }, c.op)
				var err error
				if name == "a statement before" || c.op == rig.OpCommit {
					err = r.inTx(r.Context(), groupEvent(`{}`))
				} else {
					_, err = r.queue.Emit(r.Context(), groupEvent(`{}`))
				}
				if !errors.Is(err, c.err) {
					r.Errorf("the emit returned %v, want %v", err, c.err)
				}
				if r.published(time.Minute); r.searched() != 0 {
					r.Errorf("%d searches", r.searched())
				}
			})
		})
	}
}

// TestLateAnswerEndsTheSearch: a database that is only slow does not have every event notified twice.
func TestLateAnswerEndsTheSearch(t *testing.T) {
	t.Parallel()
	slow := func(takes time.Duration) func(context.Context, rig.Op) error {
		return func(_ context.Context, op rig.Op) error {
			if op == rig.OpInsert || op == rig.OpCommit {
				time.Sleep(takes)
			}
			return nil
		}
	}
	for name, c := range map[string]struct {
		before, after time.Duration // the commit
		searches      int
	}{
		"slow to answer": {after: 1600 * time.Millisecond},
		"slow to commit": {before: 4 * time.Second, searches: 2}, // 1.7 and 2.7 s after the begin
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			withCutQueue(t, func(r *cutRig) {
				r.store.Inject(rig.Faults{Before: slow(c.before), After: func(ctx context.Context, op rig.Op) error {
					_ = r.after(ctx, op)
					return slow(c.after)(ctx, op)
				}})
				if _, err := r.queue.EmitMany(r.Context(), groupEvents(10)); err != nil {
					r.Fatal(err)
				}
				if n := r.published(time.Minute); n != 10 || r.searched() != c.searches {
					r.Errorf("%d notifications of 10 events after %d searches, want %d searches", n, r.searched(), c.searches)
				}
				if err := r.inTx(r.Context(), groupEvent(`{}`)); err != nil {
					r.Fatal(err)
				}
				if n := r.published(time.Minute); n != 11 {
					r.Errorf("%d further notifications of one event in a transaction", n-10)
				}
			})
		})
	}
}

// TestLateAnswerEndsNoOtherSearch: another emit for the same handler has lost its answer, or has none yet.
func TestLateAnswerEndsNoOtherSearch(t *testing.T) {
	t.Parallel()
	for name, other := range map[string]func(context.Context) error{"cut": cut, "silent": silent} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			withCutQueue(t, func(r *cutRig) {
				commit := make(chan func(context.Context) error, 2)
				commit <- other
				commit <- func(context.Context) error { time.Sleep(1600 * time.Millisecond); return nil }
				r.store.Inject(rig.Faults{After: func(ctx context.Context, op rig.Op) error {
					if op == rig.OpCommit {
						return (<-commit)(ctx)
					}
					return r.after(ctx, op)
				}})
				r.loses(cut, rig.OpUnclaimed)
				lost, cancel := context.WithTimeout(r.Context(), time.Minute)
				defer cancel()
				var emits sync.WaitGroup
				emits.Go(func() { _ = r.inTx(lost, groupEvent(`"lost"`)) })
				synctest.Wait()
				emits.Go(func() { _ = r.inTx(r.Context(), groupEvent(`"late"`)) })
				if n := r.published(3 * time.Second); n != 1 {
					r.Errorf("%d notifications before the search, want that of the late emit", n)
				}
				r.loses(nil)
				if n := r.published(10 * time.Second); n != 3 { // that of the late one is found as well
					r.Errorf("%d notifications, want 3", n)
				}
				emits.Wait()
			})
		})
	}
}

// TestFailedSearchIsRetried until the database answers, and no longer than for a minute.
func TestFailedSearchIsRetried(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lasts time.Duration
		want  int
	}{"for half a minute": {30 * time.Second, 1}, "for two minutes": {2 * time.Minute, 0}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			withCutQueue(t, func(r *cutRig) {
				r.loses(cut, rig.OpInsert, rig.OpUnclaimed)
				_, _ = r.queue.Emit(r.Context(), groupEvent(`{}`))
				if n := r.published(c.lasts); n != 0 {
					r.Fatalf("%d notifications without a search", n)
				}
				tries := r.searched()
				if tries < 5 || tries > 30 {
					r.Errorf("%d searches in %s", tries, c.lasts)
				}
				r.loses(nil)
				if n := r.published(10 * time.Second); n != c.want {
					r.Errorf("%d notifications were published 10 s after the database has come back, want %d", n, c.want)
				}
				if r.published(time.Hour); c.want == 0 && r.searched() != tries {
					r.Errorf("%d further searches", r.searched()-tries)
				}
			})
		})
	}
}

// TestLateCommitIsFound: the server goes on with an insert whose connection is lost.
func TestLateCommitIsFound(t *testing.T) {
	t.Parallel()
	withCutQueue(t, func(r *cutRig) {
		r.loses(cut, rig.OpInsert)
		began := time.Now()
		if err := r.store.InTx(r.Context(), func(ctx context.Context, db eventqueue.DB) error {
			r.loses(nil)
			if _, err := r.store.Insert(ctx, db, groupEvents(1), eventqueue.NotifyModeSelf); err != nil {
				return err
			}
			r.loses(func(context.Context) error { return errCut }, rig.OpInsert)
			_, _ = r.queue.Emit(r.Context(), groupEvent(`{}`))
			if n := r.published(promisedStart); n != 1 {
				r.Errorf("%d notifications of the emit that was committed at once", n)
			}
			return nil
		}); err != nil {
			r.Fatal(err)
		}
		if n := r.published(5 * time.Second); n != 2 {
			r.Errorf("%d notifications %s after the emit, want 2", n, time.Since(began))
		}
		if r.published(time.Hour); r.searched() != 4 {
			r.Errorf("%d searches in all, want 4", r.searched())
		}
	})
}

// TestCloseSearchesALastTime: a program that ends does not leave its events to the relay.
func TestCloseSearchesALastTime(t *testing.T) {
	t.Parallel()
	withCutQueue(t, func(r *cutRig) {
		r.loses(cut, rig.OpInsert)
		_, _ = r.queue.Emit(r.Context(), groupEvent(`{}`))
		if err := r.queue.Close(r.Context()); err != nil {
			r.Error(err)
		}
		if n := r.published(0); n != 1 {
			r.Errorf("%d notifications", n)
		}
		if r.published(time.Hour); r.searched() != 1 {
			r.Errorf("%d searches, also after the close", r.searched())
		}
	})
}

// TestEmitsThatFailTogetherAreSearchedForTogether: one statement, for all handlers.
func TestEmitsThatFailTogetherAreSearchedForTogether(t *testing.T) {
	t.Parallel()
	withCutQueue(t, func(r *cutRig) {
		r.loses(cut, rig.OpInsert)
		var all sync.WaitGroup
		for i := range 50 {
			all.Go(func() {
				e := keyedEvent("", "")
				e.Canvas[1], e.UniqueKey = byte(i), "key"
				_, _ = r.queue.Emit(r.Context(), e)
			})
		}
		all.Wait()
		if n := r.published(500 * time.Millisecond); n != 50 || r.searched() != 1 {
			r.Errorf("%d notifications with %d searches, want 50 with one", n, r.searched())
		}
	})
}
