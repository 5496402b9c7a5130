package pgstore

import (
	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue"
)

// Line is one in which an event waits.
type Line struct {
	// Of says what the line is of, and how many of it may run at once: Max is 1
	// for a key without a limit, and 0 when the limit is gone.
	Of eventqueue.RunningLimit
	// Turn is the first event that has a turn there; 0 when none has, which the
	// relay mends.
	Turn eventqueue.EventID
}

// An event waits at one stage at a time. However many wait with it, this reads few
// rows.
const lineSQL = `
SELECT p.line, coalesce(events_v2_max_running(p.stage, p.canvas_id, p.line), 0), coalesce((
    SELECT t.event_id FROM event_lines t
    WHERE t.canvas_id = p.canvas_id AND t.line = p.line AND t.turn
    ORDER BY t.event_id LIMIT 1), 0)
FROM event_lines p
WHERE p.event_id = $1 AND NOT p.turn
LIMIT 1`

func scanLine(canvas eventqueue.CanvasID) pgx.RowToFunc[Line] {
	return func(row pgx.CollectableRow) (l Line, err error) {
		var line string
		var most int
		err = row.Scan(&line, &most, &l.Turn)
		l.Of = limitOf(canvas, line, most)
		return l, err
	}
}
