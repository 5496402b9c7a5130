// Package oracle judges what happened to a queue: given a history of an attack,
// it names every promise of docs/guarantees.md that was broken. The simulation,
// chaos and faults share it, so that all of them mean the same by "lost".
//
// # Use
//
// Collect a [History]: what was emitted, claimed, run and written, by whom and
// when, which faults there were, and what was left in the tables at the end.
// [Check] returns the violations, and none when the queue kept its promises.
//
//	h := oracle.History{Bounds: oracle.Bounds{LockTimeout: time.Minute}}
//	h.Add(oracle.Record{Kind: oracle.Emitted, Event: 7, At: t0, Due: t0, Value: "{}"})
//	...
//	for _, v := range oracle.Check(&h) {
//		fmt.Println(v)
//	}
//
// # What is judged
//
//   - I1 nothing is lost, nothing ends twice, nothing is left that could run: an event is
//     completed, or FAILED, or CANCELLED by an operator, once. I2 is I1 under faults of the notifier.
//
//   - I3 a run whose end was not written, and after which the event was claimed
//     again, overlaps a fault of its holder.
//
//   - I4 an event is neither claimed nor changed while a claim of it is valid.
//
//   - I5 no write succeeds with a stale claim, and none with a good one is
//     refused; every claim raises the token by one.
//
//   - I6 no claim comes before delay_until.
//
//   - I7 no claim comes between the return of a pause or block and the first
//     request to lift it.
//
//   - I8 handlers see the bytes that the event had when it was claimed: those that were emitted,
//     or those of the last edit before that. So does event_log.
//
//   - I9 no more than max retries + 1 runs fail, and the row counts them right.
//
//   - I10 a (cron, slot) is emitted at most once, never early, and left out only
//     as the policy allows.
//
//   - I11 notifications per event are bounded; see [Bounds].
//
//   - I13 an event that may run is claimed within [Bounds].Progress, counted from
//     the end of the last obstacle. Of an ordering group that is judged of whoever is the
//     first one.
//
//   - I14 repeating a pause, block or lift changes nothing.
//
//   - I15 an event fails for what its own handler did, or for what happened to
//     the workers that held it.
//
//     A row that the database refuses to write makes no other event late: what a refused statement
//     would have written beside it is written within [Bounds].Beside.
//
//   - I18 an event for which no handler was ever called is FAILED only if each of its
//     claimants died, or did not hear from the database for a lock timeout after it had recorded
//     that a run begins; what a lost claim counts is what was recorded as begun.
//
//   - I19 an event whose emit was not answered is known to somebody within 2 s of its commit, or
//     within 8 s of the last further fault of its emitter.
//
//   - order: no two claims of events with the same ordering key are valid at once.
//
//   - limits: no more events of a canvas or a handler have valid claims than its limit of
//     running events allows. I13 counts from the last time that others of it were claimed.
//
//   - unique keys: no two events with the same key, of which the second was emitted while
//     the key held, and no emit is taken for a repeat when it did not. In the modes until_start and replace
//     a second one comes while the first runs or has ended, and a repeat while it waits, until the repeat has
//     committed; what is replaced has the last value, and is due when the emit and its MaxWait say.
//
//   - chains: the completion of an event emits its children once, and nothing else does.
//
//   - grids: an action whose output is stored is not called again, and none twice in one run; inputs are outputs that were
//     stored before; what has an output is stored, unless a fault explains it; a run is completed when all of its
//     actions are, and leaves no outputs behind.
//
//   - publications: a run publishes nothing that an earlier run of its event has published before it began; what a completed
//     event has published is on record. Nothing is deleted by an event of another key, before its time or, if the record is the
//     event's own, before the end of its event; and the time of an intent begins again with each run that goes on with it.
//     At the end nothing is left behind, but for what was sent after the end of its event by a run that could not tell.
//
//   - rates: no window grants more than its limit, and no run begins without a grant, or
//     more than [Bounds].Untold of them under an approximate limit.
//
//   - an event that no program has a handler for stays as it is.
//
// I12 and I16 are about costs and SQL; other tests have them. A check for which
// the history holds no data (no notifications, no crons, a bound of 0) passes.
//
// # Failure handling
//
// Check never guesses: what the history leaves open is judged in favour of the
// queue. So a collector has to record everything that it can know, and what it
// cannot know, such as the outcome of an emit whose connection broke, it has to
// find out at the end. A history that contradicts itself (a claim of an event
// that nobody emitted) is a violation, too.
package oracle
