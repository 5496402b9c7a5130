package worker

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.uber.org/zap"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/internal/logkey"
	"eventsv2/internal/refusal"
)

// suspects runs the events that were in hand when their worker died, so that an event that kills its
// worker is told apart from those that ran beside it (I15). No more of them run together here than each
// of them allows (ClaimResult.Company), and how many do is recorded before they begin (I18). The others
// wait in the order in which they came; the heartbeat renews their claims.
type suspects struct {
	part
	executor *executor
	most     int           // how many may wait: half of the slots, the others are for events beside them
	woken    chan struct{} // has an element when there may be something to admit

	mu      sync.Mutex
	waiting []*execution
	running map[*execution]bool
	stopped bool
}

func newSuspects(p part, e *executor) *suspects {
	return &suspects{part: p, executor: e, most: max(p.config.Concurrency/2, 1), woken: make(chan struct{}, 1), running: map[*execution]bool{}}
}

var (
	errWaitsForSuspects = laterError{errors.New("the event was in hand when a worker died, and waits until fewer such events run here")}
	errNotBegun         = laterError{errors.New("could not record that the run begins")}
)

// add has claimed events run, now or later. It never blocks.
func (s *suspects) add(work context.Context, events []candidate, asked time.Time) {
	if len(events) == 0 {
		return
	}
	held := make([]*execution, len(events))
	for i, l := range events {
		held[i] = s.executor.hold(work, l, asked, true)
	}
	s.mu.Lock()
	stopped := s.stopped
	if !stopped {
		s.waiting = append(s.waiting, held...)
	}
	s.mu.Unlock()
	if stopped {
		s.release(held, eventqueue.ErrStopping)
	}
	s.wake()
}

// ended is called when the end of a suspect is written. Until then its row says that it runs, and it would be blamed
// for the end of its worker together with those beside it.
func (s *suspects) ended(x *execution) {
	s.mu.Lock()
	delete(s.running, x)
	s.mu.Unlock()
	s.wake()
}

func (s *suspects) wake() {
	select {
	case s.woken <- struct{}{}:
	default:
	}
}

// admitRetries is how often admission is tried again while suspects wait and nothing wakes it.
const admitRetries = time.Second

// run admits suspects until ctx ends, and then releases those that wait. claimContext bounds a statement.
func (s *suspects) run(ctx context.Context, claimContext func(context.Context) (context.Context, context.CancelFunc)) {
	tick := time.NewTimer(admitRetries)
	defer tick.Stop()
	for {
		select {
		case <-s.woken:
		case <-tick.C:
		case <-ctx.Done():
			s.stop()
			return
		}
		statement, cancel := claimContext(ctx)
		if s.admit(statement) {
			tick.Reset(admitRetries)
		}
		cancel()
	}
}

func (s *suspects) stop() {
	s.mu.Lock()
	waiting := s.waiting
	s.waiting, s.stopped = nil, true
	s.mu.Unlock()
	s.release(waiting, eventqueue.ErrStopping)
}

// admit begins the runs of those that may run together with the ones that run. It reports whether others wait.
func (s *suspects) admit(ctx context.Context) (othersWait bool) {
	admitted, together, left := s.next()
	s.release(left, errWaitsForSuspects)
	if len(admitted) > 0 {
		s.begin(ctx, admitted, together)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.waiting) > 0
}

// next takes from the front of those that wait as many as may run together with the ones that run already. together are all
// of them. left are those that wait no longer: they lost their locks, waited for a lock timeout, so that another worker may
// have them, or too many wait.
func (s *suspects) next() (admitted, together, left []*execution) {
	s.mu.Lock()
	defer s.mu.Unlock()
	company := AnyCompany
	for x := range s.running {
		if cause := x.ctx.endCause(); cause != nil && !x.stillHolds(cause) { // it may hang for ever
			delete(s.running, x)
			continue
		}
		together, company = append(together, x), min(company, x.company)
	}
	rest := s.waiting[:0]
	full := false
	for _, x := range s.waiting {
		switch {
		case x.ctx.endCause() != nil || time.Since(x.claimed) >= s.config.LockTimeout:
			left = append(left, x)
		case !full && len(together) < min(company, x.company):
			together, admitted, company = append(together, x), append(admitted, x), min(company, x.company)
			s.running[x] = true
		case len(rest) < s.most:
			full, rest = true, append(rest, x)
		default:
			left = append(left, x)
		}
	}
	clear(s.waiting[len(rest):])
	s.waiting = rest
	return admitted, together, left
}

// stillHolds reports whether a run whose context has ended may still hold its lock, so that it would be blamed for the end of its
// worker together with those beside it: one that was cancelled, or takes too long. Its lock is not renewed beyond hungGrace.
func (x *execution) stillHolds(cause error) bool {
	return !errors.Is(cause, eventqueue.ErrLockLost) && time.Since(x.ctx.endsAt()) < hungGrace+x.executor.config.LockTimeout
}

// begin runs admitted suspects, once it is recorded how many run together: first for those that run already, so that none of
// them is taken for one that died alone, and then for the admitted ones.
func (s *suspects) begin(ctx context.Context, admitted, together []*execution) {
	var fewer []*execution // run already, and are known to do so with fewer
	for _, x := range together {
		if n := int(x.together.Load()); n > 0 && n < len(together) {
			fewer = append(fewer, x)
		}
	}
	if done, lost := s.record(ctx, fewer, len(together)); len(done)+len(lost) < len(fewer) {
		s.putBack(admitted)
		return
	}
	begun, _ := s.record(ctx, admitted, len(together))
	for _, x := range admitted {
		if begun[x.run.ID] {
			s.executor.startHeld(x)
			continue
		}
		s.release([]*execution{x}, errNotBegun)
		s.ended(x)
	}
	if len(begun) > 0 {
		s.log.Info("running events of a worker that died", zap.Int(logkey.Count, len(begun)), zap.Int("together", len(together)))
	}
}

// putBack has admitted suspects wait again: another transaction is writing the row of one that runs.
func (s *suspects) putBack(admitted []*execution) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range admitted {
		delete(s.running, x)
	}
	s.waiting = append(admitted, s.waiting...)
}

// record records of suspects that they run, and with how many. It returns those of which that is recorded, and those whose
// claims hold no more.
func (s *suspects) record(ctx context.Context, events []*execution, together int) (done, lost map[eventqueue.EventID]bool) {
	claims := make([]Claim, len(events))
	for i, x := range events {
		claims[i] = x.claim()
	}
	asked := time.Now()
	s.executor.runs.update(events, func(x *execution) { x.rowID = 0 }) // the statement moves the row
	var written WriteResult
	refused, err := refusal.Halve(func(claims []Claim) error {
		some, err := s.store.BeginRuns(ctx, claims, together)
		written.Done, written.Lost = append(written.Done, some.Done...), append(written.Lost, some.Lost...)
		return err
	}, claims)
	for _, r := range refused {
		s.log.Error("the database refuses to record that the run of this event begins, and of no other for it; it does not run; "+
			"check its row, and the triggers and constraints of its table", zap.Stringer(logkey.Event, r.Item.Event), zap.Error(r.Err))
	}
	if err != nil {
		s.log.Warn("could not record that runs begin; their events are released, or wait", zap.Int(logkey.Count, len(events)), zap.Error(err))
	}
	done, lost = idSet(written.Done), idSet(written.Lost)
	s.executor.runs.update(events, func(x *execution) {
		if done[x.run.ID] { // which renews the claim, so that a handler over its time keeps others from running alone for as long
			x.renewed = asked
			x.together.Store(int32(together)) //nolint:gosec // at most the worker's slots
		}
	})
	return done, lost
}

// release releases claimed events without a run.
func (s *suspects) release(events []*execution, why error) {
	s.executor.runs.update(events, func(x *execution) { x.waits, x.unrun = false, true })
	for _, x := range events {
		s.executor.releaseUnrun(x, machine.Released, why)
	}
}
