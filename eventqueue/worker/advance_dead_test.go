package worker_test

import (
	"context"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/maintenance"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/worker"
	"eventsv2/test/rig"
	"eventsv2/test/testenv"
)

// others is how many events of another handler wait behind a dead one.
const others = 5

// deadHolder is a canvas with a limit of one, whose place belongs to the event of a worker
// that has died. In each test the events of another handler have to run nevertheless.
type deadHolder struct {
	*rig.Rig
	event eventqueue.EventID
	other eventqueue.NewEvent
	scope eventqueue.Scope
	rules *operate.Rules
}

const deadLock = 3 * time.Second

// newDeadHolder registers the handler of the others, and unless unknown that of the
// dead event.
func newDeadHolder(t *testing.T, unknown bool) *deadHolder {
	t.Helper()
	r := rig.New(t)
	ctx := testenv.Context(t)
	d := &deadHolder{Rig: r, other: r.Event(`2`), scope: eventqueue.Scope{Canvas: rig.Canvas, Module: rig.Key.Module, Name: rig.Key.Name}}
	d.other.Name = "other"
	done := eventqueue.HandlerFunc(func(context.Context, *eventqueue.Run) error { return nil })
	if err := r.Handlers.Register(d.other.Handler(), done, rig.Quick()); err != nil {
		t.Fatal(err)
	}
	if !unknown {
		r.Handle(done, rig.Quick())
	}
	if _, err := r.Store.SetConcurrencyLimit(ctx, operate.ConcurrencyLimit{Canvas: rig.Canvas, Max: 1}); err != nil {
		t.Fatal(err)
	}
	var err error
	if d.rules, err = operate.NewRules(r.Store, r.Queue); err != nil {
		t.Fatal(err)
	}
	d.event = r.Emit(r.Event(`1`))[0]
	ids := []eventqueue.EventID{d.event}
	if turns, err := r.Store.Advance(ctx, nil, ids); err != nil || len(turns) != 1 {
		t.Fatalf("turns %v, %v", turns, err)
	}
	found, err := r.Store.Claim(ctx, ids, eventqueue.HandlerSet{Everywhere: []eventqueue.HandlerKey{rig.Key}}, 0)
	if err != nil || len(found) != 1 || !found[0].Facts.Claimed {
		t.Fatalf("claimed %+v, %v", found, err)
	}
	return d
}

// emitOthers emits the events of the other handler.
func (d *deadHolder) emitOthers() {
	d.T.Helper()
	for range others {
		d.Emit(d.other)
	}
}

// expire has the lock of the dead event expire.
func (d *deadHolder) expire() {
	d.Exec(`UPDATE events_v2 SET locked_at = locked_at - interval '1 hour' WHERE id = $1`, d.event)
}

// holds can keep a dead event from being taken over.
var holds = []struct {
	name    string
	unknown bool
	hold    func(t *testing.T, d *deadHolder)
}{
	{"pause", false, func(t *testing.T, d *deadHolder) { d.rule(t, operate.PauseRule) }},
	{"block", false, func(t *testing.T, d *deadHolder) { d.rule(t, operate.BlockRule) }},
	{"delay", false, func(_ *testing.T, d *deadHolder) {
		d.Exec(`UPDATE events_v2 SET delay_until = clock_timestamp() + interval '1 day' WHERE id = $1`, d.event)
	}},
	{"deletion", false, func(_ *testing.T, d *deadHolder) { d.Exec(`DELETE FROM events_v2 WHERE id = $1`, d.event) }},
	{"no handler", true, func(*testing.T, *deadHolder) {}},
}

func (d *deadHolder) rule(t *testing.T, rule operate.RuleType) {
	t.Helper()
	if _, err := d.rules.Add(testenv.Context(t), rule, d.scope); err != nil {
		t.Fatal(err)
	}
}

// TestRelayFreesPlaceOfDeadWorker: the worker of the event has died and the notification is lost.
// The relay gives the place to others, whatever keeps the event from running.
func TestRelayFreesPlaceOfDeadWorker(t *testing.T) {
	t.Parallel()
	for _, c := range holds {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := newDeadHolder(t, c.unknown)
			d.emitOthers()
			c.hold(t, d)
			d.Start(worker.Config{LockTimeout: time.Minute})
			d.Outcomes.Await(t, machine.NotItsTurn, others)
			d.Notifier.Wipe()
			d.expire()
			relay, err := maintenance.NewRelay(d.Store, d.Notifier, maintenance.RelayConfig{LostAfter: time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := relay.Pass(testenv.Context(t)); err != nil {
				t.Fatal(err)
			}
			d.Outcomes.Await(t, machine.ExecutesToCompletion, others)
		})
	}
}

// TestNotificationFreesPlaceOfDeadWorker: the notification comes while the lock is
// valid, and again when it is not any more. No relay runs.
func TestNotificationFreesPlaceOfDeadWorker(t *testing.T) {
	t.Parallel()
	for _, c := range holds[:3] {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := newDeadHolder(t, c.unknown)
			c.hold(t, d)
			d.Start(worker.Config{LockTimeout: deadLock})
			d.emitOthers()
			d.Outcomes.Await(t, machine.ExecutesToCompletion, others)
		})
	}
}

// TestNextEventFreesPlaceOfDeadWorker: the event with the place has no notification any
// more, and no relay runs.
func TestNextEventFreesPlaceOfDeadWorker(t *testing.T) {
	t.Parallel()
	for _, c := range holds[:3] {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := newDeadHolder(t, c.unknown)
			c.hold(t, d)
			d.Notifier.Wipe()
			d.expire()
			d.Start(worker.Config{LockTimeout: time.Minute})
			d.emitOthers()
			d.Outcomes.Await(t, machine.ExecutesToCompletion, others)
		})
	}
}
