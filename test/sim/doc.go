// Package sim attacks the queue in virtual time, again and again, each time in
// a way that can be repeated exactly. The real Worker, Relay, Rules, Queue and
// cron checker run on a Postgres of the seed's own and a notifier in memory, in a bubble of
// testing/synctest; a seed decides everything else. Package oracle judges what
// happened.
//
// The database's clock is the bubble's: in a schema that the search path names first stands another
// clock_timestamp, and the SQL of the queue runs as it is. A call of the database is a wait for the network,
// which a bubble does not take for rest. So virtual time stands still until its answer has come, and nothing
// else moves.
//
//	go run ./test/withservices -- go run ./test/sim/simulate -seeds 600             # seeds 1 to 600
//	go run ./test/withservices -- go run ./test/sim/simulate -first 17 -seeds 1 -trace
//	go run ./test/withservices -- go run ./test/sim/simulate -seeds 50 -twice       # is the trace the seed's alone?
//
// # How a seed decides everything
//
// Every call of the database and of the notifier, every start and end of a
// handler and every outcome that a worker reports stops at a gate. When nothing
// in the bubble can go on by itself, the controller looks at who stands there,
// in an order that does not depend on the scheduler of Go, throws the dice for one
// of them, lets it through, and waits until nothing moves again. So only one
// thing happens at a time, and the order of things, their faults and their
// times are the seed's. Jitter and back-off are a hash of the seed, the process
// and the time. The trace is the list of what passed the gate, with results; the
// same seed gives the same trace, on any number of processors.
//
// Three things would be left to Go, and are taken from it. Answers to
// the queue of events that a worker found in the database go
// through the gate one by one, and the worker does not wait for them: how many it
// sends together depends on who runs first. (Those for the notifier are collected while one
// outcome waits at the gate.) A relay gets a wake-up only while it
// waits for one, so that it never has to choose between that and its timer. And an
// event that may end without a run is claimed alone.
//
// # Who takes part
//
// Three workers of different versions (handlers known, retries, slots, batch
// sizes, heartbeats, grace periods), two programs with a relay and a cron checker
// each, two emitters, and an operator who pauses, blocks and lifts, emits events at that
// very moment, and cancels, edits and has tried now what waits, and cancels what runs, by id and by filter. The clock of each is wrong by up to 90 seconds. Handlers succeed, fail, panic, snooze, give
// up, emit, complete their events in transactions, run past their timeout deaf to
// their context, or kill their worker. Some canvases, handlers and ordering keys have
// concurrency limits, which the operator changes.
//
// Each seed has some features beside, drawn by themselves, so that all of them meet: unique
// keys; keys that hold until their event starts, or whose emits replace the event that waits;
// typed events, whose completion emits children; inputs of a grid, of which versions have one of two definitions, and whose
// stored outputs are swept all the while; publications in a store outside of the queue, which are made, found and deleted through
// the same gate, and of which handlers clean up the old ones; rate limits, which the operator
// changes and lifts; rows that somebody writes by hand, with odd values and for handlers
// that nobody has; forged notifications; and workers that find events in the database while
// the notifier is away. In a seed with those, the notifier is then silent for longer than
// events may wait, and excuses nothing. In some seeds the database refuses to claim, renew, complete
// or give back some rows for a while, as a trigger or a constraint does; in some of these it does
// nothing worse after the attack, when every delay of another event has no other cause.
//
// # The attack
//
// For some minutes of virtual time, processes are killed, frozen for longer than
// locks last and thawed, cut off from the database, stopped and started again as
// other versions; the database and the notifier go away; the notifier drops, doubles,
// delays and reorders notifications, hands them out again and forgets all, and forgets answers that
// it has taken;
// single calls fail before or after they have happened, or take long; a process does
// not hear the database's answers for minutes, though its statements happen; of
// publishing, pulling and answering one fails, or is accepted and never answered, while
// the others work; the subscription loses its topic, so that what is published is
// accepted and reaches nobody; the notifier accepts everything, delivers nothing and says that it is well; now and then no worker works for minutes. Then all is
// healed, every rule is lifted, and the queue has to come to rest. What was published is cleaned up after that, and nothing
// may be left. In some seeds with
// limits a worker dies with a turn after that, and its handlers stay paused for minutes,
// in which the others have to get on. Result counts what was done.
//
// # What it cannot show
//
// A call of the store happens at one moment, except for transactions that handlers, emitters and the cron checker hold
// open: what they have locked is waited for in vain, since nothing moves meanwhile, and then skipped, or the statement
// fails. What statements do to each other while both run is for the tests of pgstore. Listening, poolers and
// what breaks in a connection are for chaos and faults, and so are the Pub/Sub notifier, which is gRPC, and the one on
// Postgres. Where a statement promises no order, processes get its rows by id.
//
// # Failure handling
//
// A violation is returned with its evidence; the trace of its seed is in the
// Result. A bubble that deadlocks panics, as synctest does.
package sim
