// Package task is what the events of the chaos run ask of their handlers: the
// value of each event says what every run of it has to do. It is shared by the
// emitter, which writes the values, by the handlers, which obey them, and by the
// checker, which knows from them how an event had to end.
//
// # Guarantees
//
// What a run does depends on the event's value and on its retries and attempts
// alone, so that any worker does the same.
//
// # Failures
//
// A value that is no task is a mistake of the chaos run itself; Parse reports it.
package task
