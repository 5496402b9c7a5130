// Package typed is for events that are Go structs. It uses only the public parts of package
// eventqueue: [Bus.Register] adds ordinary handlers, and emitting writes ordinary events. A struct
// has a handling key such as RECORD.CREATE, made of its type and its action. [On] adds a handler of
// a key, which also gets the events of the keys below it.
//
// # The way of a typed event
//
// An emitted struct is one row, whose handler is the dispatch: module RECORD, name CREATE, modifier
// _ (name _ for the key RECORD alone). The dispatch checks the value and runs the [Synchronous]
// handlers, parents first. Then, in one transaction with the event's completion
// ([eventqueue.Run.CompleteTx]), it emits one event for each other handler: module RECORD, the
// handler's name, and the whole key as the modifier. So either all of them have their event, or the
// dispatch runs again. From then on each of these events is retried, paused and failed on its own.
//
// If a synchronous handler fails, all synchronous handlers run again, and the other handlers have no
// events yet. The dispatch uses the handlers of the worker that runs it, so during a deploy an event
// may go to the handlers of either version. Events in the table find their handler by its name: a
// handler that is moved along the chain, or made synchronous, still gets its events. If a handler is
// renamed, its old events wait, visibly, for a worker that has the old name.
//
// # Values
//
// A field that is missing, or null, has its zero value, as with encoding/json, so that a newer program
// runs the events of an older one. If a field has another type, the event ends as FAILED, with a
// [DecodeError] that names the field. So does a missing one for a [Strict] handler, unless the field is
// a pointer or its tag has omitempty or omitzero. Fields that the struct does not have are ignored. Names
// are case-sensitive.
package typed
