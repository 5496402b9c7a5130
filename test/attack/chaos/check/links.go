package check

import "eventsv2/test/attack/chaos/task"

// link reports whether the completion of a typed event emitted this one, for one handler.
func (s *story) link() bool {
	return s.entered.handler.Module == task.ChainModule && s.entered.parent != 0
}

// dispatched reports whether a claim completed a typed event, as the events of its handlers prove:
// they are emitted in the transaction that completes it.
func (c *checker) dispatched(t *trial, attempt int32) bool {
	last := t.changes[len(t.changes)-1]
	return t.entered.handler == task.Dispatch() && c.parents[t.id] && last.op == opDelete && last.old.attempts == attempt
}
