package pgstore_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/eventqueue/worker"
	"eventsv2/test/testenv"
)

// withConns is a rig on a pool with so many connections. With one there is one plan
// of each statement, and one account of what it has read and written.
func (r *rig) withConns(n int32) *rig {
	r.t.Helper()
	config := r.pool.Config()
	config.MaxConns = n
	return r.on(pgxpool.NewWithConfig(testenv.Context(r.t), config))
}

// on is a rig on another pool of the database.
func (r *rig) on(pool *pgxpool.Pool, err error) *rig {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(pool.Close)
	return &rig{r.t, pool, pgstore.New(pool)}
}

// flush has Postgres count what the only connection has done.
func (r *rig) flush() {
	r.t.Helper()
	if _, err := r.pool.Exec(testenv.Context(r.t), `SELECT pg_stat_force_next_flush()`); err != nil {
		testenv.Missing(r.t, "what a statement costs: this Postgres cannot flush its statistics: %v", err)
	}
}

// shortKey makes the shortest rows.
var shortKey = eventqueue.HandlerKey{Module: "M", Name: "n", Modifier: "_"}

// claimAll claims events as a worker does: with a number, which makes their rows longer.
func (r *rig) claimAll(ids []eventqueue.EventID) []worker.Completion {
	r.t.Helper()
	const of = eventqueue.ClaimID(0x1234567_00000001) // of a worker's number and a count
	known := eventqueue.HandlerSet{Everywhere: []eventqueue.HandlerKey{key, shortKey}}
	found, err := r.store.Claim(testenv.Context(r.t), ids, known, of)
	if err != nil || len(found) != len(ids) {
		r.t.Fatalf("found %d of %d events, %v", len(found), len(ids), err)
	}
	completions := make([]worker.Completion, len(found))
	for i, f := range found {
		if !f.Facts.Claimed {
			r.t.Fatalf("event %s could not be claimed: %+v", f.Event.ID, f.Facts)
		}
		claim := worker.Claim{Event: f.Event.ID, Attempt: f.Attempt, ID: f.ClaimID}
		completions[i] = worker.Completion{Claim: claim, RowID: f.RowID, Label: machine.ExecutesToCompletion}
	}
	return completions
}

// TestClaimsOfFullPagesWriteNoIndex (I12): the page of each row has room for its
// next version, also when all of its rows are claimed at once, however long they are.
func TestClaimsOfFullPagesWriteNoIndex(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r = r.withConns(1)
	r.exec(`ALTER TABLE events_v2 SET (autovacuum_enabled = off)`) // it would make room on some pages
	for _, of := range []eventqueue.HandlerKey{shortKey, key} {
		for _, length := range []int{1, 9, 17, 25, 50, 100, 300, 1000, 1800} {
			e := event()
			e.Module, e.Name, e.Modifier, e.Value = of.Module, of.Name, of.Modifier, []byte(strings.Repeat("1", length))
			r.claimAll(r.insert(slices.Repeat([]eventqueue.NewEvent{e}, 400)...))
			r.flush()
			updated := one[int](r, `SELECT n_tup_upd FROM pg_stat_user_tables WHERE relname = 'events_v2'`)
			hot := one[int](r, `SELECT n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = 'events_v2'`)
			r.exec(`SELECT pg_stat_reset_single_table_counters('events_v2'::regclass)`)
			if updated != 400 || hot != updated {
				t.Errorf("%s with a value of %d bytes: %d of %d updates were HOT, of 400 claims", of, length, hot, updated)
			}
		}
	}
}

// wal is how many bytes of WAL the statements in the database have written, and how many
// images of whole pages are among them.
func (r *rig) wal() (bytes, images int) {
	r.t.Helper()
	const sql = ` FROM pg_stat_statements WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database())`
	return one[int](r, `SELECT coalesce(sum(wal_bytes), 0)::bigint`+sql), one[int](r, `SELECT coalesce(sum(wal_fpi), 0)::bigint`+sql)
}

// TestWALPerEventIsBounded (I12): what its insert, its claim and its completion write when nothing
// goes wrong. What does not depend on the events (about each page) is shared by 1000.
func TestWALPerEventIsBounded(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	if _, err := r.pool.Exec(testenv.Context(t), `CREATE EXTENSION IF NOT EXISTS pg_stat_statements; SELECT count(*) FROM pg_stat_statements`); err != nil {
		testenv.Missing(t, "what an event writes to WAL: the server has no pg_stat_statements: %v", err)
	}
	r = r.withConns(1)
	r.exec(`ALTER TABLE events_v2 SET (autovacuum_enabled = off); ALTER TABLE event_log SET (autovacuum_enabled = off)`)
	const events = 1000
	for _, c := range []struct {
		name   string
		parent eventqueue.EventID
		retain bool
		most   int // for each event
	}{{"deleted", 0, false, 535}, {"kept in the history", 0, true, 784}, {"a child, and deleted", 1, false, 612}, {"a child, and kept in the history", 1, true, 937}} {
		one := event()
		one.ParentID = c.parent
		// A checkpoint makes each page that is written for the first time after it cost an
		// image of it. Then it is done again.
		testenv.Eventually(t, "1000 events are worked off without a checkpoint", func() bool {
			start, imagesBefore := r.wal()
			ids := r.insert(slices.Repeat([]eventqueue.NewEvent{one}, events)...)
			inserted, _ := r.wal()
			completions := r.claimAll(ids)
			claimed, _ := r.wal()
			if written, err := r.store.Complete(testenv.Context(t), nil, completions, c.retain); err != nil || len(written.Done) != events {
				t.Fatalf("%+v, %v", written, err)
			}
			completed, images := r.wal()
			if images > imagesBefore {
				return false
			}
			per := func(from, to int) float64 { return float64(to-from) / events }
			t.Logf("%s: %.1f bytes of WAL for an insert, %.1f for a claim, %.1f for a completion", c.name, per(start, inserted), per(inserted, claimed), per(claimed, completed))
			if all := per(start, completed); all > float64(c.most) {
				t.Errorf("an event that is %s wrote %.1f bytes of WAL, want %d at most", c.name, all, c.most)
			}
			return true
		})
	}
}

// TestClaimCostIsIndependentOfTheBacklog (I12) works often enough for plans to be kept,
// beside an empty table, and then fills it: claims and ends still read what they
// return, and not the table. So it is on connections of Open, which are set so, and on
// those of any other pool.
func TestClaimCostIsIndependentOfTheBacklog(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(ctx context.Context, url string) (*pgxpool.Pool, error){
		"pool of Open": func(ctx context.Context, url string) (*pgxpool.Pool, error) {
			return pgstore.Open(ctx, url, "protocol", 1)
		},
		"other pool": func(ctx context.Context, url string) (*pgxpool.Pool, error) {
			config, err := pgxpool.ParseConfig(url)
			if err != nil {
				return nil, err
			}
			config.MaxConns = 1
			return pgxpool.NewWithConfig(ctx, config)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.on(open(testenv.Context(t), r.pool.Config().ConnString())).testBacklog()
		})
	}
}

// TestSmallClaimIsPlannedOnce for each connection: to plan it takes longer than to
// claim them. So it is with any setting of the pool's, which stays for the others.
func TestSmallClaimIsPlannedOnce(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"auto", "force_custom_plan"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			r := newRigWith(t, map[string]string{"plan_cache_mode": mode}).withConns(1)
			const claims = 8 // Postgres makes up its mind after five
			for range claims {
				r.claim(r.insert(event())[0])
			}
			// The statement that asks is prepared as well, and would be the first of them or
			// not, by a hash of their texts.
			const plans = ` FROM pg_prepared_statements WHERE statement LIKE '%barrier%' AND statement NOT LIKE '%pg_prepared_statements%'`
			if kept, anew := one[int](r, `SELECT coalesce(sum(generic_plans), 0)`+plans), one[int](r, `SELECT coalesce(sum(custom_plans), 0)`+plans); kept != claims || anew != 0 {
				t.Errorf("of %d claims %d were planned anew, and %d ran with the plan that is kept", claims, anew, kept)
			}
			if got := one[string](r, `SELECT current_setting('plan_cache_mode')`); got != mode {
				t.Errorf("after the claims plan_cache_mode is %s, and was %s", got, mode)
			}
		})
	}
}

// statements counts what is sent to Postgres.
type statements struct{ sent atomic.Int64 }

func (s *statements) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	s.sent.Add(1)
	return ctx
}
func (s *statements) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (s *statements) TraceBatchStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceBatchStartData) context.Context {
	s.sent.Add(int64(data.Batch.Len()))
	return ctx
}
func (s *statements) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}
func (s *statements) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData)     {}

// TestBatchIsOneStatement (I12): what a worker calls for a full batch, on connections
// of Open, is one statement each, however many events are in it.
func TestBatchIsOneStatement(t *testing.T) {
	t.Parallel()
	ctx := testenv.Context(t)
	opened, err := pgstore.Open(ctx, testenv.DatabaseURL(t), "protocol", 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(opened.Close)
	config, count := opened.Config(), &statements{}
	config.ConnConfig.Tracer = count
	r := (&rig{t: t}).on(pgxpool.NewWithConfig(ctx, config))
	events := make([]eventqueue.NewEvent, 500) // the default size of a batch
	for i := range events {
		events[i] = event()
	}
	ids := r.insert(events...)
	var claims []worker.Claim
	complete := func(label func(i int) machine.Label) func() error {
		return func() error {
			completions := make([]worker.Completion, len(claims))
			for i := range claims {
				completions[i] = worker.Completion{Claim: claims[i], Label: label(i), LastError: "no luck"}
			}
			written, err := r.store.Complete(ctx, nil, completions, false)
			if err == nil && len(written.Done) != len(completions) {
				err = fmt.Errorf("of %d ends %d were written", len(completions), len(written.Done))
			}
			return err
		}
	}
	claim := func() error {
		found, err := r.store.Claim(ctx, ids, handlers, 7)
		claims = claims[:0]
		for _, f := range found {
			claims = append(claims, worker.Claim{Event: f.Event.ID, Attempt: f.Attempt, ID: f.ClaimID})
		}
		if err == nil && len(claims) != len(ids) {
			err = fmt.Errorf("of %d events %d were claimed", len(ids), len(claims))
		}
		return err
	}
	for _, step := range []struct {
		what       string
		do         func() error
		statements int64
	}{
		{"a claim", claim, 1},
		{"a heartbeat", func() error { _, err := r.store.Renew(ctx, claims); return err }, 1},
		{"the ends of runs that failed", complete(func(int) machine.Label { return machine.RetryAllowed }), 1},
		{"a look for what others have", func() error {
			_, _, err := r.store.Runnable(ctx, eventqueue.Scope{}, nil)
			return err
		}, 1},
		{"another claim", claim, 1},
		{"the ends of runs of which half failed", complete(func(i int) machine.Label {
			return []machine.Label{machine.RetryAllowed, machine.ExecutesToCompletion}[i%2]
		}), 2},
		{"a look at events of which half are gone", func() error { _, err := r.store.Claim(ctx, ids, handlers, 8); return err }, 1},
	} {
		before := count.sent.Load()
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.what, err)
		}
		if n := count.sent.Load() - before; n != step.statements {
			t.Errorf("%s: %d statements, want %d", step.what, n, step.statements)
		}
	}
}

func (r *rig) testBacklog() {
	t := r.t
	r.exec(`ALTER TABLE events_v2 SET (autovacuum_enabled = off)`) // it would have everything planned anew, some time
	r.exec(`VACUUM ANALYZE events_v2`)
	work := func() (reads int) {
		t.Helper()
		count := func() int {
			r.flush()
			return one[int](r, `SELECT seq_tup_read + coalesce(idx_tup_fetch, 0) FROM pg_stat_user_tables WHERE relname = 'events_v2'`)
		}
		before := count()
		for range 10 {
			for _, f := range forms {
				r.claimRenewAndComplete(f, r.insert(event(), event(), event()))
			}
		}
		return count() - before
	}
	few := work()
	const backlog = 20_000
	r.exec(`INSERT INTO events_v2 (canvas_id, module, name, modifier, value, notified_at)
		SELECT $1, 'WORKER', 'another', '_', '1', now() FROM generate_series(1, $2)`, [16]byte(canvas), backlog)
	many := work()
	t.Logf("the same work read %d rows, and then %d", few, many)
	if many >= few+backlog {
		t.Errorf("beside a backlog of %d events, claims and ends read %d rows instead of %d", backlog, many, few)
	}
}

// claimRenewAndComplete does so with three new events, of which each ends by another
// statement.
func (r *rig) claimRenewAndComplete(f form, ids []eventqueue.EventID) {
	r.t.Helper()
	ctx := testenv.Context(r.t)
	found, err := f.claim(ctx, r, ids...)
	if err != nil || len(found) != len(ids) {
		r.t.Fatalf("found %d of %d events, %v", len(found), len(ids), err)
	}
	claims := make([]worker.Claim, len(ids))
	for i, id := range ids {
		claims[i] = worker.Claim{Event: id, Attempt: 1}
	}
	if written, err := r.store.Renew(ctx, claims); err != nil || len(written.Done) != len(ids) {
		r.t.Fatalf("renewed: %+v, %v", written, err)
	}
	for i, label := range []machine.Label{machine.ExecutesToCompletion, machine.FailedForGood, machine.RetryAllowed} {
		written, err := f.complete(ctx, r, false, worker.Completion{Claim: claims[i], Label: label, LastError: "no luck"})
		if err != nil || len(written.Done) != 1 {
			r.t.Fatalf("%s: %+v, %v", label, written, err)
		}
	}
}
