package check

import (
	"strings"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/ratelimit"
	"eventsv2/test/attack/chaos/task"
	"eventsv2/test/attack/record"
	"eventsv2/test/oracle"
)

// join adds the event of another script as event 8, with a tag of its own.
func (s *script) join(other *script) {
	const id = 8
	runs := other.runs[scriptedEvent]
	value := strings.Replace(other.trace.Entered.Value, `"1-1"`, `"1-2"`, 1)
	other.trace.ID, other.trace.Entered.Value = id, value
	if other.trace.Ending != nil {
		other.trace.Ending.Value = value
	}
	for i := range runs {
		runs[i].Sum = record.Checksum(value)
	}
	s.traces[id], s.runs[id], s.Acknowledgements["1-2"] = other.trace, runs, Accepted
}

// from is an event that is emitted, claimed, run and deleted within a second of its own.
func from(job task.Task, second float64, process string) *script {
	s := newScript(job)
	s.row.DueMicros = at(second).UnixMicro()
	s.trace.Changes[0].At, s.trace.Changes[0].New = at(second), s.row
	s.claim(second+0.1, process)
	s.run(second+0.2, second+0.7, process, oracle.OK)
	s.delete(second+0.8, process)
	return s
}

func TestFeaturesAreChecked(t *testing.T) {
	t.Parallel()
	ordered := task.Task{Do: task.Succeed, OrderingKey: "a"}
	uniqueTask := task.Task{Do: task.Succeed, UniqueKey: "a"}
	held := task.Task{Do: task.Succeed, UniqueKey: "a", UniqueSeconds: 3}
	plain := task.Task{Do: task.Succeed}
	limit := func(s *script) {
		s.Limits = []oracle.LimitChange{{At: at(-1), Limit: operate.ConcurrencyLimit{Module: task.Module, Name: "quick", Max: 1}}}
	}
	for name, test := range map[string]struct {
		job  task.Task
		play func(s *script)
		want class // "": nothing
	}{
		"one after the other":    {ordered, func(s *script) { s.join(from(ordered, 3, "w2-1")) }, ""},
		"two of one key at once": {ordered, func(s *script) { s.join(from(ordered, 1.1, "w2-1")) }, order},
		"two whose rows lost their key, at once": {ordered, func(s *script) {
			s.join(from(ordered, 1.1, "w2-1"))
			s.traces[scriptedEvent].Entered.OrderingKey, s.traces[8].Entered.OrderingKey = "", ""
		}, order},
		"one whose row lost its key": {ordered, func(s *script) { s.trace.Entered.OrderingKey = "" }, other},
		"two without a key at once":  {plain, func(s *script) { s.join(from(plain, 1.1, "w2-1")) }, ""},
		"under the limit":            {plain, func(s *script) { limit(s); s.join(from(plain, 3, "w2-1")) }, ""},
		"above the limit":            {plain, func(s *script) { limit(s); s.join(from(plain, 1.1, "w2-1")) }, limits},
		"a unique key that was free": {uniqueTask, func(s *script) { s.join(from(uniqueTask, 3, "w2-1")) }, ""},
		"a unique key twice":         {uniqueTask, func(s *script) { s.join(from(uniqueTask, 1, "w2-1")) }, unique},
		"a unique key too early":     {held, func(s *script) { s.join(from(held, 3, "w2-1")) }, unique},
		"a repeat": {uniqueTask, func(s *script) {
			s.Repeats, s.Acknowledgements["1-2"] = map[string]Repeat{"1-2": {scriptedEvent, "a", at(0.5)}}, Repeated
		}, ""},
		"a repeat of a key that was free": {uniqueTask, func(s *script) {
			s.Repeats, s.Acknowledgements["1-2"] = map[string]Repeat{"1-2": {scriptedEvent, "a", at(20)}}, Repeated
		}, unique},
		"a repeat beside a fault of Postgres": {uniqueTask, func(s *script) {
			s.Repeats, s.Acknowledgements["1-2"] = map[string]Repeat{"1-2": {scriptedEvent, "a", at(20)}}, Repeated
			s.fault(oracle.LostDatabase, SlotPostgres, 1, 19)
		}, ""},
		"a repeat of nothing": {uniqueTask, func(s *script) {
			s.Repeats, s.Acknowledgements["1-2"] = map[string]Repeat{"1-2": {99, "a", at(0.5)}}, Repeated
		}, unique},
		"a repeat that entered": {uniqueTask, func(s *script) {
			s.join(from(uniqueTask, 3, "w2-1"))
			s.Acknowledgements["1-2"] = Repeated
		}, unique},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScript(test.job)
			s.well()
			test.play(s)
			j := Check(s.Evidence)
			if test.want == "" && len(j.violations) > 0 || test.want != "" && j.count(test.want) == 0 {
				t.Errorf("violations: %+v, want of class %q", j.violations, test.want)
			}
		})
	}
}

func TestOrderIsChecked(t *testing.T) {
	t.Parallel()
	job := task.Task{Do: task.Succeed, OrderingKey: "a"}
	call := func(began, returned float64, index int, delayed bool) Emission {
		return Emission{Began: at(began), Returned: at(returned), Index: index, Delayed: delayed}
	}
	// The first event runs a second after the beginning, and the other one before it.
	for name, test := range map[string]struct {
		first, other Emission
		good         bool
	}{
		"emitted after it":          {call(0, 0.1, 0, false), call(0.2, 0.3, 0, false), false},
		"emitted beside it":         {call(0, 0.1, 0, false), call(0.05, 0.3, 0, false), true},
		"emitted before it":         {call(0.2, 0.3, 0, false), call(0, 0.1, 0, false), true},
		"after it in one call":      {call(0, 0.1, 0, false), call(0, 0.1, 1, false), false},
		"before it in one call":     {call(0, 0.1, 1, false), call(0, 0.1, 0, false), true},
		"emitted after a delayed":   {call(0, 0.1, 0, true), call(0.2, 0.3, 0, false), true},
		"delayed, and too early":    {call(0, 0.1, 0, false), call(0.2, 0.3, 0, true), false},
		"in a call before its call": {call(0.2, 0.3, 0, false), call(0, 0.1, 3, false), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScript(job)
			s.well()
			s.join(from(job, 0.05, "w2-1"))
			s.Ordered = map[string]Emission{"1-1": test.first, "1-2": test.other}
			if j := Check(s.Evidence); (len(j.violations) == 0) != test.good || (j.count(order) == 0) != test.good {
				t.Errorf("violations: %+v", j.violations)
			}
		})
	}
}

// An expired lock may go with the place in a group: that needs a fault of its holder, as a takeover does.
func TestTakenOverLockNeedsAFault(t *testing.T) {
	t.Parallel()
	for _, killed := range []bool{true, false} {
		s := newScript(task.Task{Do: task.Succeed})
		s.claim(1, "w1-1")
		s.run(1.1, 1.2, "w1-1", oracle.OK)
		s.renew(2, "w1-1")
		expired := 2 + LockTimeout.Seconds()
		s.write(expired+0.5, "w2-1", func(r *record.RowState) { r.LockedMicros = 0 })
		s.claim(expired+1, "w2-1")
		s.run(expired+1.1, expired+1.2, "w2-1", oracle.OK)
		s.delete(expired+1.3, "w2-1")
		if killed {
			s.fault(oracle.Killed, "w1-1", 2.5, 14)
		}
		j := Check(s.Evidence)
		if (len(j.violations) == 0) != killed || j.figures.takenBack != 1 {
			t.Errorf("killed %t: %d taken back, violations: %+v", killed, j.figures.takenBack, j.violations)
		}
	}
}

func TestHistoryHoldsWholeGroups(t *testing.T) {
	t.Parallel()
	c := &checker{Evidence: Evidence{traces: map[eventqueue.EventID]*record.Trace{}}}
	var ids []eventqueue.EventID
	for id := range eventqueue.EventID(3 * oracleChunk) {
		job := task.Task{Tag: "t"}
		if id%2 == 0 {
			job.OrderingKey = string(rune('a' + id%7))
		}
		c.traces[id] = &record.Trace{ID: id, Entered: &record.Entered{Handler: quick(), Value: string(job.Value())}}
		ids = append(ids, id)
	}
	in, seen := map[string]int{}, 0
	for n, chunk := range c.histories(ids) {
		if len(chunk) > oracleChunk {
			t.Errorf("a history of %d events", len(chunk))
		}
		for _, id := range chunk {
			seen++
			if bond := c.bond(c.traces[id]); bond != "" {
				if before, known := in[bond]; known && before != n {
					t.Fatalf("%q is in the histories %d and %d", bond, before, n)
				}
				in[bond] = n
			}
		}
	}
	if seen != len(ids) || len(in) != 7 {
		t.Errorf("%d of %d events, %d groups", seen, len(ids), len(in))
	}
}

// What is under a rate limit needs a grant, by the database's clock, and no minute has too many.
func TestRatesAreChecked(t *testing.T) {
	t.Parallel()
	scope := eventqueue.Scope{Module: task.Module, Name: "quick"}
	for name, test := range map[string]struct {
		mode   ratelimit.Mode
		grants []int // in the first minute
		writer string
		good   bool
	}{
		"granted":                       {ratelimit.Exact, []int{1}, "w1-1", true},
		"not granted":                   {ratelimit.Exact, nil, "w1-1", false},
		"granted to another":            {ratelimit.Exact, []int{1}, "w2-1", false},
		"a minute with too many":        {ratelimit.Exact, []int{1, 2}, "w1-1", false},
		"approximate, not yet reported": {ratelimit.Approximate, nil, "w1-1", true},
		"approximate, reported several": {ratelimit.Approximate, []int{1, 2}, "w1-1", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScript(task.Task{Do: task.Succeed})
			s.well()
			s.Rates = []oracle.RateChange{{At: at(-1), Limit: operate.RateLimit{Scope: scope, PerMinute: 2, Mode: test.mode}}}
			for _, runs := range test.grants {
				s.grants = append(s.grants, grant{at: at(1.05), window: at(1.05).Truncate(time.Minute), writer: test.writer, scope: scope, runs: runs})
			}
			if j := Check(s.Evidence); (len(j.violations) == 0) != test.good || (j.count(rates) == 0) != test.good {
				t.Errorf("violations: %+v", j.violations)
			}
		})
	}
}

// A claim that a rate limit puts off has no run, and what it has put off is made due at the end.
func TestDeferredClaimIsAccepted(t *testing.T) {
	t.Parallel()
	for _, limited := range []bool{true, false} {
		s := newScript(task.Task{Do: task.Succeed})
		if limited {
			scope := eventqueue.Scope{Module: task.Module, Name: "quick"}
			s.Rates = []oracle.RateChange{{At: at(-1), Limit: operate.RateLimit{Scope: scope, PerMinute: 2, Mode: ratelimit.Exact}},
				{At: at(3), Limit: operate.RateLimit{Scope: scope}}}
		}
		s.claim(1, "w1-1")
		s.write(1.1, "w1-1", func(r *record.RowState) { r.LockedMicros, r.DueMicros = 0, at(90).UnixMicro() })
		s.write(4, SlotEmitter, func(r *record.RowState) { r.DueMicros = at(4).UnixMicro() })
		s.claim(5, "w2-1")
		s.run(5.1, 5.2, "w2-1", oracle.OK)
		s.delete(5.3, "w2-1")
		if j := Check(s.Evidence); (len(j.violations) == 0) != limited {
			t.Errorf("limited %t: violations: %+v", limited, j.violations)
		}
	}
}
