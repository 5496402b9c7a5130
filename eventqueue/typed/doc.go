// Package typed is for events that are structs. It is built on package eventqueue and
// changes nothing in it: [Bus.Register] adds ordinary handlers, and emitting writes
// ordinary events. A struct has a handling key, RECORD.CREATE, made of its type and its
// action; [On] adds a handler of a key, which gets the events of the keys below it too.
//
// # The way of a typed event
//
// An emitted struct is one row, whose handler is the dispatch: module RECORD, name CREATE, modifier
// _ (name _ for the key RECORD alone). It checks the value, runs the [Synchronous] handlers,
// parents first, and then, in one transaction with the event's completion
// ([eventqueue.Run.CompleteTx]), emits one event for each other handler: module RECORD, the
// handler's name, and the whole key as the modifier. So either all of them have their event or the
// dispatch is run again. From then on each event is retried, paused and failed by itself.
//
// So when a synchronous handler fails, all of them run again, and the other handlers have no events
// yet. Handlers are those of the worker that runs the dispatch, so while a deploy is under way an
// event may go to the handlers of either version. Events in the table find their handler by its
// name: a handler that is moved along the chain, or made synchronous, still gets its events; the
// events of a renamed handler wait, visibly, for a worker that has the old name.
//
// # Values
//
// Values are read strictly where it matters. A field that the struct does not have is ignored. A
// field that is missing, or of another type, ends the event as FAILED with a [DecodeError] that
// names it. Every exported field is needed, unless it is a pointer or its tag says omitempty or
// omitzero. null is for what can be nil in Go, and names are compared as they are written.
package typed
