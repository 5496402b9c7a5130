package inspect

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"
)

// ExplainStuck returns the plan of the first statement of Stuck, as executed.
func (r *Reader) ExplainStuck(ctx context.Context, filter Filter, long StuckAfter) (plan string, err error) {
	args := stuckArgs(filter, long, firstStuckPlace(filter), 0, 50)
	err = r.walk(ctx, `EXPLAIN (ANALYZE, TIMING off) `+stuckSQL, args, func(rows pgx.Rows) error {
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		plan = strings.Join(lines, "\n")
		return err
	})
	return plan, err
}

// ReadAtMost has lists read so many events.
func (r *Reader) ReadAtMost(n int) { r.mostRead = n }

// Windows are the statements that search for the events of a list.
var Windows = map[string]string{"oldest": oldestFirst.queued, "oldest of a handler": oldestFirst.handler, "oldest of a canvas": oldestFirst.canvas,
	"newest": newestFirst.queued, "newest of a handler": newestFirst.handler, "newest of a canvas": newestFirst.canvas}

// LogWays are the statements that search for events that have ended.
var LogWays = map[string]string{"oldest": oldestByIDSQL, "oldest failed": oldestOfStatusSQL, "newest": newestByIDSQL, "newest failed": newestByEndSQL,
	"newest failed of a handler": newestOfHandler, "newest failed of a canvas": newestOfCanvas}

// GroupWays are those that count groups of failed events.
var GroupWays = map[string]string{"all": groupsSQL, "handler": groupsOfHandlerSQL, "canvas": groupsOfCanvasSQL}

// GroupAtMost has groups counted of so many events.
func (r *Reader) GroupAtMost(n int) { r.mostGrouped = n }
