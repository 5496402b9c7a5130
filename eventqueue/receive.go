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

// claimAtStop is how long a claim under way may still take when the worker stops.
const claimAtStop = time.Second

// A receiver that has nothing answers after a while. One that answers at once,
// again and again, must not make the loop hot.
const (
	emptyPullTakes = 50 * time.Millisecond
	emptyPullWait  = 100 * time.Millisecond
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
		began := time.Now()
		deliveries, err := w.receiver.Pull(ctx, n)
		w.slots.give(n - len(deliveries))
		switch {
		case ctx.Err() != nil:
			w.giveBack(deliveries, 0)
			return
		case len(deliveries) > 0:
			if len(deliveries) == n {
				w.pulledAll.Store(true)
			}
			w.lookAt(ctx, work, deliveries, wait)
		case err != nil:
			w.log.Warn("could not pull notifications", zap.Duration(logWait, wait.next), zap.Error(err))
			wait.pause(ctx)
		case time.Since(began) < emptyPullTakes:
			pause(ctx, emptyPullWait)
		default:
			wait.reset()
		}
	}
}

// lookAt is look, and the wait after a failure.
func (w *Worker) lookAt(ctx, work context.Context, deliveries []Delivery, wait *failureWait) {
	deliveries, doubles := split(deliveries)
	err := w.look(ctx, work, deliveries)
	// A double may be the same message once more, so it is not acknowledged: it
	// finds the event gone, or rings again.
	w.giveBack(doubles, w.config.Lease)
	if err == nil {
		wait.reset()
		return
	}
	w.log.Warn("could not claim events", zap.Int(logCount, len(deliveries)), zap.Duration(logWait, wait.next), zap.Error(err))
	w.giveBack(deliveries, wait.next)
	wait.pause(ctx)
}

// split takes the second and further notifications of one event out of a batch:
// the first one stands for them all.
func split(deliveries []Delivery) (first, doubles []Delivery) {
	seen := make(map[EventID]struct{}, len(deliveries))
	first = deliveries[:0]
	for _, d := range deliveries {
		if _, double := seen[d.Event]; double {
			doubles = append(doubles, d)
			continue
		}
		seen[d.Event] = struct{}{}
		first = append(first, d)
	}
	return first, doubles
}

// look asks the database about the events of a batch of notifications, all at
// once, and does with each what the diagram says.
func (w *Worker) look(ctx, work context.Context, deliveries []Delivery) error {
	ids := make([]EventID, len(deliveries))
	for i, d := range deliveries {
		ids[i] = d.Event
	}
	claimCtx, cancel := w.claimContext(ctx)
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
	// What was claimed is begun before anything is answered: an answer may have to
	// wait for a broker that hangs, and only what has begun keeps its lock (I3).
	var rest, limited []lookedAt
	for _, d := range deliveries {
		l := lookedAt{d, byID[d.Event]}
		if l.found == nil {
			l.found = &Found{Event: Event{ID: d.Event, Canvas: d.Canvas}}
		}
		switch {
		case !l.found.Facts.Claimed:
			rest = append(rest, l)
		case w.asksLimit(l.found):
			limited = append(limited, l)
		default:
			w.decide(work, l, asked)
		}
	}
	w.beginLimited(claimCtx, work, limited, asked)
	for _, l := range w.takeTurns(claimCtx, work, rest) {
		w.decide(work, l, asked)
	}
	return nil
}

// lookedAt is a delivery, and what was found of its event.
type lookedAt struct {
	delivery Delivery
	found    *Found
}

// claimContext is for a claim: a stop must not cut it off at once, since it may
// have committed, but neither may it keep the worker from stopping.
func (w *Worker) claimContext(ctx context.Context) (context.Context, context.CancelFunc) {
	claim, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.config.LockTimeout/2)
	unhook := context.AfterFunc(ctx, func() {
		pause(claim, claimAtStop)
		cancel()
	})
	return claim, func() { unhook(); cancel() }
}

// decide follows the facts to Process, Queue or End.
func (w *Worker) decide(work context.Context, l lookedAt, asked time.Time) {
	d, f := l.delivery, l.found
	state, label := machine.Look(f.Facts)
	if state == machine.Process {
		w.start(work, l, asked)
		return
	}
	out := Outcome{Event: d.Event, Canvas: f.Event.Canvas, Handler: f.Event.Handler(), Label: label, To: state}
	if state == machine.Queue {
		out.Delay = w.lookAgain(label, &f.Facts)
	}
	w.tell(out)
	w.letGo(d, answerTo(d, out))
}

// lookAgain is the wait before the next look at an event that could not be
// claimed. It is never 0 (no hot loop).
func (w *Worker) lookAgain(label machine.Label, facts *machine.Facts) time.Duration {
	switch label {
	case machine.DelayNotYet:
		return facts.Delay
	case machine.IsLocked:
		// The sum must not overflow: somebody may have set locked_at by hand.
		return min(facts.LockRemaining, leaveToRelay) + w.config.Jitter(claimFailedDelay)
	case machine.HandlerUnknown:
		return w.unknownDelay(facts)
	default:
		return claimFailedDelay + w.config.Jitter(claimFailedDelay)
	}
}

// unknownDelay has several looks at an event that is due since recently, so that
// a worker that knows its handler gets it soon. After that the relay rings for
// it, in growing intervals (I11).
func (w *Worker) unknownDelay(facts *machine.Facts) time.Duration {
	if facts.Delay < -unknownLooks*w.config.UnknownDelay { // -Delay may overflow
		return leaveToRelay
	}
	return w.config.UnknownDelay + w.config.Jitter(claimFailedDelay)
}

const (
	// unknownLooks times UnknownDelay is how long a worker goes on looking at an
	// event that it has no handler for.
	unknownLooks = 10
	// leaveToRelay is a wait that is the relay's: see answerTo.
	leaveToRelay = MaxRequeue + time.Second
)

// tell logs an outcome and passes it to the observer.
func (w *Worker) tell(out Outcome) {
	w.config.Observe(out)
	level := zap.DebugLevel
	message := "looked at event"
	switch {
	case out.Label == machine.HandlerUnknown && w.unknown.sayNow(out.Handler):
		level, message = zap.WarnLevel, "this worker has no handler for the event; left for another worker"
	case out.Attempt != 0 && out.Label != machine.OverLimit: // which is none
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
	pause(ctx, f.next/2+f.jitter(f.next))
	f.next = min(2*f.next, maxFailureWait)
}

func pause(ctx context.Context, wait time.Duration) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
