package inspect

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/pgsession"
	"eventsv2/internal/mayrun"
	"eventsv2/internal/workerhandlers"
)

// Reason is one thing that keeps an event from running now, or that it does run or has ended.
type Reason struct {
	// Label is the arrow of the state machine that a worker would follow last if it tried the event now
	// and the reasons before this one were gone. A delay has the label that put the event off, where that is
	// known: RetryAllowed, Snoozed or OverLimit. An event that nothing keeps from running has Claimed, and one that
	// was cancelled has Cancelled, also one that was cancelled while it waited, to which no worker has led it.
	Label machine.Label
	// Why is a sentence that says what keeps the event, and Remedy one that says what would change that.
	Why, Remedy string
}

// Explanation is why an event does not run now, at one moment of the database's clock.
type Explanation struct {
	ID   eventqueue.EventID
	AsOf time.Time
	// Reasons are one or more. The first decides; those after it would keep the event once it is gone.
	Reasons []Reason
	// Shown is the event, as Show returns it.
	Shown Shown
}

// Because is the reason that decides.
func (e Explanation) Because() Reason { return e.Reasons[0] }

// Explain returns why an event does not run now, or that it does, or how it ended. It walks the state machine
// as a worker that tries the event, over facts that are read at one moment, and claims nothing. One
// difference helps the reader: an event with a valid lock is explained by that lock first, whatever would
// keep it from running again. Explain blocks for a few statements, which read single rows.
func (r *Reader) Explain(ctx context.Context, id eventqueue.EventID) (Explanation, error) {
	explained, err := r.ExplainMany(ctx, []eventqueue.EventID{id})
	if err != nil {
		return Explanation{}, err
	}
	return explained[0], nil
}

// ExplainMany is Explain for some events at one moment, in their order. It reads the workers once.
func (r *Reader) ExplainMany(ctx context.Context, ids []eventqueue.EventID) ([]Explanation, error) {
	explained := make([]Explanation, 0, len(ids))
	err := r.pool.Snapshot(ctx, func(tx pgsession.DB) error {
		workers := sync.OnceValues(func() ([]Worker, error) { return listWorkers(ctx, tx, nil) })
		for _, id := range ids {
			f, err := readFacts(ctx, tx, id, workers)
			if err != nil {
				return err
			}
			explained = append(explained, Explanation{ID: id, AsOf: f.asOf(), Reasons: f.reasons(), Shown: f.shown})
		}
		return nil
	})
	return explained, err
}

func readFacts(ctx context.Context, tx pgsession.DB, id eventqueue.EventID, workers func() ([]Worker, error)) (f facts, err error) {
	if f.shown, err = show(ctx, tx, id); err != nil || f.shown.Queued == nil {
		return f, err
	}
	if err := f.read(ctx, tx); err != nil {
		return f, err
	}
	known, err := workers()
	f.countWorkers(known)
	return f, err
}

// facts holds the data from which an event is explained.
type facts struct {
	shown Shown

	// snoozes is how often the event has been snoozed in a row, and overLimit that a rate limit has put
	// it off.
	snoozes   int
	overLimit bool
	// limits are the rate limits that the event has to pass, with their counts; read if one has put it off.
	limits []operate.RateStatus
	// relayRuns reports whether a relay is connected to the database.
	relayRuns bool
	// live is how many workers run, and knowing how many of them have the event's handler. lastKnew
	// is the last worker that had it, if none of those that run has.
	live, knowing int
	// away is of how many of these the handler's circuit breaker is open, and breaker is that which opened first.
	away     int
	breaker  *workerhandlers.Breaker
	lastKnew *Worker
	// workers are all that the database knows.
	workers []Worker
	// slots counts the slots of the workers with the handler, if all are in use.
	slots WorkerSlots
	// writer is the session whose transaction is writing the event's row, or has locked it; nil if there is none.
	writer *rowWriter
}

// rowWriter is a session that claims wait for, and then pass by.
type rowWriter struct {
	pid     int32 // 0: of a prepared transaction
	program string
	// since is when the transaction began; nil if the reader may not see that.
	since *time.Time
}

var factsSQL = `
SELECT e.snoozes, e.limited_attempt = ` + mayrun.LimitedAttemptSQL + `, ` + pgsession.RelayRunsSQL + `, writer.pid, writer.program, writer.since
FROM events_v2 e LEFT JOIN LATERAL (
    SELECT coalesce(l.pid, 0) AS pid, coalesce(a.application_name, '') AS program, a.xact_start AS since
    FROM pg_locks l LEFT JOIN pg_stat_activity a ON a.pid = l.pid
    WHERE l.locktype = 'transactionid' AND l.transactionid = e.xmax AND l.mode = 'ExclusiveLock' AND l.granted
    LIMIT 1
) AS writer ON true
WHERE e.id = $1`

const limitsSQL = mayrun.RateLimitsSQL + `
WHERE canvas_id = $1 AND module IN ('', $2) AND name IN ('', $3)
ORDER BY module`

// read reads what Show has not, without the workers.
func (f *facts) read(ctx context.Context, db eventqueue.DB) error {
	e := f.shown.Queued
	var pid *int32
	var program *string
	var since *time.Time
	if err := db.QueryRow(ctx, factsSQL, e.ID).Scan(&f.snoozes, &f.overLimit, &f.relayRuns, &pid, &program, &since); err != nil {
		return err
	}
	if pid != nil {
		f.writer = &rowWriter{*pid, *program, since}
	}
	if !f.overLimit {
		return nil
	}
	rows, err := db.Query(ctx, limitsSQL, [16]byte(e.Canvas), e.Module, e.Name)
	if err != nil {
		return err
	}
	f.limits, err = pgx.CollectRows(rows, scanRate)
	return err
}

func (f *facts) countWorkers(workers []Worker) {
	f.workers = workers
	full := true
	for i, w := range workers {
		knows := w.Handlers.Has(f.shown.Queued.Canvas, f.shown.Queued.Handler())
		switch {
		case w.State != WorkerLive && knows:
			f.lastKnew = &workers[i] // they come in the order of their starts
		case w.State == WorkerLive && knows:
			f.live++
			f.knowing++
			f.meet(w.breaker(f.shown.Queued.Canvas, f.shown.Queued.Handler()))
			full = full && w.Slots.Full()
			f.slots.add(w.Slots)
		case w.State == WorkerLive:
			f.live++
		}
	}
	if !full {
		f.slots = WorkerSlots{}
	}
}

// add adds the slots of another worker.
func (s *WorkerSlots) add(other WorkerSlots) {
	s.Of, s.Busy, s.Hung = s.Of+other.Of, s.Busy+other.Busy, s.Hung+other.Hung
	if s.OldestSince == nil || other.OldestSince != nil && other.OldestSince.Before(*s.OldestSince) {
		s.OldestSince = other.OldestSince
	}
}

// asOf is the clock by which the event was read; the zero time if it was not found.
func (f *facts) asOf() time.Time {
	switch {
	case f.shown.Queued != nil:
		return f.shown.Queued.AsOf
	case f.shown.Logged != nil:
		return f.shown.Logged.AsOf
	default:
		return time.Time{}
	}
}

// lockExpires is until when the lock of the event is valid.
func (f *facts) lockExpires() time.Time {
	e := f.shown.Queued
	return e.LockedAt.Add(e.LockValidFor)
}

// holderGone reports whether the worker that took the lock has stopped or died. One that is not known, since it has no
// row, counts as one that lives.
func (f *facts) holderGone() bool {
	w := f.shown.Queued.Holder
	return w != nil && w.State != WorkerLive
}

// runs reports whether a worker runs the event, which then has its handler.
func (f *facts) runs() bool {
	e := f.shown.Queued
	return e.LockedAt != nil && f.lockExpires().After(e.AsOf) && !f.holderGone()
}

// machine returns the facts as a claim would read them that takes nothing.
func (f *facts) machine() machine.Facts {
	e := f.shown.Queued
	if e == nil {
		return machine.Facts{}
	}
	m := machine.Facts{Present: true, HandlerKnown: f.knowing > 0 || f.runs(), Delay: e.DelayUntil.Sub(e.AsOf), Waits: f.shown.Group != nil}
	if f.away > 0 && f.away == f.knowing {
		m.BreakerOpen = 1 // for how long is known to the workers alone
	}
	m.Rule = f.strongest(operate.RuleKinds())
	if e.LockedAt != nil {
		m.LockRemaining = f.lockExpires().Sub(e.AsOf)
		m.Lock = machine.LockStale
		if m.LockRemaining > 0 {
			m.Lock = machine.LockHeld
		}
	}
	return m
}

// reasons walks the machine until nothing keeps the event, and takes away what it has met.
func (f *facts) reasons() (all []Reason) {
	if f.shown.Queued == nil {
		return []Reason{f.ended()}
	}
	m := f.machine()
	if m.Lock == machine.LockHeld {
		all = append(all, f.locked())
		m.Lock = machine.LockFree
	}
	for _, rule := range f.shown.Rules {
		if kind := operate.KindOf(rule.Type); !kind.Known() { // a newer program has added it
			all = append(all, f.ruled(kind)...)
		}
	}
	for {
		_, label := machine.DecideClaim(m)
		if kind, ok := operate.KindLabelled(label); ok {
			all = append(all, f.ruled(kind)...)
			m.Rule = f.strongest(kind.Weaker())
			continue
		}
		switch label {
		case machine.DelayNotYet:
			all = append(all, f.delayed())
			m.Delay = 0
		case machine.BreakerOpen:
			all = append(all, f.targetAway())
			m.BreakerOpen = 0
		case machine.HandlerUnknown:
			all = append(all, f.unknown())
			m.HandlerKnown = true
		case machine.NotItsTurn:
			all = append(all, f.behind())
			m.Waits = false
		default: // a claim that finds nothing in its way takes the event, unless its row is locked
			if f.writer != nil && (len(all) == 0 || all[0].Label != machine.IsLocked) {
				all = append(all, f.written())
			}
			if len(all) == 0 {
				all = append(all, f.runnable(m.Lock))
			}
			all[0].Why += f.suspicion() + f.cancelling()
			return all
		}
	}
}

// strongest is the strongest rule of these kinds that holds the event back.
func (f *facts) strongest(kinds []operate.RuleKind) (strongest machine.Rule) {
	for _, kind := range kinds {
		if slices.ContainsFunc(f.shown.Rules, func(r operate.Rule) bool { return r.Type == kind.Type }) {
			strongest = kind.Type
		}
	}
	return strongest
}
