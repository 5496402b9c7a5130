// Package record is the record of a queue on Postgres that is under attack, by which chaos and faults are judged:
// triggers write every change of every row, with the writer's name, and what they wrote becomes, with what handlers
// and emitters know, the history that package oracle checks.
//
// # Use
//
// Install [AuditSQL] before anything is emitted, and give each process a name of its own as application_name. Read
// reads the trace of each event; make an [Event] of it, and have it [Event.Report] to a history:
//
//	traces, err := record.Read(ctx, pool, ids)
//	...
//	event := record.Event{Trace: traces[id], Runs: runs, LockTimeout: time.Minute, ...}
//	event.Report(&history)
//
// # Failure handling
//
// What was recorded and cannot be read is an error of Read. All else is a pure function.
package record
