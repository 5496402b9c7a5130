package check

import (
	"testing"

	"eventsv2/eventqueue"
	"eventsv2/test/attack/chaos/task"
	"eventsv2/test/attack/record"
	"eventsv2/test/oracle"
)

// link adds the event that the completion of event 7 emits for a handler, in the second after it.
func (s *script) link(id eventqueue.EventID, handler eventqueue.HandlerKey) *script {
	other := newScript(task.Task{Do: task.Succeed})
	other.trace.ID, other.trace.Entered.Value = id, s.trace.Entered.Value
	other.trace.Entered.Handler, other.trace.Entered.Parent = handler, scriptedEvent
	other.row.DueMicros = at(2).UnixMicro()
	other.trace.Changes[0].At, other.trace.Changes[0].New = at(2), other.row
	other.runsWell(2.1, "w2-1")
	s.traces[id], s.runs[id] = other.trace, other.runs[scriptedEvent]
	return other
}

func TestChainsAreChecked(t *testing.T) {
	t.Parallel()
	both := func(s *script) {
		for i, key := range task.Links() {
			s.link(eventqueue.EventID(8+i), key)
		}
	}
	for name, test := range map[string]struct {
		play func(s *script)
		want class // "": nothing
	}{
		"one event for each handler": {func(s *script) { s.well(); both(s) }, ""},
		"none for one of them":       {func(s *script) { s.well(); s.link(8, task.Links()[0]) }, chains},
		"two for one of them":        {func(s *script) { s.well(); both(s); s.link(12, task.Links()[0]) }, chains},
		"one for a handler that is none": {func(s *script) {
			s.well()
			both(s)
			s.link(12, eventqueue.HandlerKey{Module: task.ChainModule, Name: "audit", Modifier: "CHAIN.CREATE"})
		}, chains},
		"of an event that nobody emitted": {func(s *script) { s.well(); both(s); s.link(12, task.Links()[0]).trace.Entered.Parent = 99 }, chains},
		"of an event that failed": {func(s *script) {
			s.trace.Entered.Value = string(task.Task{Tag: "1-1", Do: task.Permanent}.Value())
			s.claim(1, "w1-1")
			s.run(1.1, 1.2, "w1-1", oracle.Permanent)
			s.delete(1.3, "w1-1")
			s.trace.Ending.Status = record.Failed
			both(s)
		}, chains},
		"completed, and the answer was lost": {func(s *script) {
			s.claim(1, "w1-1")
			s.run(1.1, 1.2, "w1-1", oracle.Failed)
			s.delete(1.2, "w1-1")
			s.fault(oracle.LostDatabase, "w1-1", 1.1, 1.3)
			both(s)
		}, ""},
		"one that never ran": {func(s *script) {
			s.well()
			both(s)
			s.traces[8].Changes, s.traces[8].Ending = s.traces[8].Changes[:1], nil
			delete(s.runs, 8)
		}, stuck},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScript(task.Task{Do: task.Succeed})
			s.trace.Entered.Handler = task.Dispatch()
			test.play(s)
			j := Check(s.Evidence)
			if test.want == "" && len(j.violations) > 0 || test.want != "" && j.count(test.want) == 0 {
				t.Errorf("violations: %+v, want of class %q", j.violations, test.want)
			}
		})
	}
}
