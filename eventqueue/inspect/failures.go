package inspect

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/operate"
)

// MostGrouped is of how many failed events groups are counted: of those that failed last.
const MostGrouped = 100_000

// FailureGroup is the failed events of a handler on a canvas whose errors differ in numbers only.
type FailureGroup struct {
	eventqueue.Scope
	// ErrorGroup is the name of the group, as operate.ErrorGroup has it: a LogFilter, or an operate.EventFilter, with the scope and
	// this name selects its events, and no other.
	ErrorGroup string
	Count      int64
	// Newest is the one that failed last, at NewestAt.
	Newest   eventqueue.EventID
	NewestAt time.Time
}

// FailureGroups are groups of failed events, the largest first.
type FailureGroups struct {
	Groups []FailureGroup
	// More is how many smaller groups there are, and Events how many events all of them have.
	More   int
	Events int64
	// Bounded reports that the events of the groups are some of MostGrouped that failed last, and that there are others.
	Bounded bool
	AsOf    time.Time
}

// Groups reads as Log does: $9 is how many events.
func groupPageSQL(where string) string {
	return `
WITH page AS MATERIALIZED (` + loggedColumns + where + ` LIMIT $9)
SELECT read.n, clock_timestamp(), coalesce(id, 0), coalesce(canvas_id, $11), coalesce(module, ''), coalesce(name, ''), coalesce(left(last_error, $10), ''),
    coalesce(` + endedSQL + `, clock_timestamp())
FROM (SELECT count(*) AS n FROM page) AS read LEFT JOIN page ON ` + loggedSQL
}

var (
	groupsSQL          = groupPageSQL(unsuccessfulSQL + ` AND ` + endedWithinSQL + ` ORDER BY ` + newestSQL)
	groupsOfHandlerSQL = groupPageSQL(ofHandlerSQL + unsuccessfulSQL + ` AND ` + endedWithinSQL + ` ORDER BY ` + newestSQL)
	groupsOfCanvasSQL  = groupPageSQL(`canvas_id = $1 AND status <> 'COMPLETED'`)
)

// FailureGroups groups the failed events that a filter selects, by handler and error, and returns at most limit groups. Its cost is
// bounded by MostGrouped, and does not depend on how many events have completed.
func (r *Reader) FailureGroups(ctx context.Context, f LogFilter, limit int) (found FailureGroups, err error) {
	f.Status = LogFailed
	switch {
	case f.Canvas != nil && f.Module != "" && f.Name != "":
		return r.group(ctx, groupsOfHandlerSQL, f, limit)
	case f.Canvas != nil:
		// The entries of a canvas are by its handlers: one with more of them is searched by their ends.
		if found, err = r.group(ctx, groupsOfCanvasSQL, f, limit); err != nil || !found.Bounded {
			return found, err
		}
	}
	newest, err := r.group(ctx, groupsSQL, f, limit)
	if err != nil || newest.Events >= found.Events {
		return newest, err
	}
	return found, nil // the newest failures are those of other canvases
}

func (r *Reader) group(ctx context.Context, sql string, f LogFilter, limit int) (found FailureGroups, err error) {
	type key struct {
		eventqueue.Scope
		group string
	}
	groups := map[key]*FailureGroup{}
	var read int
	var e FailureGroup
	var failure string
	add := func() {
		if e.Newest == 0 {
			return
		}
		k := key{e.Scope, operate.ErrorGroup(failure)}
		if f.ErrorGroup != "" && k.group != f.ErrorGroup {
			return
		}
		of := groups[k]
		if of == nil {
			of = &FailureGroup{Scope: e.Scope, ErrorGroup: k.group}
			groups[k] = of
		}
		if found.Events++; cmp.Or(e.NewestAt.Compare(of.NewestAt), cmp.Compare(e.Newest, of.Newest)) > 0 {
			of.Newest, of.NewestAt = e.Newest, e.NewestAt
		}
		of.Count++
	}
	args := f.conditions(r.mostGrouped, operate.ErrorGroupReads, [16]byte{})
	err = r.walkWith(ctx, inOrderSQL, sql, args, func(rows pgx.Rows) error {
		_, err := pgx.ForEachRow(rows, []any{&read, &found.AsOf, &e.Newest, (*[16]byte)(&e.Canvas), &e.Module, &e.Name, &failure, &e.NewestAt}, func() error {
			add()
			return nil
		})
		return err
	})
	if err != nil {
		return FailureGroups{}, err
	}
	for _, of := range groups {
		found.Groups = append(found.Groups, *of)
	}
	slices.SortFunc(found.Groups, func(a, b FailureGroup) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), b.NewestAt.Compare(a.NewestAt), cmp.Compare(b.Newest, a.Newest))
	})
	found.More = max(0, len(found.Groups)-limit)
	found.Groups = found.Groups[:len(found.Groups)-found.More]
	found.Bounded = read == r.mostGrouped
	return found, nil
}
