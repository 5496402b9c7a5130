package eventqueue

import (
	"context"
	"time"

	"go.uber.org/zap"

	"eventsv2/eventqueue/machine"
)

// Waits between looks. The first is for an event whose row somebody is writing;
// the others are what a loop waits at most after a failure.
const (
	claimFailedDelay = time.Second
	minFailureWait   = 100 * time.Millisecond
	maxFailureWait   = 5 * time.Second
)

// receive pulls notifications for free slots and looks at their events, until
// ctx ends. Two of these run at once.
func (w *Worker) receive(ctx, work context.Context) {
	wait := newFailureWait(w.config.Jitter)
	for {
		n, err := w.slots.take(ctx, w.config.ClaimBatch)
		if err != nil {
			return
		}
		deliveries, err := w.receiver.Pull(ctx, n)
		w.slots.give(n - len(deliveries))
		switch {
		case ctx.Err() != nil:
			w.giveBack(deliveries, 0)
			return
		case err != nil:
			w.log.Warn("could not pull notifications", zap.Duration(logWait, wait.next), zap.Error(err))
			wait.pause(ctx)
		case len(deliveries) > 0:
			if err := w.look(ctx, work, deliveries); err != nil {
				w.log.Warn("could not claim events", zap.Int(logCount, len(deliveries)),
					zap.Duration(logWait, wait.next), zap.Error(err))
				w.giveBack(deliveries, wait.next)
				wait.pause(ctx)
				continue
			}
			wait.reset()
		}
	}
}

// look asks the database about the events of a batch of notifications, all at
// once, and does with each what the diagram says.
func (w *Worker) look(ctx, work context.Context, deliveries []Delivery) error {
	deliveries = w.dropDoubles(deliveries)
	ids := make([]EventID, len(deliveries))
	for i, d := range deliveries {
		ids[i] = d.Event
	}
	// A stop must not cut off a claim that may have committed.
	claimCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.config.LockTimeout/2)
	defer cancel()
	asked := time.Now()
	found, err := w.store.Claim(claimCtx, ids, w.known, w.config.LockTimeout)
	if err != nil {
		return err
	}
	byID := make(map[EventID]*Found, len(found))
	for i := range found {
		byID[found[i].Event.ID] = &found[i]
	}
	for _, d := range deliveries {
		f, ok := byID[d.Event]
		if !ok {
			f = &Found{Event: Event{ID: d.Event, Canvas: d.Canvas}}
		}
		w.decide(work, d, f, asked)
	}
	return nil
}

// dropDoubles acknowledges the second and further notifications of one event
// within a batch: the first one stands for them all.
func (w *Worker) dropDoubles(deliveries []Delivery) []Delivery {
	seen := make(map[EventID]struct{}, len(deliveries))
	kept := deliveries[:0]
	for _, d := range deliveries {
		if _, double := seen[d.Event]; double {
			w.answers <- answer{delivery: d}
			w.slots.give(1)
			continue
		}
		seen[d.Event] = struct{}{}
		kept = append(kept, d)
	}
	return kept
}

// decide follows the facts to Process, Queue or End.
func (w *Worker) decide(work context.Context, d Delivery, f *Found, asked time.Time) {
	state, label := machine.Look(f.Facts)
	if state == machine.Process {
		w.start(work, d, f, asked)
		return
	}
	out := Outcome{Event: d.Event, Canvas: f.Event.Canvas, Handler: f.Event.Handler(), Label: label, To: state}
	if state == machine.Queue {
		out.Delay = w.lookAgain(label, &f.Facts)
	}
	w.tell(out)
	w.answers <- answerTo(d, out)
	w.slots.give(1)
}

// lookAgain is the wait before the next look at an event that could not be
// claimed. It is never 0 (no hot loop).
func (w *Worker) lookAgain(label machine.Label, facts *machine.Facts) time.Duration {
	switch label {
	case machine.DelayNotYet:
		return facts.Delay
	case machine.IsLocked:
		return facts.LockRemaining + w.config.Jitter(claimFailedDelay)
	case machine.HandlerUnknown:
		return w.config.UnknownDelay
	default:
		return claimFailedDelay + w.config.Jitter(claimFailedDelay)
	}
}

// tell logs an outcome and passes it to the observer.
func (w *Worker) tell(out Outcome) {
	w.config.Observe(out)
	level := zap.DebugLevel
	message := "looked at event"
	switch {
	case out.Label == machine.HandlerUnknown:
		level, message = zap.WarnLevel, "this worker has no handler for the event; left for another worker"
	case out.Attempt != 0:
		level, message = zap.InfoLevel, "event run ended"
	}
	entry := w.log.Check(level, message)
	if entry == nil {
		return
	}
	fields := []zap.Field{
		zap.Stringer(logEvent, out.Event),
		zap.Stringer(logCanvas, out.Canvas),
		zap.Stringer(logHandler, out.Handler),
		zap.String(logLabel, string(out.Label)),
		zap.Duration(logDelay, out.Delay),
	}
	if out.Attempt != 0 {
		fields = append(fields, zap.Int32(logAttempt, out.Attempt), zap.Duration(logDuration, out.Duration))
	}
	if out.Err != nil {
		fields = append(fields, zap.Error(out.Err))
	}
	entry.Write(fields...)
}

// giveBack requeues notifications that were pulled and not looked at.
func (w *Worker) giveBack(deliveries []Delivery, after time.Duration) {
	for _, d := range deliveries {
		w.answers <- answer{delivery: d, requeue: true, after: after}
	}
	w.slots.give(len(deliveries))
}

// failureWait grows from failure to failure, with jitter.
type failureWait struct {
	next   time.Duration
	jitter func(time.Duration) time.Duration
}

func newFailureWait(jitter func(time.Duration) time.Duration) *failureWait {
	return &failureWait{minFailureWait, jitter}
}

func (f *failureWait) reset() { f.next = minFailureWait }

// pause waits, or less when ctx ends.
func (f *failureWait) pause(ctx context.Context) {
	timer := time.NewTimer(f.next/2 + f.jitter(f.next))
	defer timer.Stop()
	f.next = min(2*f.next, maxFailureWait)
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
