package main

import (
	"context"
	"fmt"
	"time"

	"eventsv2/eventqueue"
)

// allowance is a time in which something was done to a process, or to all ("").
type allowance struct {
	process  string
	from, to time.Time
}

// allowance lets runs of a process be repeated that were under way at some time.
func (r *rig) allowance(process string, from, to time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.allowances = append(r.allowances, allowance{process, from, to})
}

// completes is how long the completion of a run may be on its way to the database, where it is lost
// when the worker dies or the database does not answer.
const completes = 2 * time.Second

// excused reports whether a run may be followed by another one: something was done to its process
// while it held the event, or to the process of the other one when that began. A handler that is
// called just before its process is stopped reaches the target when it goes on.
func (r *rig) excused(v, next visit) bool {
	held := next.began // the target has not seen it end
	if over := v.ended.Add(completes); !v.ended.IsZero() && over.Before(held) {
		held = over
	}
	for _, e := range r.allowances {
		if (e.process == "" || e.process == v.process) && e.overlaps(v.began, held) || e.process == next.process && e.overlaps(next.began, next.began) {
			return true
		}
	}
	return false
}

// overlaps reports whether some of the time was between two others.
func (e allowance) overlaps(from, to time.Time) bool {
	return !e.from.After(to) && !e.to.Before(from)
}

// restLimit is how long everything may take to come to rest after the scenario.
const restLimit = 90 * time.Second

// ended is what event_log says of an event.
type ended struct {
	times   int
	status  string
	retries int
	value   string
	why     string
}

// check looks at every event that was accepted; see doc.go.
func (r *rig) check(ctx context.Context) {
	r.settle(ctx)
	logged, left, err := r.outcome(ctx)
	r.must(err)
	found := map[string]int{}
	first := map[string]string{}
	find := func(e *entry, what, format string, args ...any) {
		if found[what]++; found[what] == 1 {
			first[what] = fmt.Sprintf("event %s (%s): ", e.id, e.label) + fmt.Sprintf(format, args...)
		}
	}
	extra := 0
	for _, e := range r.of("") {
		extra += r.checkRuns(e, find)
		r.checkEnd(e, logged[e.id], left[e.id], find)
	}
	for what, n := range found {
		r.failf("%s: %d, first %s", what, n, first[what])
	}
	r.figure("events=%d", len(r.ledger))
	if extra > 0 {
		r.figure("explained_reruns=%d", extra)
	}
}

type finder func(e *entry, what, format string, args ...any)

// checkRuns looks at what the target saw, and counts the explained repetitions.
func (r *rig) checkRuns(e *entry, find finder) (extra int) {
	visits := r.target.of(e.id)
	for i, v := range visits {
		if v.began.Before(e.due) {
			find(e, "early", "run %s before its time", e.due.Sub(v.began))
		}
		if v.value != e.value {
			find(e, "changed", "the handler got %q", v.value)
		}
		if i+1 == len(visits) {
			continue
		}
		switch {
		case v.status != 0 && v.status != completed.status: // it asked for that
		case r.excused(v, visits[i+1]):
			extra++
		default:
			find(e, "unexplained duplicates", "run by %s at %s, which ended with %d, and again by %s at %s", v.process, v.began.Format(clockFormat),
				v.status, visits[i+1].process, visits[i+1].began.Format(clockFormat))
		}
	}
	return extra
}

const clockFormat = "15:04:05.000"

// checkEnd looks at what became of the event.
func (r *rig) checkEnd(e *entry, end ended, left bool, find finder) {
	visits := r.target.of(e.id)
	failures := 0
	for _, v := range visits {
		if v.status != completed.status {
			failures++
		}
	}
	switch {
	case left && end.times > 0:
		find(e, "undead", "it has ended and is still queued")
	case left:
		find(e, "stuck", "it has not ended; %d runs", len(visits))
	case end.times == 0:
		find(e, "lost", "it is neither queued nor in event_log; %d runs", len(visits))
	case end.times > 1:
		find(e, "ended twice", "%d rows of event_log", end.times)
	case end.value != e.value:
		find(e, "changed", "event_log has %q", end.value)
	case end.status == "FAILED" && len(visits) == 0:
		find(e, "failed without a run", "%s", end.why)
	case end.status == "FAILED" && !r.canFail[e.label]:
		find(e, "failed", "after %d runs: %s", len(visits), end.why)
	case end.status == "COMPLETED" && len(visits) == 0:
		find(e, "completed without a run", "no handler was called")
	case end.retries > max(failures, len(visits)-1)+r.unrecorded():
		find(e, "attempts used without a run", "%d were used, and there were %d runs, of which %d did not end well", end.retries, len(visits), failures)
	}
}

// unrecorded returns how many attempts an event may have used without a run that the target
// saw: one, in a scenario in which only the claimant knew what it had begun (I9).
func (r *rig) unrecorded() int {
	if r.unknown {
		return 1
	}
	return 0
}

// settle waits until no event of the ledger is queued, a while.
func (r *rig) settle(ctx context.Context) {
	ids := r.ids()
	r.eventually(ctx, restLimit, func() bool {
		var left int64
		err := r.db.QueryRow(ctx, `SELECT count(*) FROM events_v2 WHERE id = ANY($1)`, ids).Scan(&left)
		return err == nil && left == 0
	})
}

func (r *rig) ids() (ids []int64) {
	for _, e := range r.of("") {
		ids = append(ids, int64(e.id))
	}
	return ids
}

const outcomeSQL = `
SELECT id, count(*)::int, min(status::text), max(retries), min(value), coalesce(min(last_error), '')
  FROM event_log
 WHERE id = ANY($1)
 GROUP BY id`

// outcome reads what became of the events.
func (r *rig) outcome(ctx context.Context) (logged map[eventqueue.EventID]ended, left map[eventqueue.EventID]bool, err error) {
	logged, left = map[eventqueue.EventID]ended{}, map[eventqueue.EventID]bool{}
	ids := r.ids()
	rows, err := r.db.Query(ctx, outcomeSQL, ids)
	if err != nil {
		return nil, nil, fmt.Errorf("read event_log: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var id eventqueue.EventID
		var end ended
		if err := rows.Scan(&id, &end.times, &end.status, &end.retries, &end.value, &end.why); err != nil {
			return nil, nil, fmt.Errorf("read event_log: %w", err)
		}
		logged[id] = end
	}
	if err := rows.Err(); err != nil {
		return nil, nil, fmt.Errorf("read event_log: %w", err)
	}
	queued, err := r.db.Query(ctx, `SELECT id FROM events_v2 WHERE id = ANY($1)`, ids)
	if err != nil {
		return nil, nil, fmt.Errorf("read events_v2: %w", err)
	}
	defer queued.Close()
	for queued.Next() {
		var id eventqueue.EventID
		if err := queued.Scan(&id); err != nil {
			return nil, nil, fmt.Errorf("read events_v2: %w", err)
		}
		left[id] = true
	}
	return logged, left, queued.Err()
}
