package inspect

import (
	"context"

	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/operate"
	"eventsv2/internal/mayrun"
)

// CountedInGroup is how far the events of an ordering group are counted: more of them are shown as one more.
const CountedInGroup = 1000

// WaitingGroup is an ordering group in which events wait.
type WaitingGroup struct {
	// Of is the key or the limit of the group, with the number of its events that may run at once: Max is 0 if the
	// limit has been removed.
	Of operate.ConcurrencyLimit
	// Head is the first event of the group: the first that may run, and where there is none, the first that waits.
	Head eventqueue.EventID
	// Admitted is how many events may run, or run. Waiting is how many wait behind them. Above CountedInGroup, both
	// are CountedInGroup + 1.
	Admitted, Waiting int
}

// GroupPlace is where a page of ordering groups ends.
type GroupPlace struct {
	Canvas eventqueue.CanvasID
	Group  string
}

// groupsVisited bounds how many groups one statement looks at.
const groupsVisited = 2000

// waitingGroupsSQL jumps along the index event_groups_order from one group to the next, and ends with the last that
// it has visited if it has visited many in vain.
const waitingGroupsSQL = `
WITH RECURSIVE visited AS (
    (SELECT g.canvas_id, g.group_key, g.stage, 1 AS n FROM event_groups g
     WHERE (g.canvas_id, g.group_key) > ($1, $2)
     ORDER BY g.canvas_id, g.group_key LIMIT 1)
    UNION ALL
    SELECT following.canvas_id, following.group_key, following.stage, v.n + 1
    FROM visited v CROSS JOIN LATERAL (
        SELECT g.canvas_id, g.group_key, g.stage FROM event_groups g
        WHERE (g.canvas_id, g.group_key) > (v.canvas_id, v.group_key)
        ORDER BY g.canvas_id, g.group_key LIMIT 1) AS following
    WHERE v.n < $6 AND ($3::uuid IS NULL OR v.canvas_id = $3)
), waiting AS (
    SELECT v.canvas_id, v.group_key, v.stage, first.event_id AS first
    FROM visited v LEFT JOIN LATERAL (
        SELECT g.event_id FROM event_groups g
        WHERE g.canvas_id = v.canvas_id AND g.group_key = v.group_key AND NOT g.admitted
        ORDER BY g.event_id LIMIT 1) AS first ON true
    WHERE ($3::uuid IS NULL OR v.canvas_id = $3) AND (first.event_id IS NOT NULL OR v.n = $6)
    LIMIT $5
)
SELECT canvas_id, group_key, coalesce(events_v2_max_running(stage, canvas_id, group_key), 0), first IS NOT NULL,
    coalesce((SELECT g.event_id FROM event_groups g
        WHERE g.canvas_id = w.canvas_id AND g.group_key = w.group_key AND g.admitted
        ORDER BY g.event_id LIMIT 1), first, 0),
    ` + countedGroupSQL + `
FROM waiting w
ORDER BY canvas_id, group_key`

// countedGroupSQL counts the events of a group w, each kind up to $4.
const countedGroupSQL = `(SELECT count(*) FROM (SELECT FROM event_groups g
        WHERE g.canvas_id = w.canvas_id AND g.group_key = w.group_key AND g.admitted LIMIT $4) AS few),
    (SELECT count(*) FROM (SELECT FROM event_groups g
        WHERE g.canvas_id = w.canvas_id AND g.group_key = w.group_key AND NOT g.admitted LIMIT $4) AS few)`

// WaitingGroups returns at most limit ordering groups in which events wait, of one canvas or, with nil, of all, in
// the order of the database after a place. next is where to go on, nil after the last: fewer groups than limit with a
// next are what one statement has found of the thousands that it looks at. Its cost is bounded.
func (r *Reader) WaitingGroups(ctx context.Context, canvas *eventqueue.CanvasID, after GroupPlace, limit int) (groups []WaitingGroup, next *GroupPlace, err error) {
	if canvas != nil && after.Canvas != *canvas {
		after = GroupPlace{Canvas: *canvas}
	}
	rows, err := r.pool.Query(ctx, waitingGroupsSQL, [16]byte(after.Canvas), after.Group, (*[16]byte)(canvas), CountedInGroup+1, limit, groupsVisited)
	if err != nil {
		return nil, nil, err
	}
	visited := 0
	var place GroupPlace
	var found bool
	var g WaitingGroup
	var most int
	_, err = pgx.ForEachRow(rows, []any{(*[16]byte)(&place.Canvas), &place.Group, &most, &found, &g.Head, &g.Admitted, &g.Waiting}, func() error {
		visited++
		if found {
			g.Of = operate.LimitOfGroup(place.Canvas, place.Group, most)
			groups = append(groups, g)
		}
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	if visited == limit || visited > len(groups) {
		next = &place
	}
	return groups, next, nil
}

// LimitInUse is a concurrency limit, and what it lets run now. That of every key has no events of its own: each key
// is a group.
type LimitInUse struct {
	operate.ConcurrencyLimit
	// Admitted is how many events may run, or run, and Waiting how many wait for them, as in WaitingGroup.
	Admitted, Waiting int
}

// limitsInUseSQL reads the concurrency limits that a condition selects, with what they let run.
func limitsInUseSQL(which string) string {
	return `
SELECT w.canvas_id, w.group_key, w.max_running,
    ` + countedGroupSQL + `
FROM (SELECT canvas_id, group_key, max_running FROM concurrency_limits
      WHERE ` + which + `
      ORDER BY canvas_id, group_key LIMIT $3) AS w
ORDER BY w.canvas_id, w.group_key`
}

var (
	limitsOfCanvasSQL   = limitsInUseSQL(`($1::uuid IS NULL OR canvas_id = $1) AND $2::text[] IS NULL`)
	limitsOfHandlersSQL = limitsInUseSQL(`(canvas_id, group_key) IN (SELECT * FROM unnest($1::uuid[], $2::text[]))`)
)

// LimitsInUse returns at most limit concurrency limits of a canvas or, with nil, of all, in the order of the database.
func (r *Reader) LimitsInUse(ctx context.Context, canvas *eventqueue.CanvasID, limit int) ([]LimitInUse, error) {
	return r.limitsInUse(ctx, limitsOfCanvasSQL, (*[16]byte)(canvas), nil, limit)
}

// LimitsOfHandlers returns the concurrency limits of some handlers, and of their canvases.
func (r *Reader) LimitsOfHandlers(ctx context.Context, scopes ...eventqueue.Scope) ([]LimitInUse, error) {
	canvases, groups := make([][16]byte, 0, 2*len(scopes)), make([]string, 0, 2*len(scopes))
	for _, scope := range scopes {
		for _, of := range []operate.ConcurrencyLimit{{Canvas: scope.Canvas}, {Canvas: scope.Canvas, Module: scope.Module, Name: scope.Name}} {
			canvases, groups = append(canvases, scope.Canvas), append(groups, of.Group())
		}
	}
	return r.limitsInUse(ctx, limitsOfHandlersSQL, canvases, groups, len(groups))
}

func (r *Reader) limitsInUse(ctx context.Context, sql string, canvases any, groups []string, limit int) ([]LimitInUse, error) {
	rows, err := r.pool.Query(ctx, sql, canvases, groups, limit, CountedInGroup+1)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (l LimitInUse, err error) {
		var canvas eventqueue.CanvasID
		var group string
		var most int
		err = row.Scan((*[16]byte)(&canvas), &group, &most, &l.Admitted, &l.Waiting)
		l.ConcurrencyLimit = operate.LimitOfGroup(canvas, group, most)
		return l, err
	})
}

const ratesOfHandlersSQL = mayrun.RateLimitsSQL + `
WHERE (canvas_id, module, name) IN (SELECT * FROM unnest($1::uuid[], $2::text[], $3::text[]))
ORDER BY canvas_id, module, name`

// RatesOfHandlers returns the rate limits of some handlers, and of their canvases, with their counts as they are now.
func (r *Reader) RatesOfHandlers(ctx context.Context, scopes ...eventqueue.Scope) ([]operate.RateStatus, error) {
	var canvases [][16]byte
	var modules, names []string
	for _, scope := range scopes {
		canvases, modules, names = append(canvases, scope.Canvas, scope.Canvas), append(modules, "", scope.Module), append(names, "", scope.Name)
	}
	rows, err := r.pool.Query(ctx, ratesOfHandlersSQL, canvases, modules, names)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scanRate)
}

func scanRate(row pgx.CollectableRow) (l operate.RateStatus, err error) {
	err = row.Scan((*[16]byte)(&l.Canvas), &l.Module, &l.Name, &l.PerMinute, &l.PerDay, &l.Mode, &l.MinuteUsed, &l.DayUsed, &l.MinuteLeft, &l.DayLeft, &l.Waiting)
	return l, err
}
