package sim

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/fallback"
	"eventsv2/eventqueue/maintenance"
	"eventsv2/eventqueue/worker"
)

// sides are the database and the notifier as a worker has them: with a fallback, as every
// deployed program, or without one.
func (p *process) sides() (worker.Store, eventqueue.Receiver) {
	if !p.w.falls {
		return p.store(), ringer{p}
	}
	return &standbyPort{port: p.store()}, server{ringer{p}}
}

// standbyPort lends its worker a connection, and a receiver for when the notifier is away.
type standbyPort struct {
	*port
	waking, warning atomic.Bool // a wake-up, and a report of lost notifications, is at the gate
}

var (
	_ worker.Standby = (*standbyPort)(nil)
	_ worker.Reserve = (*standbyPort)(nil)
)

// Reserve implements worker.Standby.
func (s *standbyPort) Reserve(worker.Registration, *zap.Logger) worker.Reserve { return s }

// Hold implements worker.Reserve.
func (*standbyPort) Hold(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// Failure implements worker.Reserve.
func (*standbyPort) Failure() error { return nil }

// Close implements worker.Reserve.
func (*standbyPort) Close() {}

// Behind implements worker.Reserve.
func (s *standbyPort) Behind(primary eventqueue.RemoteReceiver, log *zap.Logger) (eventqueue.Receiver, error) {
	behind, err := fallback.New(primary, s, fallback.Config{Listen: s.listen, Jitter: s.p.jitter, Logger: log})
	return &oneByOne{Receiver: behind, p: s.p}, err
}

// TakeLost implements fallback.Store.
func (s *standbyPort) TakeLost(ctx context.Context, after eventqueue.EventID, limit int, lostAfter time.Duration) (lost []eventqueue.Notification, next eventqueue.EventID, err error) {
	err = s.do(ctx, "TakeLost", after.String(), func() (string, error) {
		defer s.p.w.takingBack(s.p)()
		lost, next, err = s.db.TakeLost(ctx, after, limit, lostAfter)
		byEvent(lost)
		s.p.w.found(len(lost))
		return eventsOf(lost), err
	})
	return onlyIf(lost, err), onlyIf(next, err), err
}

// TakeDue implements fallback.Store.
func (s *standbyPort) TakeDue(ctx context.Context, within time.Duration, limit int, await maintenance.AwaitTake) ([]eventqueue.Notification, error) {
	due, err := s.port.TakeDue(ctx, within, limit, await)
	s.p.w.found(len(due))
	return due, err
}

func (w *world) found(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.faults["event found without a notification"] += n
}

// listen is how the worker hears that somebody could not publish, or that notifications are lost.
func (s *standbyPort) listen(ctx context.Context, wake func(lost bool)) error {
	if err := s.do(ctx, "Listen", "", func() (string, error) { return "", nil }); err != nil {
		return err
	}
	return s.p.w.tables.listen(ctx, s.p.name, "events_v2_unpublished", func(payload string) {
		lost := payload == "lost"
		atGate, op := &s.waking, "told"
		if lost {
			atGate, op = &s.warning, "told of lost notifications"
		}
		if atGate.Swap(true) {
			return
		}
		s.p.errands.Go(func() {
			defer atGate.Store(false)
			_ = s.p.do(ctx, call{op: op}, func() (string, error) { // it fails only at the end of the process
				wake(lost)
				return "", nil
			})
		})
	})
}

// server is the notifier as a worker with a fallback sees it: it answers that it has
// nothing, fails what hangs, and says how it is.
type server struct{ ringer }

var _ eventqueue.RemoteReceiver = server{}

const (
	// pullWaits is how long a pull waits for something, and pullTakes when it fails.
	pullWaits = 3 * time.Second
	pullTakes = 5 * time.Second
)

// errNoTopic is what Check says when the subscription has no topic.
var errNoTopic = errors.New("the subscription's topic was deleted")

// Pull implements eventqueue.Receiver.
func (s server) Pull(ctx context.Context, most int) ([]eventqueue.Delivery, error) {
	ctx, cancel := context.WithTimeout(ctx, pullTakes)
	defer cancel()
	empty := time.Now().Add(pullWaits)
	return s.pull(ctx, most, func() time.Time { return earliest(empty, s.p.w.notifier.due()) })
}

// Check implements fallback.Primary.
func (s server) Check(ctx context.Context) error {
	return s.do(ctx, opCheck, "", nil, func() (string, error) {
		if s.p.w.broken.orphan {
			return "", errNoTopic
		}
		return "", nil
	})
}

// Attend implements fallback.Primary.
func (server) Attend(context.Context) error { return nil }

// oneByOne lets one Pull at a time into a receiver, and hands out what may be an
// abandoned event alone: see observe. So it does not matter which of two pulls Go runs
// first.
type oneByOne struct {
	eventqueue.Receiver
	p    *process
	busy atomic.Bool

	mu   sync.Mutex
	kept []eventqueue.Delivery
}

// Attend does what the receiver does beside its calls.
func (o *oneByOne) Attend(ctx context.Context) error {
	return o.Receiver.(interface{ Attend(context.Context) error }).Attend(ctx)
}

// Ack implements eventqueue.Receiver.
func (o *oneByOne) Ack(ctx context.Context, deliveries []eventqueue.Delivery) error {
	return o.send(ctx, "Ack", deliveries, o.Receiver.Ack)
}

// Requeue implements eventqueue.Receiver.
func (o *oneByOne) Requeue(ctx context.Context, deliveries []eventqueue.Delivery, after time.Duration) error {
	if after == leaseExtension {
		return o.Receiver.Requeue(ctx, inOrder(deliveries), after)
	}
	return o.send(ctx, requeueOp(after), deliveries, func(ctx context.Context, deliveries []eventqueue.Delivery) error {
		return o.Receiver.Requeue(ctx, deliveries, after)
	})
}

// Decline is that of the receiver.
func (o *oneByOne) Decline(ctx context.Context, deliveries []eventqueue.Delivery, after time.Duration) error {
	decline := o.Receiver.(interface {
		Decline(ctx context.Context, deliveries []eventqueue.Delivery, after time.Duration) error
	}).Decline
	return o.send(ctx, fmt.Sprint("Decline for ", after), deliveries, func(ctx context.Context, deliveries []eventqueue.Delivery) error {
		return decline(ctx, deliveries, after)
	})
}

// send takes the answers for events that were found in the database to the gate one by one, and does
// not wait for them. It leaves those for the notifier to ringer.answer.
func (o *oneByOne) send(ctx context.Context, op string, deliveries []eventqueue.Delivery, act func(context.Context, []eventqueue.Delivery) error) error {
	var others []eventqueue.Delivery
	for _, d := range deliveries {
		if !strings.HasPrefix(d.AckID, "db/") {
			others = append(others, d)
			continue
		}
		o.p.errands.Go(func() {
			ctx := context.WithoutCancel(ctx)
			at := call{op: op, key: fmt.Sprint(d.Event, " ", d.AckID)}
			if o.p.do(ctx, at, func() (string, error) { return "", nil }) == nil { // else the process is dead
				_ = act(ctx, []eventqueue.Delivery{d})
			}
		})
	}
	if len(others) == 0 {
		return nil
	}
	return act(ctx, others)
}

// Pull implements eventqueue.Receiver.
func (o *oneByOne) Pull(ctx context.Context, most int) ([]eventqueue.Delivery, error) {
	w := o.p.w
	free := func() time.Time {
		if o.busy.Load() {
			return w.never()
		}
		return time.Time{}
	}
	err := o.p.do(ctx, call{op: "wait for deliveries", key: fmt.Sprint(most), ready: free}, func() (string, error) {
		o.busy.Store(true)
		return "", nil
	})
	if err != nil {
		return nil, err
	}
	defer func() {
		o.busy.Store(false)
		w.poke()
	}()
	o.mu.Lock()
	kept := o.kept
	o.kept = nil
	o.mu.Unlock()
	if len(kept) == 0 {
		if kept, err = o.Receiver.Pull(ctx, most); err != nil {
			return nil, err
		}
	}
	alone := w.mayBeAbandoned()
	n := 0
	for n < len(kept) && n < most && (n == 0 || !alone(kept[n].Event)) {
		if n++; alone(kept[n-1].Event) {
			break
		}
	}
	o.mu.Lock()
	o.kept = kept[n:]
	o.mu.Unlock()
	return kept[:n], nil
}
