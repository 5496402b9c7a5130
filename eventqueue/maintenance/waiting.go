package maintenance

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"eventsv2/eventqueue"
	"eventsv2/internal/logkey"
)

// UnservedAfter is how long an event must have been due before a relay says that its handler does
// not run, and MaxUnserved how many such handlers it tries to explain at most.
const (
	UnservedAfter = time.Minute
	MaxUnserved   = 5
)

// Waiting is what CountWaiting has found.
type Waiting struct {
	// Next is the last scope of a full page; the zero Scope when there are no more.
	Next eventqueue.Scope

	// Completed, Failed and Retried are the runs of all programs that were counted in the last
	// whole minute. EndedOf is how many rows of that minute and the current one have such runs.
	Completed, Failed, Retried int64
	EndedOf                    int64

	// Running and Pending are of the scopes of the page, and Held is how many of the pending ones
	// rules hold back; of a handler with very many events, of which only some are read, it is an estimate.
	// OldestDue is the longest time for which another event has been due that nobody runs.
	Running, Pending, Held int64
	OldestDue              time.Duration

	// Unserved are the scopes, those with the oldest events first and no more than MaxUnserved, that
	// are not paused or blocked, have an event that has been due for UnservedAfter, and of which
	// nothing runs and no run was counted in that minute and the current one. UnservedHandlers is how
	// many there are.
	Unserved         []Unserved
	UnservedHandlers int64

	// Unsummed reports whether there are minutes that SumMinutes has to sum up.
	Unsummed bool

	// Uncounted reports whether there are events that CountEmits has to count.
	Uncounted bool
}

// Unserved is a handler on a canvas of which nothing runs although something is due.
type Unserved struct {
	eventqueue.Scope
	DueFor time.Duration // of its oldest event
}

// Explanation is why an event that is due does not run.
type Explanation struct {
	// Why and Remedy are sentences for a person.
	Why, Remedy string
	// Free reports whether nothing keeps the event from running: it is only that no worker has claimed it.
	Free bool
	// Passes reports whether the event runs or will without anybody's help, as it seems at this moment.
	Passes bool
}

// Explain finds out why an event that is due does not run.
type Explain func(ctx context.Context, id eventqueue.EventID) (Explanation, error)

// unservedAgain is how long a relay does not repeat that one handler does not run while others do.
const unservedAgain = 10 * time.Minute

// minuteLines are the lines of the log about minutes.
type minuteLines struct {
	walked, last Waiting // the pages of a walk over all scopes so far, and the whole of the last one
	walks        bool    // there is a last one

	unserved   eventqueue.Scope // the last one that had a line
	unservedAt time.Time
}

// sumUp logs what has run in the last minute and what is pending. A minute without runs in which
// nothing is due has no line.
func (l *minuteLines) sumUp(log *zap.Logger, page Waiting) {
	l.walked.Running += page.Running
	l.walked.Pending += page.Pending
	l.walked.Held += page.Held
	l.walked.OldestDue = max(l.walked.OldestDue, page.OldestDue)
	waiting := l.last
	if done := page.Next == (eventqueue.Scope{}); done || !l.walks {
		waiting = l.walked
		if done {
			l.last, l.walked, l.walks = l.walked, Waiting{}, true
		}
	}
	ended := page.Completed + page.Failed + page.Retried
	if ended == 0 && waiting.OldestDue == 0 {
		return
	}
	log.Info("runs of the last minute", zap.Int64("run", ended), zap.Int64("failed", page.Failed), zap.Int64("retried", page.Retried),
		zap.Int64("running", waiting.Running), zap.Int64("pending", waiting.Pending), zap.Int64("held", waiting.Held),
		zap.Duration("oldest_due", waiting.OldestDue.Truncate(time.Millisecond)))
}

// countWaiting counts what is pending and logs what it finds.
func (m *minuteTables) countWaiting(ctx context.Context) error {
	waiting, err := within(ctx, func(ctx context.Context) (Waiting, error) {
		return m.store.CountWaiting(ctx, m.after)
	})
	if err != nil {
		return err
	}
	whole := m.after == (eventqueue.Scope{}) && waiting.Next == (eventqueue.Scope{})
	m.after = waiting.Next
	if whole && waiting.EndedOf == 0 && waiting.Running == 0 && waiting.Pending == 0 {
		m.idle++
	} else {
		m.idle = 0
	}
	m.lines.sumUp(m.log, waiting)
	return errors.Join(m.countEmits(ctx, waiting), m.unserved(ctx, waiting, whole), m.sumMinutes(ctx, waiting))
}

// countEmits counts what SQL has emitted.
func (m *minuteTables) countEmits(ctx context.Context, waiting Waiting) (err error) {
	for more := waiting.Uncounted; more && err == nil; {
		m.loop.Within(statementTakes)
		more, err = within(ctx, m.store.CountEmits)
	}
	return err
}

// sumMinutes sums up minutes, one page: when a relay starts after long, its first minutes are a page each.
func (m *minuteTables) sumMinutes(ctx context.Context, waiting Waiting) error {
	if !waiting.Unsummed {
		return nil
	}
	m.loop.Within(statementTakes)
	_, err := within(ctx, m.store.SumMinutes)
	return err
}

// unserved logs that nothing runs although something is due, and why: of the whole queue in each
// minute, and of a handler beside others that run, once every ten minutes. It asks the database only
// if CountWaiting has found such a handler. whole says that its page has all handlers.
func (m *minuteTables) unserved(ctx context.Context, waiting Waiting, whole bool) error {
	stands := whole && waiting.EndedOf == 0 && waiting.Running == 0
	for _, unserved := range waiting.Unserved {
		if !stands && unserved.Scope == m.lines.unserved && time.Since(m.lines.unservedAt) < unservedAgain {
			return nil
		}
		fields, err := m.explainUnserved(ctx, unserved, stands)
		if err != nil {
			return err
		}
		if fields == nil {
			continue
		}
		m.lines.unserved, m.lines.unservedAt = unserved.Scope, time.Now()
		fields = append(fields, zap.Duration("due_for", unserved.DueFor.Truncate(time.Millisecond)), zap.Int64("handlers", waiting.UnservedHandlers))
		if stands {
			m.log.Error("nothing has run for a minute although something is due", fields...)
		} else {
			m.log.Warn("nothing of a handler has run for a minute although something is due", fields...)
		}
		return nil
	}
	return nil
}

// explainUnserved returns the fields about the oldest due event of a scope; nil if it is worth no
// line: it is gone, runs, or waits only because workers have not come to it while they run others.
func (m *minuteTables) explainUnserved(ctx context.Context, unserved Unserved, stands bool) ([]zap.Field, error) {
	m.loop.Within(statementTakes)
	ctx, cancel := context.WithTimeout(ctx, statementTakes)
	defer cancel()
	id, modifier, err := m.store.OldestDue(ctx, unserved.Scope)
	if err != nil || id == 0 {
		return nil, err
	}
	handler := eventqueue.HandlerKey{Module: unserved.Module, Name: unserved.Name, Modifier: modifier}
	fields := []zap.Field{zap.Stringer(logkey.Event, id), zap.Stringer(logkey.Canvas, unserved.Canvas), zap.Stringer(logkey.Handler, handler)}
	if m.explain == nil {
		return fields, nil
	}
	explained, err := m.explain(ctx, id)
	if err != nil || explained.Passes || explained.Free && !stands {
		return nil, err
	}
	return append(fields, zap.String(logkey.Reason, explained.Why), zap.String(logkey.Remedy, explained.Remedy)), nil
}
