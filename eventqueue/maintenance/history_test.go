package maintenance_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/maintenance"
	"eventsv2/eventqueue/operate"
	"eventsv2/test/rig"
	"eventsv2/test/testenv"
)

// looks is a HistoryStore that records where each statement begins.
type looks struct {
	maintenance.HistoryStore
	mu     sync.Mutex
	afters []eventqueue.EventID
	err    error
	during func() // called during each statement, if it is set
}

func (l *looks) PruneLog(ctx context.Context, status maintenance.LogStatus, olderThan time.Duration, after eventqueue.EventID, limit int) (maintenance.PrunedPage, error) {
	l.mu.Lock()
	l.afters = append(l.afters, after)
	err := l.err
	l.mu.Unlock()
	if l.HistoryStore == nil {
		return maintenance.PrunedPage{}, err
	}
	if l.during != nil {
		l.during()
	}
	return l.HistoryStore.PruneLog(ctx, status, olderThan, after, limit)
}

func (l *looks) taken() []eventqueue.EventID {
	l.mu.Lock()
	defer l.mu.Unlock()
	taken := l.afters
	l.afters = nil
	return taken
}

func newPruner(t *testing.T, store maintenance.HistoryStore, config maintenance.PrunerConfig) *maintenance.Pruner {
	t.Helper()
	pruner, err := maintenance.NewPruner(store, config)
	if err != nil {
		t.Fatal(err)
	}
	return pruner
}

// logSQL writes entries with the ids $1 to $2, of which every tenth has failed;
// they ended $3 hours ago, five minutes after they were emitted.
const logSQL = `
INSERT INTO event_log (id, canvas_id, module, name, modifier, value, status, retries, attempts, last_error, enqueued_at, created_at)
SELECT id, '00000000-0000-4000-8000-000000000001', 'WORKER', 'greet', '_', '1',
    CASE WHEN id % 10 = 0 THEN 'FAILED' ELSE 'COMPLETED' END::event_log_status, 0, 1, CASE WHEN id % 10 = 0 THEN 'no luck' END,
    now() - $3 * interval '1 hour' - interval '5 minutes', now() - $3 * interval '1 hour'
FROM generate_series($1::bigint, $2::bigint) AS id`

// TestPrunerDeletesByStatusAndAge prunes 15,000 of 20,000 entries with several
// pruners at once, and has a trigger count what each statement deletes.
func TestPrunerDeletesByStatusAndAge(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	ctx := testenv.Context(t)
	r.Exec(logSQL, 1, 5000, 3000)
	r.Exec(logSQL, 5001, 15_000, 100)
	r.Exec(logSQL, 15_001, 20_000, 1)
	r.Exec(`CREATE TABLE deletions (n bigint, tx bigint)`)
	r.Exec(`CREATE FUNCTION record_deletion() RETURNS trigger LANGUAGE plpgsql AS
		$$ BEGIN INSERT INTO deletions SELECT count(*), txid_current() FROM gone; RETURN NULL; END $$`)
	r.Exec(`CREATE TRIGGER record_deletion AFTER DELETE ON event_log REFERENCING OLD TABLE AS gone
		FOR EACH STATEMENT EXECUTE FUNCTION record_deletion()`)
	config := maintenance.PrunerConfig{CompletedFor: 72 * time.Hour, FailedFor: 2160 * time.Hour, PerSecond: 1_000_000}
	var pruners sync.WaitGroup
	var mu sync.Mutex
	var all maintenance.Pruned
	for range 3 {
		pruner := newPruner(t, r.Store, config)
		pruners.Go(func() {
			done, err := pruner.Pass(ctx)
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			all.Completed += done.Completed
			all.Failed += done.Failed
		})
	}
	pruners.Wait()
	// What one had locked when another came by is the first one's.
	if want := (maintenance.Pruned{Completed: 13_500, Failed: 500}); all != want {
		t.Errorf("the pruners have deleted %+v, want %+v", all, want)
	}
	if left := rig.One[string](r, `SELECT string_agg(concat(status, ' ', n), ', ' ORDER BY status) FROM (
		SELECT status, count(*) AS n FROM event_log GROUP BY 1) AS left_over`); left != "COMPLETED 4500, FAILED 1500" {
		t.Errorf("%s are left", left)
	}
	if young := rig.One[int](r, `SELECT count(*) FROM event_log WHERE id > 15000`); young != 5000 {
		t.Errorf("%d of the 5000 young entries are left", young)
	}
	if most := rig.One[int](r, `SELECT max(n) FROM (SELECT sum(n) AS n FROM deletions GROUP BY tx) AS transactions`); most > 1000 {
		t.Errorf("a transaction has deleted %d entries", most)
	}
}

// TestPrunerDoesNotReadRetainedEntriesAgain: the pruner reads the first page of young entries, and
// does not read retained entries again.
func TestPrunerDoesNotReadRetainedEntriesAgain(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	ctx := testenv.Context(t)
	r.Exec(logSQL, 1, 5000, 100)
	r.Exec(logSQL, 5001, 20_000, 1)
	store := &looks{HistoryStore: r.Store}
	pruner := newPruner(t, store, maintenance.PrunerConfig{CompletedFor: 72 * time.Hour, PerSecond: 1_000_000})
	pass := func(want int) []eventqueue.EventID {
		t.Helper()
		done, err := pruner.Pass(ctx)
		if err != nil || done != (maintenance.Pruned{Completed: want}) {
			t.Fatalf("a pass has deleted %+v, %v, want %d completed ones", done, err, want)
		}
		return store.taken()
	}
	if got, want := pass(4500), []eventqueue.EventID{0, 1000, 2000, 3000, 4000, 5000}; !slices.Equal(got, want) {
		t.Errorf("the first pass looked behind %v, want %v", got, want)
	}
	// It goes on before the first completed event that it has kept, past 500 failed
	// ones. One that ends late in a place before that is found by a whole pass.
	r.Exec(logSQL, 11, 11, 100)
	for range 23 {
		if got, want := pass(0), []eventqueue.EventID{5000}; !slices.Equal(got, want) {
			t.Errorf("a later pass looked behind %v, want %v", got, want)
		}
	}
	if got, want := pass(1), []eventqueue.EventID{0, 5499}; !slices.Equal(got, want) {
		t.Errorf("the whole pass looked behind %v, want %v", got, want)
	}
}

// TestPrunerSkipsEventsBeingRetried prunes while a retry is under way.
func TestPrunerSkipsEventsBeingRetried(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	ctx := testenv.Context(t)
	r.Exec(logSQL, 1, 100, 100)
	tx, err := r.Pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	if _, err := tx.Exec(ctx, `SELECT FROM event_log WHERE id IN (10, 20) FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	pruner := newPruner(t, r.Store, maintenance.PrunerConfig{FailedFor: time.Hour})
	expect := func(want int) {
		t.Helper()
		if done, err := pruner.Pass(ctx); err != nil || done.Failed != want || done.Completed != 0 {
			t.Fatalf("a pass has deleted %+v, %v, want %d failed ones", done, err, want)
		}
	}
	expect(8)
	if err := tx.Rollback(ctx); err != nil {
		t.Fatal(err)
	}
	if retried, err := r.Store.Retry(ctx, operate.Edit{}, []eventqueue.EventID{10}); err != nil || retried[0].Result != "retried" {
		t.Fatalf("retry: %v, %v", retried, err)
	}
	expect(1)
	if n := r.Waiting(); n != 1 {
		t.Errorf("%d events are in the queue, want the one that was retried", n)
	}
}

// TestCountingDeletesNothing counts what Prune would delete.
func TestCountingDeletesNothing(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	ctx := testenv.Context(t)
	r.Exec(logSQL, 1, 2500, 100)
	pruner := newPruner(t, r.Store, maintenance.PrunerConfig{})
	for status, want := range map[maintenance.LogStatus]int{maintenance.LogCompleted: 2250, maintenance.LogFailed: 250} {
		for olderThan, want := range map[time.Duration]int{99 * time.Hour: want, 101 * time.Hour: 0} {
			if n, err := pruner.Count(ctx, status, olderThan); err != nil || n != want {
				t.Errorf("%d %s events are older than %s, %v, want %d", n, status, olderThan, err, want)
			}
		}
	}
	if n := r.Logged("FAILED") + r.Logged("COMPLETED"); n != 2500 {
		t.Errorf("%d entries are left of 2500", n)
	}
	if n, err := pruner.Prune(ctx, maintenance.LogFailed, 99*time.Hour); err != nil || n != 250 || r.Logged("FAILED") != 0 || r.Logged("COMPLETED") != 2250 {
		t.Errorf("pruned %d, %v", n, err)
	}
}

// TestInterruptedPruneCountsWhatItDid ends the context during the first statement.
func TestInterruptedPruneCountsWhatItDid(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	r.Exec(logSQL, 1, 2500, 100)
	ctx, cancel := context.WithCancel(testenv.Context(t))
	defer cancel()
	pruner := newPruner(t, &looks{HistoryStore: r.Store, during: cancel}, maintenance.PrunerConfig{})
	n, err := pruner.Prune(ctx, maintenance.LogCompleted, time.Hour)
	if n != 900 || !errors.Is(err, context.Canceled) || r.Logged("COMPLETED") != 1350 {
		t.Errorf("an interrupted prune has deleted %d, %v; %d are left, want 900 and 1350", n, err, r.Logged("COMPLETED"))
	}
}

// TestPrunerDeletesCancelledEventsLikeFailedOnes, and no younger ones.
func TestPrunerDeletesCancelledEventsLikeFailedOnes(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	r.Exec(logSQL, 1, 100, 100)
	r.Exec(`UPDATE event_log SET status = 'CANCELLED', created_at = CASE WHEN id < 50 THEN clock_timestamp() ELSE created_at END WHERE status = 'COMPLETED'`)
	young := rig.One[int](r, `SELECT count(*) FROM event_log WHERE status = 'CANCELLED' AND created_at > clock_timestamp() - interval '1 hour'`)
	done, err := newPruner(t, r.Store, maintenance.PrunerConfig{FailedFor: time.Hour}).Pass(testenv.Context(t))
	if want := (maintenance.Pruned{Failed: 10, Cancelled: 90 - young}); err != nil || done != want || r.Logged("CANCELLED") != young {
		t.Errorf("%+v, %v; want %+v", done, err, want)
	}
}

// TestPrunerWorksOncePerInterval runs pruners for two days.
func TestPrunerWorksOncePerInterval(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		config      maintenance.PrunerConfig
		err         error
		least, most int
	}{
		"not configured":  {most: 0},
		"one status":      {config: maintenance.PrunerConfig{CompletedFor: time.Hour}, least: 43, most: 54},
		"two statuses":    {config: maintenance.PrunerConfig{FailedFor: time.Hour}, least: 2 * 43, most: 2 * 54},
		"all, seldom":     {config: maintenance.PrunerConfig{FailedFor: 1, CompletedFor: 1, Interval: 12 * time.Hour}, least: 12, most: 15},
		"the database is": {config: maintenance.PrunerConfig{FailedFor: time.Hour}, err: errors.New("away"), least: 3000, most: 100_000},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store := &looks{err: test.err}
				pruner := newPruner(t, store, test.config)
				ctx, cancel := context.WithTimeout(t.Context(), 48*time.Hour)
				defer cancel()
				if err := pruner.Run(ctx); err != nil {
					t.Error(err)
				}
				if n := len(store.taken()); n < test.least || n > test.most {
					t.Errorf("%d statements in two days, want %d to %d", n, test.least, test.most)
				}
			})
		})
	}
}

func TestPrunerRefusesBadInput(t *testing.T) {
	t.Parallel()
	if _, err := maintenance.NewPruner(nil, maintenance.PrunerConfig{}); err == nil {
		t.Error("a pruner without a store was made")
	}
	for _, config := range []maintenance.PrunerConfig{{CompletedFor: -1}, {FailedFor: -1}, {Interval: -1}, {PerSecond: -1}} {
		if _, err := maintenance.NewPruner(&looks{}, config); err == nil {
			t.Errorf("%+v was accepted", config)
		}
	}
}
