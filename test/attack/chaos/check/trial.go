package check

import (
	"eventsv2/test/attack/chaos/task"
	"eventsv2/test/attack/record"
)

// trial is the state of the checker within the trace of one event.
type trial struct {
	record.Event
	task    task.Task
	holder  *record.Change // the last claim
	expired bool           // a lock of it has expired
	deleted *record.Change
}
