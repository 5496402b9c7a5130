package maintenance

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"eventsv2/eventqueue"
	"eventsv2/internal/backoff"
	"eventsv2/internal/cause"
	"eventsv2/internal/logkey"
	"eventsv2/internal/rounds"
)

// MinuteStore has the tables event_minutes and event_hours. The relay maintains them if its
// RelayStore is one, as pgstore.Store is.
type MinuteStore interface {
	// CountWaiting writes, into the current minute by the database's clock, how many events of each
	// handler on a canvas have not ended, and for how long the oldest due one that is not running has
	// been due. It goes by scopes, from the one above after, and reads a bounded number of them and
	// of events: beyond it, the number of a handler's events is an estimate. Of a handler among them that
	// has none any more, but has been counted in recent minutes, it writes 0, and nothing once that is written. It
	// returns what a relay has to say in its log of what it has found.
	CountWaiting(ctx context.Context, after eventqueue.Scope) (Waiting, error)

	// OldestDue returns, of what CountWaiting reads of a scope, the event that has been due for the
	// longest time, that nobody runs, and that does not wait for others of its ordering group; 0 if
	// there is none.
	OldestDue(ctx context.Context, scope eventqueue.Scope) (id eventqueue.EventID, modifier string, err error)

	// CountEmits adds events that SQL has emitted to the current minute, by the database's clock, each once: a bounded number of them with
	// each call. It reports whether there may be more.
	CountEmits(ctx context.Context) (more bool, err error)

	// SumMinutes writes the sums of minutes that can no longer change and have none, of a bounded number of them with
	// each call, the earliest first. It reports whether there may be more.
	SumMinutes(ctx context.Context) (more bool, err error)

	// SumHour writes the sums of the first hour that is over and has none. It reports whether there
	// was one.
	SumHour(ctx context.Context) (bool, error)

	// PruneMinutes deletes no more than limit rows each of minutes and of hours that are older than
	// that by the database's clock. It skips rows that another transaction is writing.
	PruneMinutes(ctx context.Context, minutesFor, hoursFor time.Duration, limit int) (deleted int, err error)
}

const (
	// countPendingEvery is how often a relay counts what is pending.
	countPendingEvery = time.Minute
	// countPendingWithin is how long after its start it begins with that.
	countPendingWithin = 2 * time.Second
	// minutesFor and hoursFor are how long the counts are retained.
	minutesFor = 14 * 24 * time.Hour
	hoursFor   = 365 * 24 * time.Hour
	// pruneMinutesPage is how many rows one statement deletes.
	pruneMinutesPage = 10_000
	// idleCounts is how many counts that find nothing are enough, as long as there is no event: workers
	// may hand in what has run up to a minute later.
	idleCounts = 3
)

// MaintainMinutes sums up the hours that are over and deletes what is older than 14 days, of hours a
// year. A Relay does it once per hour; call it where no relay runs.
func MaintainMinutes(ctx context.Context, store MinuteStore) (deleted int, err error) {
	return maintainMinutes(ctx, store, nil)
}

// maintainMinutes is MaintainMinutes in a loop; each statement is a step of it.
func maintainMinutes(ctx context.Context, store MinuteStore, loop *rounds.Loop) (deleted int, err error) {
	var failed error // an hour that cannot be summed up does not keep what is old
	for summed := true; summed; {
		loop.Within(statementTakes)
		summed, failed = within(ctx, store.SumHour)
	}
	for {
		loop.Within(statementTakes)
		some, err := within(ctx, func(ctx context.Context) (int, error) {
			return store.PruneMinutes(ctx, minutesFor, hoursFor, pruneMinutesPage)
		})
		deleted += some
		if err != nil || some < pruneMinutesPage {
			return deleted, errors.Join(failed, err)
		}
	}
}

// within gives a statement its time.
func within[T any](ctx context.Context, statement func(ctx context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, statementTakes)
	defer cancel()
	return statement(ctx)
}

// minuteTables maintains the tables of minutes for a relay.
type minuteTables struct {
	store   MinuteStore
	log     *zap.Logger
	jitter  func(time.Duration) time.Duration
	explain Explain
	empty   func() bool // reports whether a moment ago there was no event at all, and programs had counted nothing lately

	after      eventqueue.Scope // where the next count of what is pending begins
	lines      minuteLines
	maintainAt time.Time
	failed     bool // the last time
	idle       int  // so many counts in a row have found nothing
	causes     cause.Log
	loop       *rounds.Loop
}

// run counts what is pending, a page per minute, and once per hour does MaintainMinutes, until ctx
// ends.
func (m *minuteTables) run(ctx context.Context) {
	defer m.loop.Ends()
	m.maintainAt = time.Now().Add(m.jitter(time.Hour))
	backoff.Sleep(ctx, m.jitter(countPendingWithin))
	for ; ctx.Err() == nil; backoff.Sleep(ctx, countPendingEvery) {
		err := m.once(ctx)
		if err != nil && ctx.Err() == nil && m.causes.Worth(err, !m.failed) {
			m.log.Warn("could not maintain the counts of minutes; trying again", zap.Error(err))
		}
		m.failed = err != nil
		m.loop.Within(countPendingEvery)
	}
}

func (m *minuteTables) once(ctx context.Context) error {
	m.loop.Within(statementTakes)
	if m.idle >= idleCounts && m.empty() {
		return m.maintain(ctx)
	}
	if err := m.countWaiting(ctx); err != nil {
		return err
	}
	return m.maintain(ctx)
}

// maintain does MaintainMinutes when it is time.
func (m *minuteTables) maintain(ctx context.Context) error {
	if time.Now().Before(m.maintainAt) {
		return nil
	}
	m.maintainAt = time.Now().Add(time.Hour)
	deleted, err := maintainMinutes(ctx, m.store, m.loop)
	if deleted > 0 {
		m.log.Info("deleted old counts of minutes", zap.Int(logkey.Count, deleted))
	}
	return err
}
