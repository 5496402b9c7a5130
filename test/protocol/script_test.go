package protocol

import (
	"context"
	"database/sql"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
)

// script plays the database and the bell for one worker: it answers as the test
// says and keeps what the worker did. It lives in a synctest bubble.
type script struct {
	// Methods that no worker calls panic.
	eventqueue.EmitStore
	eventqueue.ClaimStore

	t        *testing.T
	handlers *eventqueue.Handlers
	pulls    chan []eventqueue.Delivery

	mu       sync.Mutex
	found    map[eventqueue.EventID]eventqueue.Found
	claiming func(ctx context.Context) error // before a claim answers
	acking   func(ctx context.Context) error // instead of an acknowledgement
	refuse   func(ends []eventqueue.End) error
	renewing func(claims []eventqueue.Claim) (lost []eventqueue.EventID, err error)
	lostEnds bool                       // Finish finds that no claim holds
	busy     map[eventqueue.EventID]int // so often Finish finds the row being written
	empty    int                        // so many pulls return nothing at once

	claims, renewals int
	ends             []eventqueue.End
	acked            []string
	requeued         []requeued
	runs             map[eventqueue.EventID]int
}

// requeued is one delivery that was given back, or whose lease was extended.
type requeued struct {
	ack   string
	after time.Duration
}

func newScript(t *testing.T) *script {
	t.Helper()
	return &script{t: t, handlers: eventqueue.NewHandlers(), pulls: make(chan []eventqueue.Delivery, 10),
		found: map[eventqueue.EventID]eventqueue.Found{}, runs: map[eventqueue.EventID]int{}}
}

// inVirtualTime runs a test in a bubble.
func inVirtualTime(t *testing.T, f func(s *script)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(newScript(t)) })
}

// pass lets virtual time pass, and everything happen that follows.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// handle registers the handler of key; its runs are counted.
func (s *script) handle(policy eventqueue.Policy, f eventqueue.HandlerFunc) {
	s.t.Helper()
	if policy.Backoff == nil {
		policy.Backoff = func(int) time.Duration { return time.Second }
	}
	counting := eventqueue.HandlerFunc(func(ctx context.Context, run *eventqueue.Run) error {
		s.mu.Lock()
		s.runs[run.ID]++
		s.mu.Unlock()
		return f(ctx, run)
	})
	if err := s.handlers.Register(key, counting, policy); err != nil {
		s.t.Fatal(err)
	}
}

// start runs a worker until the returned function is called, which waits for it.
func (s *script) start(config eventqueue.WorkerConfig) (stop func()) {
	s.t.Helper()
	queue, err := eventqueue.New(s, silent{}, eventqueue.QueueConfig{})
	if err != nil {
		s.t.Fatal(err)
	}
	worker, err := eventqueue.NewWorker(queue, s, s, s.handlers, config)
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := worker.Run(ctx); err != nil {
			s.t.Errorf("worker: %v", err)
		}
	})
	return func() { cancel(); running.Wait() }
}

// silent is a bell that nobody hears.
type silent struct{}

func (silent) Publish(context.Context, []eventqueue.Notification) error { return nil }

// claimed is an event that a claim has just got.
func (*script) claimed(id eventqueue.EventID) *eventqueue.Found {
	return &eventqueue.Found{Attempt: 1, Facts: machine.Facts{Present: true, Known: true, Claimed: true},
		Event: eventqueue.Event{ID: id, Canvas: canvas, Module: key.Module, Name: key.Name, Modifier: key.Modifier, Value: []byte(`1`)}}
}

// ring has the worker pull notifications of events, all at once.
func (s *script) ring(found ...*eventqueue.Found) {
	deliveries := make([]eventqueue.Delivery, len(found))
	s.mu.Lock()
	for i, f := range found {
		s.found[f.Event.ID] = *f
		deliveries[i] = eventqueue.Delivery{Notification: eventqueue.Notification{Event: f.Event.ID, Canvas: canvas},
			AckID: f.Event.ID.String() + "/" + strconv.Itoa(i)}
	}
	s.mu.Unlock()
	s.pulls <- deliveries
	synctest.Wait()
}

// state is a copy of what the worker did.
type state struct {
	claims, renewals int
	ends             []eventqueue.End
	acked            []string
	requeued         []requeued
	runs             map[eventqueue.EventID]int
}

func (s *script) state() state {
	s.mu.Lock()
	defer s.mu.Unlock()
	runs := map[eventqueue.EventID]int{}
	for id, n := range s.runs {
		runs[id] = n
	}
	return state{s.claims, s.renewals, append([]eventqueue.End(nil), s.ends...), append([]string(nil), s.acked...),
		append([]requeued(nil), s.requeued...), runs}
}

// Pull returns what the test rings.
func (s *script) Pull(ctx context.Context, _ int) ([]eventqueue.Delivery, error) {
	s.mu.Lock()
	empty := s.empty > 0
	if empty {
		s.empty--
	}
	s.mu.Unlock()
	if empty {
		return nil, nil
	}
	select {
	case deliveries := <-s.pulls:
		return deliveries, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Ack keeps what was acknowledged.
func (s *script) Ack(ctx context.Context, deliveries []eventqueue.Delivery) error {
	if s.acking != nil {
		return s.acking(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range deliveries {
		s.acked = append(s.acked, d.AckID)
	}
	return nil
}

// Requeue keeps what was given back.
func (s *script) Requeue(_ context.Context, deliveries []eventqueue.Delivery, after time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range deliveries {
		s.requeued = append(s.requeued, requeued{d.AckID, after})
	}
	return nil
}

// Claim answers what the test has prepared; of what it has not, nothing.
func (s *script) Claim(ctx context.Context, ids []eventqueue.EventID, _ eventqueue.Known, _ time.Duration) ([]eventqueue.Found, error) {
	s.mu.Lock()
	s.claims++
	claiming := s.claiming
	s.mu.Unlock()
	if claiming != nil {
		if err := claiming(ctx); err != nil {
			return nil, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []eventqueue.Found
	for _, id := range ids {
		if f, ok := s.found[id]; ok && f.Facts.Present {
			found = append(found, f)
		}
	}
	return found, nil
}

// Finish keeps the ends, unless the test refuses them.
func (s *script) Finish(ctx context.Context, _ eventqueue.DB, ends []eventqueue.End, _ bool) (written eventqueue.Written, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ctx.Err() != nil {
		return written, ctx.Err()
	}
	if s.refuse != nil {
		if err := s.refuse(ends); err != nil {
			return written, err
		}
	}
	for _, end := range ends {
		switch {
		case s.lostEnds:
			written.Lost = append(written.Lost, end.Event)
		case s.busy[end.Event] > 0:
			s.busy[end.Event]--
		default:
			s.ends = append(s.ends, end)
			written.Done = append(written.Done, end.Event)
		}
	}
	return written, nil
}

// Renew counts, and finds lost what the test says.
func (s *script) Renew(_ context.Context, claims []eventqueue.Claim) (written eventqueue.Written, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.renewals++
	if s.renewing != nil {
		if written.Lost, err = s.renewing(claims); err != nil {
			return eventqueue.Written{}, err
		}
	}
	for _, c := range claims {
		if !slices.Contains(written.Lost, c.Event) {
			written.Done = append(written.Done, c.Event)
		}
	}
	return written, nil
}

// InTx has no transaction to offer: the statements are the script's own.
func (s *script) InTx(ctx context.Context, f func(ctx context.Context, db eventqueue.DB) error) error {
	return f(ctx, nil)
}

// Owe is called for nothing: the bell of these tests does not fail.
func (s *script) Owe(context.Context, []eventqueue.EventID) error { return nil }

// TakeOwed finds nothing.
func (s *script) TakeOwed(context.Context, []eventqueue.EventID) ([]eventqueue.Notification, error) {
	return nil, nil
}

// Insert and InsertSQL write nothing.
func (s *script) Insert(context.Context, eventqueue.DB, []eventqueue.NewEvent, eventqueue.Announce) ([]eventqueue.Inserted, error) {
	return nil, nil
}

// InsertSQL is as Insert.
func (s *script) InsertSQL(context.Context, *sql.Tx, []eventqueue.NewEvent, eventqueue.Announce) ([]eventqueue.Inserted, error) {
	return nil, nil
}
