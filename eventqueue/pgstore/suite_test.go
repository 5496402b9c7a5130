package pgstore_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/inspect"
	"eventsv2/eventqueue/locktimeout"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/eventqueue/worker"
	"eventsv2/test/testenv"
)

// The suite again, in a schema of its own that no search path leads to, and where public has tables of the same
// names: each statement has to name its schema.
func TestSuitePassesInASchema(t *testing.T) {
	t.Parallel()
	runSuite(t, func(t *testing.T) suiteStore {
		url := testenv.DatabaseURLIn(t, "jobs") // with a queue in public, to which nothing may lead
		pool, err := pgxpool.New(testenv.Context(t), url)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			defer pool.Close()
			var written bool
			if err := pool.QueryRow(context.Background(), `SELECT EXISTS (TABLE events_v2) OR EXISTS (TABLE event_log) OR EXISTS (TABLE scheduling_rules)
				OR EXISTS (TABLE rate_limits) OR EXISTS (TABLE concurrency_limits) OR EXISTS (TABLE event_groups)
				OR EXISTS (TABLE event_minutes) OR EXISTS (TABLE event_hours)`).Scan(&written); err != nil || written {
				t.Errorf("the queue in public was written to: %t, %v", written, err)
			}
		})
		return suiteStore{pgstore.NewIn("jobs", pool), inspect.NewIn("jobs", pool)}
	})
}

func TestSuitePasses(t *testing.T) {
	t.Parallel()
	runSuite(t, func(t *testing.T) suiteStore {
		pool := testenv.Pool(t)
		return suiteStore{pgstore.New(pool), inspect.New(pool)}
	})
}

// suiteStore is a store whose minutes are read by an inspect.Reader.
type suiteStore struct {
	*pgstore.Store
	reader *inspect.Reader
}

func (r suiteStore) Minutes(ctx context.Context, filter inspect.Filter, since time.Duration, resolution inspect.Resolution) ([]inspect.Minute, error) {
	return r.reader.Minutes(ctx, filter, since, resolution)
}

// expireLocks moves the locks so far back that they are as old as the default lock timeout, and no older: some are
// judged by whether they expired before or after the last notification.
func (s *session) expireLocks() {
	s.Helper()
	sql := s.store.Schema().SQL(`UPDATE events_v2 SET locked_at = locked_at - $1::interval`)
	if _, err := s.store.Pool().Exec(s.Context(), sql, locktimeout.Default); err != nil {
		s.Fatal(err)
	}
}

// runSuite runs the cases of what the store does, each on a database of its own.
func runSuite(t *testing.T, open func(t *testing.T) suiteStore) {
	t.Helper()
	for _, c := range slices.Concat(claimCases, ruleCases, endCases, attemptCases, waitCases, pendingCases, minuteCases, changeCases) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.run(&session{t, open(t)})
		})
	}
}

// A completion in a transaction of the caller's ends the event of its own queue, and not one of another.
func TestCompletionInATransactionIsInTheSchema(t *testing.T) {
	t.Parallel()
	ctx, url := testenv.Context(t), testenv.DatabaseURLIn(t, "jobs")
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	store, key := pgstore.NewIn("jobs", pool), eventqueue.HandlerKey{Module: "M", Name: "n", Modifier: "_"}
	event := eventqueue.NewEvent{Canvas: eventqueue.CanvasID{1}, Module: key.Module, Name: key.Name, Modifier: key.Modifier, Value: []byte("1")}
	inserted, err := store.Insert(ctx, nil, []eventqueue.NewEvent{event}, eventqueue.NotifyModeRelay)
	if err != nil {
		t.Fatal(err)
	}
	claimed, err := store.Claim(ctx, []eventqueue.EventID{inserted[0].ID}, eventqueue.HandlerSet{Everywhere: []eventqueue.HandlerKey{key}}, 1<<40)
	if err != nil || len(claimed) != 1 || !claimed[0].Facts.Claimed {
		t.Fatalf("claimed are %+v, %v", claimed, err)
	}
	completion := worker.Completion{Claim: worker.Claim{Event: inserted[0].ID, Attempt: claimed[0].Attempt, ID: claimed[0].ClaimID}, Label: machine.ExecutesToCompletion}
	err = store.InTx(ctx, func(ctx context.Context, db eventqueue.DB) error {
		written, err := store.Complete(ctx, db, []worker.Completion{completion}, false)
		if err == nil && len(written.Done) != 1 {
			t.Errorf("written is %+v", written)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
