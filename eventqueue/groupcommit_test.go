package eventqueue_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/memnotify"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/test/rig"
)

// slowStore takes a second for each insert, and refuses as a database does.
type slowStore struct {
	eventqueue.EmitStore

	mu      sync.Mutex
	inserts []int // events of each
	ids     map[string]eventqueue.EventID
	refuse  string
	hang    string // the value whose insert hangs
	down    error
}

func (s *slowStore) Insert(ctx context.Context, in eventqueue.DB, events []eventqueue.NewEvent, mode eventqueue.NotifyMode) ([]eventqueue.Inserted, error) {
	time.Sleep(time.Second)
	if s.hang != "" && slices.ContainsFunc(events, func(e eventqueue.NewEvent) bool { return string(e.Value) == s.hang }) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down != nil {
		return nil, s.down
	}
	if s.refuse != "" && slices.ContainsFunc(events, func(e eventqueue.NewEvent) bool { return strings.Contains(string(e.Value), s.refuse) }) {
		return nil, &pgconn.PgError{Code: "23514", Message: "refused"}
	}
	s.inserts = append(s.inserts, len(events))
	inserted, err := s.EmitStore.Insert(ctx, in, events, mode)
	for i, row := range inserted {
		s.ids[string(events[i].Value)] = row.ID
	}
	return inserted, err
}

// idOf is the id of the event with a value, if it is committed.
func (s *slowStore) idOf(value string) (id eventqueue.EventID, committed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id, committed = s.ids[value]
	return id, committed
}

// slowRig is a queue on a slowStore.
type slowRig struct {
	store    *slowStore
	notifier *memnotify.Notifier
	queue    *eventqueue.Queue
}

// withSlowQueue runs a test in virtual time (testing/synctest): the seconds of the
// slowStore, and every time.Sleep in these tests, pass at once.
func withSlowQueue(t *testing.T, test func(t *testing.T, r *slowRig)) {
	t.Helper()
	rig.InBubble(t, func(t *testing.T, pool *pgxpool.Pool) {
		r := &slowRig{
			store:    &slowStore{EmitStore: pgstore.New(pool), ids: map[string]eventqueue.EventID{}},
			notifier: memnotify.New(memnotify.Config{}),
		}
		var err error
		if r.queue, err = eventqueue.New(r.store, r.notifier, eventqueue.QueueConfig{}); err != nil {
			t.Fatal(err)
		}
		defer closeQueue(t, r.queue)
		test(t, r)
	})
}

// emitAll emits one event with each value from a goroutine of its own and returns
// their errors.
func (r *slowRig) emitAll(values ...string) []error {
	errs := make([]error, len(values))
	var all sync.WaitGroup
	for i, value := range values {
		all.Go(func() { _, errs[i] = r.queue.Emit(context.Background(), groupEvent(value)) })
	}
	all.Wait()
	return errs
}

func groupEvent(value string) eventqueue.NewEvent {
	return eventqueue.NewEvent{Canvas: eventqueue.CanvasID{1}, Module: "m", Name: "n", Modifier: "_", Value: []byte(value)}
}

func closeQueue(t *testing.T, q *eventqueue.Queue) {
	t.Helper()
	if err := q.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func sum(counts []int) (total int) {
	for _, n := range counts {
		total += n
	}
	return total
}

func manyValues(n int) []string {
	values := make([]string, n)
	for i := range values {
		values[i] = `"ok"`
	}
	return values
}

// TestConcurrentEmitsShareInserts: the first is alone, and what comes while it is
// under way goes into one insert.
func TestConcurrentEmitsShareInserts(t *testing.T) {
	t.Parallel()
	withSlowQueue(t, func(t *testing.T, r *slowRig) {
		for i, err := range r.emitAll(manyValues(200)...) {
			if err != nil {
				t.Errorf("emit %d: %v", i, err)
			}
		}
		if total := sum(r.store.inserts); len(r.store.inserts) > 2 || total != 200 {
			t.Errorf("200 emits at once made inserts of %v events", r.store.inserts)
		}
	})
}

// TestEmitReturnsAfterItsCommit (I1): whoever shares an insert returns when his
// own event is committed, with its id.
func TestEmitReturnsAfterItsCommit(t *testing.T) {
	t.Parallel()
	withSlowQueue(t, func(t *testing.T, r *slowRig) {
		var all sync.WaitGroup
		for i := range 50 {
			all.Go(func() {
				value := strconv.Itoa(i)
				id, err := r.queue.Emit(t.Context(), groupEvent(value))
				if want, committed := r.store.idOf(value); err != nil || !committed || id != want {
					t.Errorf("emit %d returned event %s, %v; committed: %v, as event %s", i, id, err, committed, want)
				}
			})
		}
		all.Wait()
	})
}

// TestGroupsAreBounded: no insert takes more than a thousand, and a large emit is
// its own.
func TestGroupsAreBounded(t *testing.T) {
	t.Parallel()
	withSlowQueue(t, func(t *testing.T, r *slowRig) {
		var large sync.WaitGroup
		large.Go(func() {
			events := make([]eventqueue.NewEvent, 101)
			for i := range events {
				events[i] = groupEvent("1")
			}
			if _, err := r.queue.EmitMany(t.Context(), events); err != nil {
				t.Error(err)
			}
		})
		for _, err := range r.emitAll(manyValues(2500)...) {
			if err != nil {
				t.Error(err)
			}
		}
		large.Wait()
		if slices.Max(r.store.inserts) > 1000 || !slices.Contains(r.store.inserts, 101) {
			t.Errorf("inserts of %v events", r.store.inserts)
		}
	})
}

// TestOneRefusedEmitFailsNoOther (I15): the database refuses one event of many.
func TestOneRefusedEmitFailsNoOther(t *testing.T) {
	t.Parallel()
	withSlowQueue(t, func(t *testing.T, r *slowRig) {
		r.store.refuse = "bad"
		values := manyValues(50)
		values[17] = `"bad"`
		for i, err := range r.emitAll(values...) {
			if refused := i == 17; refused != (err != nil) {
				t.Errorf("emit %d: %v", i, err)
			}
		}
		if written := sum(r.store.inserts); written != 49 {
			t.Errorf("%d events were written, want 49", written)
		}
	})
}

// TestAllEmitsOfAGroupLearnThatTheDatabaseIsDown: no emit succeeds without an insert.
func TestAllEmitsOfAGroupLearnThatTheDatabaseIsDown(t *testing.T) {
	t.Parallel()
	withSlowQueue(t, func(t *testing.T, r *slowRig) {
		r.store.down = errors.New("no connection")
		for i, err := range r.emitAll(manyValues(20)...) {
			if !errors.Is(err, r.store.down) {
				t.Errorf("emit %d: %v", i, err)
			}
		}
	})
}

// TestEmitCanceledBeforeItsInsertIsNotInserted: its context ends while
// another insert is under way.
func TestEmitCanceledBeforeItsInsertIsNotInserted(t *testing.T) {
	t.Parallel()
	withSlowQueue(t, func(t *testing.T, r *slowRig) {
		var first sync.WaitGroup
		first.Go(func() {
			if _, err := r.queue.Emit(t.Context(), groupEvent("1")); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if _, err := r.queue.Emit(ctx, groupEvent("2")); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("an emit whose time is over: %v", err)
		}
		first.Wait()
		time.Sleep(time.Minute)
		if !slices.Equal(r.store.inserts, []int{1}) {
			t.Errorf("inserts of %v events, want one of 1", r.store.inserts)
		}
	})
}

// TestOneEmitterWaitsForNobody: an emit after the other, each in its own insert,
// and none of them lingers.
func TestOneEmitterWaitsForNobody(t *testing.T) {
	t.Parallel()
	withSlowQueue(t, func(t *testing.T, r *slowRig) {
		began := time.Now()
		for range 10 {
			if _, err := r.queue.Emit(t.Context(), groupEvent("1")); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(began); took != 10*time.Second {
			t.Errorf("10 emits of a second each took %s", took)
		}
	})
}

// TestCanceledEmitKeepsNoReferenceToItsCaller (I8): the caller uses the memory
// of the value for something else as soon as Emit has returned.
func TestCanceledEmitKeepsNoReferenceToItsCaller(t *testing.T) {
	t.Parallel()
	withSlowQueue(t, func(t *testing.T, r *slowRig) {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		event := groupEvent(`"mine"`)
		if _, err := r.queue.Emit(ctx, event); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("an emit whose time is over: %v", err)
		}
		copy(event.Value, `"else"`)
		time.Sleep(time.Minute)
		if _, wrong := r.store.idOf(`"else"`); wrong {
			t.Error("what was inserted is not what was emitted")
		}
	})
}

// TestCanceledEmitThatWasInsertedIsNotified (I13): its insert had begun.
func TestCanceledEmitThatWasInsertedIsNotified(t *testing.T) {
	t.Parallel()
	withSlowQueue(t, func(t *testing.T, r *slowRig) {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if _, err := r.queue.Emit(ctx, groupEvent("1")); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("an emit whose time is over: %v", err)
		}
		time.Sleep(10 * time.Second)
		if _, committed := r.store.idOf("1"); !committed {
			t.Fatal("it was not inserted")
		}
		pull, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		if got, err := r.notifier.Pull(pull, 1); len(got) != 1 {
			t.Errorf("pulled %v, %v: the row says that its notification is out", got, err)
		}
	})
}

// TestLargeValuesShareNoInsert: what one insert may hold is bounded in bytes, too.
func TestLargeValuesShareNoInsert(t *testing.T) {
	t.Parallel()
	withSlowQueue(t, func(t *testing.T, r *slowRig) {
		value := `"` + strings.Repeat("x", 200<<10) + `"`
		for _, err := range r.emitAll(slices.Repeat([]string{value}, 100)...) {
			if err != nil {
				t.Error(err)
			}
		}
		if largest := slices.Max(r.store.inserts); largest > 20 {
			t.Errorf("%d values of 200 KiB went into one insert", largest)
		}
	})
}

// TestHangingInsertDelaysNoOtherEmit (I15): one connection hangs, and others do
// not.
func TestHangingInsertDelaysNoOtherEmit(t *testing.T) {
	t.Parallel()
	withSlowQueue(t, func(t *testing.T, r *slowRig) {
		r.store.hang = `"hangs"`
		var hanging sync.WaitGroup
		hanging.Go(func() {
			if _, err := r.queue.Emit(t.Context(), groupEvent(r.store.hang)); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the insert that hangs: %v", err)
			}
		})
		time.Sleep(500 * time.Millisecond)
		began := time.Now()
		if _, err := r.queue.Emit(t.Context(), groupEvent("1")); err != nil {
			t.Error(err)
		}
		if waited := time.Since(began); waited > 2*time.Second {
			t.Errorf("an emit beside it took %s", waited)
		}
		hanging.Wait()
	})
}

// panickingStore panics.
type panickingStore struct{ eventqueue.EmitStore }

func (panickingStore) Insert(context.Context, eventqueue.DB, []eventqueue.NewEvent, eventqueue.NotifyMode) ([]eventqueue.Inserted, error) {
	panic("a tracer's fault")
}

// TestPanicOfTheStoreIsAnError: it happens in a goroutine that no emitter could
// recover.
func TestPanicOfTheStoreIsAnError(t *testing.T) {
	t.Parallel()
	q, err := eventqueue.New(panickingStore{}, memnotify.New(memnotify.Config{}), eventqueue.QueueConfig{})
	if err != nil {
		t.Fatal(err)
	}
	defer closeQueue(t, q)
	if _, err := q.Emit(t.Context(), groupEvent("1")); err == nil || !strings.Contains(err.Error(), "a tracer's fault") {
		t.Errorf("emit returned %v", err)
	}
}
