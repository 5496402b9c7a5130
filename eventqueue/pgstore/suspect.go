package pgstore

import (
	"strconv"

	"eventsv2/eventqueue/worker"
)

// What is done to an event e whose lock has expired, by whichever statement removes the lock: a claim, events_v2_advance
// (which spells it out), or an operator's command (I9, I15, I18). It is unknown which of the events that a dead worker
// had in hand has killed it, so at first none of them uses an attempt: they become suspects. The suspects that run
// together in one worker are at most as many as each of them allows. Each further loss halves that number, so that
// what kills its workers runs alone in the end, and what ran beside it completes. Only the loss of a run that was
// alone uses an attempt.
var (
	takeoverSQL = `retries = e.retries + ` + diedAloneSQL + `::int, begin_first = e.begin_first OR e.locked_at IS NOT NULL,
        suspect = CASE WHEN e.locked_at IS NOT NULL AND e.begun AND e.suspect IS NOT NULL THEN greatest(e.suspect / 2, 1)
                       WHEN e.locked_at IS NOT NULL OR e.begin_first THEN coalesce(e.suspect, ` + anyCompanySQL + `) ELSE e.suspect END`

	diedAloneSQL = `(e.locked_at IS NOT NULL AND e.begun AND coalesce(e.suspect, 0) = 1)`
)

var anyCompanySQL = strconv.Itoa(worker.AnyCompany)
