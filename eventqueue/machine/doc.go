// Package machine is the documented diagram of an event's life as one table of
// arrows, and the pure walk over it.
//
// The table ([Arrows]) is the only place that says where a label leads. A step
// looks at facts and answers with a label; [Walk] follows the arrow of that
// label until it arrives where something outside has to be done: run the
// handler (Process), write the end (Delete), give the notification back (Queue)
// or drop it (End). There is no I/O in this package and no clock: all facts come
// from one statement in the database.
//
// A label that has no arrow from its state is a programming error and panics.
//
// docs/state-machine.md is rendered from the table by [Mermaid]; a golden test
// holds the two together.
package machine
