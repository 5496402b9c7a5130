package inspect

import (
	"testing"
	"time"

	"eventsv2/eventqueue/machine"
)

// A delay that is known to come from something, a lock that ran out, and a notification that nobody publishes, each with
// each other cause: what a worker would meet first is first, and the cause is said in full.
func TestEachCauseIsExplainedBesideOthersOfItsKind(t *testing.T) {
	t.Parallel()
	for _, label := range []machine.Label{machine.RetryAllowed, machine.Snoozed, machine.OverLimit} {
		for _, other := range causes {
			if other.label == machine.DelayNotYet { // the same place in the machine
				continue
			}
			f := free()
			other.set(f, f.shown.Queued)
			delay := otherCauses[label]
			delay.set(f, f.shown.Queued)
			reasons := f.reasons()
			if len(reasons) != 2 {
				t.Errorf("%s and %s have the reasons %v", label, other.label, reasons)
				continue
			}
			before, after := 0, 1 // of the delay and the other
			if other.label == machine.IsLocked || other.label == machine.Blocked || other.label == machine.Paused {
				before, after = 1, 0
			}
			reasons[before].has(t, label, delay.want...)
			reasons[after].has(t, other.label, other.want...)
		}
	}
	for name, set := range map[string]func(f *facts, e *QueuedEvent){
		"an expired lock":                        func(_ *facts, e *QueuedEvent) { e.LockedAt = new(start.Add(-2 * time.Minute)) },
		"a pending notification without a relay": func(f *facts, e *QueuedEvent) { e.NotifiedAt, f.relayRuns = nil, false },
	} {
		for _, other := range causes {
			if other.label == machine.IsLocked { // a lock is valid or not, and what it says names the relay
				continue
			}
			f := free()
			set(f, f.shown.Queued)
			other.set(f, f.shown.Queued)
			reasons := f.reasons()
			if len(reasons) != 1 {
				t.Errorf("%s and %s have the reasons %v", name, other.label, reasons)
				continue
			}
			reasons[0].has(t, other.label, other.want...)
		}
	}
}
