// Package machine is the documented diagram of an event's life as one table of
// arrows, and the pure walk over it.
//
// The table ([Arrows]) is the only place that says where a label leads. A step reads facts and
// returns a label. [DecideClaim] and [DecideRun] follow the arrows of these labels, from the facts
// of an event and from the end of a run, until they arrive where something outside has to be done:
// run the handler (Process), write the completion (Delete), requeue the notification (Queue) or
// acknowledge it (End). There is no I/O in this package and no clock: all facts come from one
// statement in the database.
//
// A label that has no arrow from its state is a programming error and panics.
//
// docs/state-machine.md is rendered from the table by [Mermaid]; a golden test compares the two.
package machine
