package check

import (
	"eventsv2/test/attack/chaos/task"
	"eventsv2/test/attack/record"
)

// link reports whether the completion of a typed event emitted this one, for one handler.
func link(s *record.Trace) bool {
	return s.Entered.Handler.Module == task.ChainModule && s.Entered.Parent != 0
}
