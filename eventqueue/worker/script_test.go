package worker_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/worker"
	"eventsv2/test/rig"
)

// script plays the database and the notifier for one worker: it answers as the test
// says and records what the worker did. It lives in a synctest bubble.
type script struct {
	// Methods that no worker calls panic.
	eventqueue.EmitStore
	worker.Store

	t        *testing.T
	handlers *eventqueue.Handlers
	pulls    chan []eventqueue.Delivery
	worker   *worker.Worker // the last one that was started

	mu         sync.Mutex
	found      map[eventqueue.EventID]worker.ClaimResult
	claiming   func(ctx context.Context) error // before a claim answers
	acking     func(ctx context.Context) error // instead of an acknowledgement
	refuse     func(completions []worker.Completion) error
	givingBack func() error
	// refuseClaim is asked about every claim.
	refuseClaim func(ids []eventqueue.EventID) error
	renewing    func(claims []worker.Claim) (lost []eventqueue.EventID, err error)
	ending      func(written *worker.WriteResult) // changes the next result of Renew
	values      func(ctx context.Context, claim worker.Claim) (json.RawMessage, bool, error)
	completing  func(ctx context.Context, completions []worker.Completion) error // before Complete
	lostEnds    bool                                                             // Complete finds that no claim holds
	busy        map[eventqueue.EventID]int                                       // so often Finish finds the row being written
	empty       int                                                              // so many pulls return nothing at once

	claims, renewals int
	completions      []worker.Completion
	acked            []string
	requeued         []requeued
	runs             map[eventqueue.EventID]int
	gaveBack         []eventqueue.EventID
	asked            []eventqueue.ClaimID // by claims
	together         []int                // of each BeginRuns
}

// requeued is one delivery that was given back, or whose lease was extended.
type requeued struct {
	ack   string
	after time.Duration
}

func newScript(t *testing.T) *script {
	t.Helper()
	return &script{t: t, handlers: eventqueue.NewHandlers(), pulls: make(chan []eventqueue.Delivery, 10),
		found: map[eventqueue.EventID]worker.ClaimResult{}, runs: map[eventqueue.EventID]int{}}
}

// inVirtualTime runs a test in a bubble.
func inVirtualTime(t *testing.T, f func(s *script)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(newScript(t)) })
}

// handle registers the handler of rig.Key; its runs are counted.
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
	if err := s.handlers.Register(rig.Key, counting, policy); err != nil {
		s.t.Fatal(err)
	}
}

// start runs a worker until the returned function is called, which waits for it.
func (s *script) start(config worker.Config) (stop func()) {
	s.t.Helper()
	return s.startOn(s, config)
}

// scripted is a script, or something around one.
type scripted interface {
	worker.Store
	eventqueue.Receiver
}

// startOn is start on something around the script, which may also be what the queue publishes to.
func (s *script) startOn(on scripted, config worker.Config) (stop func()) {
	s.t.Helper()
	publisher, ok := on.(eventqueue.Publisher)
	if !ok {
		publisher = silent{}
	}
	queue, err := eventqueue.New(s, publisher, eventqueue.QueueConfig{})
	if err != nil {
		s.t.Fatal(err)
	}
	w, err := worker.New(queue, on, on, s.handlers, config)
	if err != nil {
		s.t.Fatal(err)
	}
	s.worker = w
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := w.Run(ctx); err != nil {
			s.t.Errorf("worker: %v", err)
		}
	})
	return func() { cancel(); running.Wait() }
}

// silent is a notifier that nobody hears.
type silent struct{}

func (silent) Publish(context.Context, []eventqueue.Notification) error { return nil }

// claimed is an event that a claim has just got.
func (*script) claimed(id eventqueue.EventID) *worker.ClaimResult {
	return &worker.ClaimResult{Attempt: 1, Facts: machine.Facts{Present: true, HandlerKnown: true, Claimed: true},
		Event: eventqueue.Event{ID: id, Canvas: rig.Canvas, Module: rig.Key.Module, Name: rig.Key.Name, Modifier: rig.Key.Modifier, Value: []byte(`1`)}}
}

// notify has the worker pull notifications of events, all at once.
func (s *script) notify(found ...*worker.ClaimResult) {
	deliveries := make([]eventqueue.Delivery, len(found))
	s.mu.Lock()
	for i, f := range found {
		s.found[f.Event.ID] = *f
		deliveries[i] = eventqueue.Delivery{Notification: eventqueue.Notification{Event: f.Event.ID, Canvas: rig.Canvas},
			AckID: f.Event.ID.String() + "/" + strconv.Itoa(i)}
	}
	s.mu.Unlock()
	s.pulls <- deliveries
	synctest.Wait()
}

// state is a copy of what the worker did.
type state struct {
	claims, renewals int
	completions      []worker.Completion
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
	return state{s.claims, s.renewals, append([]worker.Completion(nil), s.completions...), append([]string(nil), s.acked...),
		append([]requeued(nil), s.requeued...), runs}
}

// Pull returns the notifications of the test.
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

// Ack records what was acknowledged.
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

// Requeue records what was given back.
func (s *script) Requeue(_ context.Context, deliveries []eventqueue.Delivery, after time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range deliveries {
		s.requeued = append(s.requeued, requeued{d.AckID, after})
	}
	return nil
}

// Claim answers what the test has prepared; of what it has not, nothing.
func (s *script) Claim(ctx context.Context, ids []eventqueue.EventID, _ eventqueue.HandlerSet, claim eventqueue.ClaimID) ([]worker.ClaimResult, error) {
	s.mu.Lock()
	s.claims++
	s.asked = append(s.asked, claim)
	claiming := s.claiming
	s.mu.Unlock()
	if claiming != nil {
		if err := claiming(ctx); err != nil {
			return nil, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refuseClaim != nil {
		if err := s.refuseClaim(ids); err != nil {
			return nil, err
		}
	}
	var found []worker.ClaimResult
	for _, id := range ids {
		if f, ok := s.found[id]; ok && f.Facts.Present {
			f.ClaimID = claim
			found = append(found, f)
		}
	}
	return found, nil
}

// Value answers as the test says.
func (s *script) Value(ctx context.Context, claim worker.Claim) (json.RawMessage, bool, error) {
	return s.values(ctx, claim)
}

// Complete records the completions, unless the test refuses them.
func (s *script) Complete(ctx context.Context, _ eventqueue.DB, completions []worker.Completion, _ bool) (written worker.WriteResult, err error) {
	if s.completing != nil {
		if err := s.completing(ctx, completions); err != nil {
			return written, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if ctx.Err() != nil {
		return written, ctx.Err()
	}
	if s.refuse != nil {
		if err := s.refuse(completions); err != nil {
			return written, err
		}
	}
	for _, end := range completions {
		switch {
		case s.lostEnds:
			written.Lost = append(written.Lost, end.Event)
		case s.busy[end.Event] > 0:
			s.busy[end.Event]--
		default:
			s.completions = append(s.completions, end)
			written.Done = append(written.Done, end.Event)
		}
	}
	return written, nil
}

// Advance implements worker.Store: no event waits in an ordering group.
func (s *script) Advance(context.Context, []eventqueue.EventID, []eventqueue.EventID) ([]eventqueue.Event, error) {
	return nil, nil
}

// BeginRuns is Renew, and records how many run together.
func (s *script) BeginRuns(ctx context.Context, claims []worker.Claim, together int) (worker.WriteResult, error) {
	s.mu.Lock()
	s.together = append(s.together, together)
	s.mu.Unlock()
	return s.Renew(ctx, claims)
}

// Renew counts, and finds lost what the test says.
func (s *script) Renew(_ context.Context, claims []worker.Claim) (written worker.WriteResult, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.renewals++
	if s.renewing != nil {
		if written.Lost, err = s.renewing(claims); err != nil {
			return worker.WriteResult{}, err
		}
	}
	if s.ending != nil {
		s.ending(&written)
		s.ending = nil
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

// MarkPending is called for nothing: the notifier of these tests does not fail.
func (s *script) MarkPending(context.Context, []eventqueue.EventID) error { return nil }

// TakePending finds nothing.
func (s *script) TakePending(context.Context, []eventqueue.EventID) ([]eventqueue.Notification, error) {
	return nil, nil
}

// Insert and InsertSQL write nothing.
func (s *script) Insert(context.Context, eventqueue.DB, []eventqueue.NewEvent, eventqueue.NotifyMode) ([]eventqueue.Inserted, error) {
	return nil, nil
}

// InsertEnding is as Insert.
func (s *script) InsertEnding(context.Context, eventqueue.DB, eventqueue.EventID, []eventqueue.NewEvent, eventqueue.NotifyMode) ([]eventqueue.Inserted, error) {
	return nil, nil
}

// PassKey passes nothing.
func (s *script) PassKey(context.Context, eventqueue.DB, eventqueue.EventID, []eventqueue.EventID) error {
	return nil
}

// InsertSQL is as Insert.
func (s *script) InsertSQL(context.Context, *sql.Tx, []eventqueue.NewEvent, eventqueue.NotifyMode) ([]eventqueue.Inserted, error) {
	return nil, nil
}

// GiveBack records what was given back with a number that a claim had.
func (s *script) GiveBack(ctx context.Context, claim eventqueue.ClaimID, ids []eventqueue.EventID) ([]eventqueue.EventID, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if s.givingBack != nil {
		if err := s.givingBack(); err != nil {
			return nil, err
		}
	}
	if !slices.Contains(s.asked, claim) {
		s.t.Errorf("events %v are given back with a number that no claim has had", ids)
	}
	s.gaveBack = append(s.gaveBack, ids...)
	return ids, nil
}

// RunnablePriority finds nothing.
func (s *script) RunnablePriority(context.Context, string, eventqueue.Scope, int) ([]eventqueue.Event, eventqueue.Scope, error) {
	return nil, eventqueue.Scope{}, nil
}

// Runnable finds nothing.
func (s *script) Runnable(context.Context, eventqueue.Scope, []eventqueue.CanvasID) ([]eventqueue.Event, eventqueue.Scope, error) {
	return nil, eventqueue.Scope{}, nil
}
