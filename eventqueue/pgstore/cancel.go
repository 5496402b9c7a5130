package pgstore

import (
	"fmt"

	"eventsv2/eventqueue"
	"eventsv2/internal/mayrun"
)

// cancelPayload is the beginning of what a worker is told whose runs are to end; the ids of their events follow, with commas between them.
const cancelPayload = "end:"

// cancelWantedSQL is whether an operator has asked for the end of an event e while a worker ran it. IS NOT NULL would ask each field.
const cancelWantedSQL = `e.cancellation IS DISTINCT FROM NULL`

// againSQL is in place of operate.ChangeEnding for an event whose cancellation was wanted before, so that nothing of it was changed.
const againSQL = "ending again"

// endingSQL are CTEs that ask for the end of runs: those of the events in free that have a valid lock, if $2. The first
// reason and actor, $3 and $4, stay. Each worker that holds such events is notified on its own channel, whose name begins with $5. It
// believes nothing of that, and asks with its next heartbeat, which it sends at once; so nothing but speed depends on the notification (I2).
var endingSQL = `ending AS (
    UPDATE events_v2 e SET cancellation = ROW($3::text, $4::text)::event_cancellation FROM clock
    WHERE $2::boolean AND e.id = ANY (ARRAY(SELECT id FROM free)) AND ` + validLockSQL + ` AND NOT ` + cancelWantedSQL + `
    RETURNING e.id
), woken AS (
    SELECT count(events_v2_notify($5::text || number, '` + cancelPayload + `' || ids))
    FROM (
        SELECT ` + claimantSQL("e") + ` AS number, string_agg(e.id::text, ',') AS ids
        FROM clock CROSS JOIN free AS e
        WHERE $2::boolean AND ` + validLockSQL + `
        GROUP BY 1
    ) AS workers
)`

// validLockSQL is whether the lock of an event e is valid.
var validLockSQL = "NOT " + mayrun.UnlockedSQL("e.locked_at", "clock.now - clock.valid_for")

// claimantSQL is the number of the worker that claimed a row last; 0: it is not known.
func claimantSQL(row string) string {
	return fmt.Sprintf("greatest((%[1]s.claim_id - %[1]s.attempts) / %[2]d, 0)", row, eventqueue.WorkerNumber(1).Claim(0))
}
