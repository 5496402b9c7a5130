package check

import (
	"strings"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/operate"
	"eventsv2/test/attack/chaos/task"
	"eventsv2/test/attack/record"
	"eventsv2/test/oracle"
)

// Began is when the histories of these tests begin.
func began() time.Time { return time.Date(2030, 1, 2, 3, 0, 10, 0, time.UTC) }

// script makes the evidence of one event, by default one that was emitted, was
// claimed by w1-1 a second later, ran well and was deleted.
type script struct {
	Evidence
	trace *record.Trace
	row   record.RowState
}

const scriptedEvent eventqueue.EventID = 7

func quick() eventqueue.HandlerKey { return task.Handlers()[0].Key }

func at(seconds float64) time.Time { return began().Add(time.Duration(seconds * float64(time.Second))) }

func newScript(t task.Task) *script {
	t.Tag = "1-1"
	value := string(t.Value())
	s := &script{trace: &record.Trace{ID: scriptedEvent, Entered: &record.Entered{Handler: quick(), OrderingKey: t.OrderingKey, Value: value}}}
	s.Evidence = Evidence{
		traces:           map[eventqueue.EventID]*record.Trace{scriptedEvent: s.trace},
		runs:             map[eventqueue.EventID][]record.Run{},
		Acknowledgements: map[string]Acknowledgement{"1-1": Accepted},
		Cron:             CronEvidence{StartsAt: at(0), Until: at(0)},
		Embedded:         func(process string) bool { return process[:2] != "w4" },
	}
	s.final.at = at(30)
	s.row = record.RowState{DueMicros: at(0).UnixMicro()}
	s.trace.Changes = []record.Change{{At: at(0), Writer: SlotEmitter, Op: record.Insert, New: s.row}}
	return s
}

// TestDefaultsOfOthersHaveToBeInForce, or the run has shown nothing about them.
func TestDefaultsOfOthersHaveToBeInForce(t *testing.T) {
	t.Parallel()
	s := newScript(task.Task{Do: task.Succeed})
	s.well()
	s.MissingDefaults = []string{"TimeZone"}
	if j := Check(s.Evidence); j.count(other) != 1 {
		t.Errorf("violations: %+v", j.violations)
	}
}

// write changes the row.
func (s *script) write(seconds float64, writer string, edit func(*record.RowState)) {
	old := s.row
	edit(&s.row)
	s.trace.Changes = append(s.trace.Changes, record.Change{At: at(seconds), Writer: writer, Op: record.Update, Old: old, New: s.row})
}

func (s *script) claim(seconds float64, writer string) {
	s.write(seconds, writer, func(r *record.RowState) {
		r.LockedMicros, r.Attempts = at(seconds).UnixMicro(), r.Attempts+1
	})
}

func (s *script) renew(seconds float64, writer string) {
	s.write(seconds, writer, func(r *record.RowState) { r.LockedMicros = at(seconds).UnixMicro() })
}

func (s *script) run(start, end float64, process string, result oracle.Result) {
	s.runs[scriptedEvent] = append(s.runs[scriptedEvent], record.Run{Process: process, Attempt: s.row.Attempts, Start: at(start),
		Sum: record.Checksum(s.trace.Entered.Value), Ended: true, End: at(end), Result: result})
}

func (s *script) delete(seconds float64, writer string) {
	s.trace.Changes = append(s.trace.Changes, record.Change{At: at(seconds), Writer: writer, Op: record.Delete, Old: s.row})
	s.trace.Ending = &record.Ending{Status: "COMPLETED", Retries: s.row.Retries, Attempts: s.row.Attempts, Value: s.trace.Entered.Value}
}

func (s *script) retry(seconds float64, writer string) {
	s.write(seconds, writer, func(r *record.RowState) {
		r.LockedMicros, r.Retries, r.DueMicros = 0, r.Retries+1, at(seconds+0.2).UnixMicro()
	})
}

// rule is added and lifted, each of which takes a tenth of a second.
func (s *script) rule(rule operate.RuleType, from, to float64) {
	scope := eventqueue.Scope{Module: task.Module, Name: "quick"}
	s.Rules = []oracle.Record{
		{Kind: oracle.RuleAsked, At: at(from), Rule: rule, Scope: scope, Call: 1},
		{Kind: oracle.RuleAdded, At: at(from + 0.1), Rule: rule, Scope: scope, Call: 1, Changed: true},
		{Kind: oracle.LiftAsked, At: at(to), Rule: rule, Scope: scope, Call: 2},
		{Kind: oracle.RuleLifted, At: at(to + 0.1), Rule: rule, Scope: scope, Call: 2, Changed: true},
	}
}

func (s *script) fault(as oracle.FaultKind, target string, from, to float64) {
	s.faults = append(s.faults, fault{what: "a fault", as: as, target: target, from: at(from), to: at(to)})
}

// runsWell is a claim whose run ends well.
func (s *script) runsWell(seconds float64, writer string) {
	s.claim(seconds, writer)
	s.run(seconds+0.1, seconds+0.2, writer, oracle.OK)
	s.delete(seconds+0.3, writer)
}

// well is an event that ran once and ended well.
func (s *script) well() { s.runsWell(1, "w1-1") }

// takenOver is an event whose first holder was silent until its lock expired.
func (s *script) takenOver() {
	s.claim(1, "w1-1")
	s.run(1.1, 1.2, "w1-1", oracle.OK)
	s.runsWell(1.5+LockTimeout.Seconds(), "w2-1")
}

func TestCheckerAcceptsCorrectHistories(t *testing.T) {
	t.Parallel()
	for name, play := range map[string]func(s *script){
		"an event that ran once": (*script).well,
		"a retry": func(s *script) {
			s.trace.Entered.Value = string(task.Task{Tag: "1-1", Do: task.Fail, Times: 1}.Value())
			s.claim(1, "w1-1")
			s.run(1.1, 1.2, "w1-1", oracle.Failed)
			s.retry(1.3, "w1-1")
			s.runsWell(2, "w2-1")
		},
		"a takeover after a kill": func(s *script) {
			s.takenOver()
			s.fault(oracle.Killed, "w1-1", 1.2, 14)
		},
		"a takeover after an outage of Postgres": func(s *script) {
			s.takenOver()
			s.fault(oracle.LostDatabase, SlotPostgres, 1.2, 2)
		},
		"cancelled and given back by a stop": func(s *script) {
			s.claim(1, "w1-1")
			s.run(1.1, 1.2, "w1-1", oracle.Cut)
			s.retry(1.3, "w1-1")
			s.fault(oracle.Stopped, "w1-1", 1.15, 6)
			s.runsWell(2, "w2-1")
		},
		"a takeover after a stop in an outage": func(s *script) {
			s.claim(1, "w1-1")
			s.run(1.1, 1.2, "w1-1", oracle.OK)
			s.fault(oracle.LostDatabase, SlotPostgres, 1.2, 2)
			s.renew(2.1, "w1-1")
			s.faults = append(s.faults, fault{what: processEnded, as: oracle.Stopped, target: "w1-1", from: at(2.3), to: at(14)})
			s.runsWell(7.5, "w2-1")
		},
		"an emit that was not accepted": func(s *script) {
			s.Acknowledgements["1-2"] = Unknown
			s.Acknowledgements["1-3"] = Undone
			s.well()
		},
		"a run at a target, which knows no attempts": func(s *script) {
			s.claim(1, "w4-1")
			s.run(1.1, 1.2, "w4-1", oracle.OK)
			s.runs[scriptedEvent][0].Attempt = -12
			s.delete(1.3, "w4-1")
		},
		"a far-off event that was brought near": func(s *script) {
			s.row.DueMicros = at(800).UnixMicro()
			s.trace.Changes[0].New = s.row
			s.write(0.5, Shifter, func(r *record.RowState) { r.DueMicros = at(0.9).UnixMicro() })
			s.well()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScript(task.Task{Do: task.Succeed})
			play(s)
			for _, v := range Check(s.Evidence).violations {
				t.Errorf("%s: %s\n%s", v.class, v.what, strings.Join(v.evidence, "\n"))
			}
		})
	}
}

func TestCheckerReportsViolations(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		class class
		play  func(s *script)
	}{
		"accepted and never there": {lost, func(s *script) { s.Acknowledgements["1-2"] = Accepted; s.well() }},
		"deleted without a trace": {lost, func(s *script) {
			s.well()
			s.trace.Ending = nil
		}},
		"completed without a run": {lost, func(s *script) {
			s.claim(1, "w1-1")
			s.delete(1.3, "w1-1")
		}},
		"completed by a run that failed": {lost, func(s *script) {
			s.claim(1, "w1-1")
			s.run(1.1, 1.2, "w1-1", oracle.Failed)
			s.delete(1.3, "w1-1")
		}},
		"failed before its retries were used": {lost, func(s *script) {
			s.claim(1, "w1-1")
			s.run(1.1, 1.2, "w1-1", oracle.Failed)
			s.delete(1.3, "w1-1")
			s.trace.Ending.Status = record.Failed
		}},
		"left at the end":   {stuck, func(*script) {}},
		"locked at the end": {stuck, func(s *script) { s.claim(1, "w1-1") }},
		"claimed before its time": {early, func(s *script) {
			s.row.DueMicros = at(1.5).UnixMicro()
			s.trace.Changes[0].New = s.row
			s.well()
		}},
		"deleted by one that lost its lock": {stale, func(s *script) {
			s.takenOver()
			s.trace.Changes[len(s.trace.Changes)-1].Writer = "w1-1"
			s.fault(oracle.Frozen, "w1-1", 1.2, 1.5+LockTimeout.Seconds())
		}},
		"renewed by one that lost its lock": {stale, func(s *script) {
			s.claim(1, "w1-1")
			s.write(1.1, "w2-1", func(r *record.RowState) { r.LockedMicros = at(1.1).UnixMicro() })
			s.run(1.1, 1.2, "w1-1", oracle.OK)
			s.delete(1.3, "w1-1")
		}},
		"two valid claims": {stale, func(s *script) {
			s.claim(1, "w1-1")
			s.runsWell(2, "w2-1")
			s.fault(oracle.Killed, "w1-1", 1.1, 14)
		}},
		"locked without a claim": {stale, func(s *script) {
			s.write(0.5, "w2-1", func(r *record.RowState) { r.LockedMicros = at(0.5).UnixMicro() })
			s.row.LockedMicros = 0
			s.well()
		}},
		"rescheduled by nobody's right": {stale, func(s *script) {
			s.write(0.5, "c1-1", func(r *record.RowState) { r.DueMicros = at(0.6).UnixMicro() })
			s.well()
		}},
		"a takeover without a fault": {duplicates, (*script).takenOver},
		"a takeover with a fault of another": {duplicates, func(s *script) {
			s.takenOver()
			s.fault(oracle.Killed, "w3-1", 1.2, 14)
		}},
		"a takeover with a fault of Pub/Sub": {duplicates, func(s *script) {
			s.takenOver()
			s.fault(oracle.NotifierFault, "w1-1"+NotifierSuffix, 1.2, 14)
		}},
		"a takeover with an orderly stop": {duplicates, func(s *script) {
			s.takenOver()
			s.fault(oracle.Stopped, "w1-1", 1.2, 14)
		}},
		"given back after a run that ended well": {duplicates, func(s *script) {
			s.claim(1, "w1-1")
			s.run(1.1, 1.2, "w1-1", oracle.OK)
			s.retry(1.3, "w1-1")
			s.runsWell(2, "w1-1")
		}},
		"cancelled and given back without a fault": {duplicates, func(s *script) {
			s.claim(1, "w1-1")
			s.run(1.1, 5.5, "w1-1", oracle.Cut)
			s.retry(5.6, "w1-1")
			s.runsWell(6, "w1-1")
		}},
		"two runs of one claim": {duplicates, func(s *script) {
			s.well()
			s.run(1.25, 1.28, "w1-1", oracle.OK)
		}},
		"a run without a claim": {duplicates, func(s *script) {
			s.well()
			s.run(1.25, 1.28, "w3-1", oracle.OK)
		}},
		"another value": {other, func(s *script) {
			s.well()
			s.runs[scriptedEvent][0].Sum++
		}},
		"rolled back and there": {other, func(s *script) { s.Acknowledgements["1-1"] = Undone; s.well() }},
		"emitted by nobody":     {other, func(s *script) { delete(s.Acknowledgements, "1-1"); s.well() }},
		"an effect that should not be": {other, func(s *script) {
			s.well()
			s.effects = map[eventqueue.EventID][]int32{scriptedEvent: {1}}
		}},
		"a rewritten row":        {other, func(s *script) { s.well(); s.rewritten = []string{"event_log UPDATE"} }},
		"a slot that is missing": {other, func(s *script) { s.well(); s.Cron.Until = at(60) }},
		"claimed while paused": {other, func(s *script) {
			s.well()
			s.rule(operate.PauseRule, 0.4, 5)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScript(task.Task{Do: task.Succeed})
			test.play(s)
			if j := Check(s.Evidence); j.count(test.class) == 0 {
				t.Errorf("nothing of class %s: %+v", test.class, j.violations)
			}
		})
	}
}

func TestCheckerRequiresEffectsExactlyOnce(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		effects  []int32
		children int
		good     bool
	}{
		"once":            {[]int32{1}, 1, true},
		"never":           {nil, 1, false},
		"twice":           {[]int32{1, 1}, 1, false},
		"of another run":  {[]int32{2}, 1, false},
		"without a child": {[]int32{1}, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScript(task.Task{Do: task.Complete})
			s.well()
			s.effects = map[eventqueue.EventID][]int32{scriptedEvent: test.effects}
			if test.children > 0 {
				child := newScript(task.Task{Do: task.Succeed})
				child.well()
				child.trace.ID, child.trace.Entered.Value = 8, string(task.Task{Tag: "1-1/child", Do: task.Succeed}.Value())
				child.trace.Ending.Value = child.trace.Entered.Value
				run := child.runs[scriptedEvent][0]
				run.Sum = record.Checksum(child.trace.Entered.Value)
				s.traces[8], s.runs[8] = child.trace, []record.Run{run}
			}
			j := Check(s.Evidence)
			if (len(j.violations) == 0) != test.good {
				t.Errorf("violations: %+v", j.violations)
			}
		})
	}
}

func TestLongWaitNeedsAReason(t *testing.T) {
	t.Parallel()
	late := maxWait.Seconds() + 100
	for name, test := range map[string]struct {
		play func(s *script)
		good bool
	}{
		"none": {func(*script) {}, false},
		"a rule": {func(s *script) {
			s.rule(operate.BlockRule, 1, late-1)
		}, true},
		"a machine that stood still": {func(s *script) { s.fault(oracle.Frozen, "", 10, 200) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScript(task.Task{Do: task.Succeed})
			s.final.at = at(late + 100)
			s.runsWell(late, "w1-1")
			// So that only the checker of this program has something to report.
			s.fault(oracle.Killed, "w3-1", 0, late)
			test.play(s)
			if j := Check(s.Evidence); (j.count(stuck) == 0) != test.good {
				t.Errorf("violations: %+v", j.violations)
			}
		})
	}
}

// A claim of an event may be given back without a run, and unchanged, once a lock of it has expired.
func TestClaimWithoutARunNeedsAnExpiredLock(t *testing.T) {
	t.Parallel()
	expired := 1 + LockTimeout.Seconds()
	unrun := func(s *script, at float64) {
		s.claim(at, "w2-1")
		s.write(at+0.2, "w2-1", func(r *record.RowState) { r.LockedMicros = 0 })
	}
	lost := func(s *script) {
		s.claim(1, "w1-1")
		s.run(1.1, 1.2, "w1-1", oracle.OK)
		s.fault(oracle.Killed, "w1-1", 1.2, 5)
	}
	for name, test := range map[string]struct {
		play func(s *script)
		good bool
	}{
		"after an expired lock":         {func(s *script) { lost(s); unrun(s, expired+0.5) }, true},
		"twice after an expired lock":   {func(s *script) { lost(s); unrun(s, expired+0.5); unrun(s, expired+1) }, true},
		"of an event of which none has": {func(s *script) { unrun(s, expired+0.5) }, false},
		"after a run": {func(s *script) {
			lost(s)
			unrun(s, expired+0.5)
			s.run(expired+0.55, expired+0.6, "w2-1", oracle.OK)
		}, false},
		"with a retry less": {func(s *script) { lost(s); s.claim(expired+0.5, "w2-1"); s.retry(expired+1, "w2-1") }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScript(task.Task{Do: task.Succeed})
			test.play(s)
			s.runsWell(expired+3, "w2-1")
			if j := Check(s.Evidence); (j.count(duplicates) == 0) != test.good {
				t.Errorf("violations: %+v", j.violations)
			}
		})
	}
}

// cancel is what the operator does to an event.
func (s *script) cancel(seconds float64) {
	s.delete(seconds, SlotOperator)
	s.trace.Ending.Status = record.Cancelled
}

func TestOperatorsChangesAreExcused(t *testing.T) {
	t.Parallel()
	requeue := func(s *script, seconds float64, retries int32) {
		s.write(seconds, SlotOperator, func(r *record.RowState) {
			r.LockedMicros, r.DueMicros, r.Retries = 0, at(seconds).UnixMicro(), retries
		})
	}
	for name, c := range map[string]struct {
		do   func(s *script)
		want string // of the first violation; empty: none
	}{
		"cancelled":              {func(s *script) { s.cancel(1) }, ""},
		"cancelled while it ran": {func(s *script) { s.claim(1, "w1-1"); s.renew(2, "w1-1"); s.cancel(3) }, "I4"},
		"cancelled, and gone":    {func(s *script) { s.cancel(1); s.trace.Ending = nil }, "event_log knows nothing"},
		"delayed, then run": {func(s *script) {
			s.write(1, SlotOperator, func(r *record.RowState) { r.DueMicros = at(2).UnixMicro() })
			s.runsWell(3, "w1-1")
		}, ""},
		"delayed, and run too early": {func(s *script) {
			s.write(1, SlotOperator, func(r *record.RowState) { r.DueMicros = at(9).UnixMicro() })
			s.runsWell(3, "w1-1")
		}, "I6"},
		"tried now while it ran": {func(s *script) { s.claim(1, "w1-1"); s.renew(2, "w1-1"); requeue(s, 3, 1); s.cancel(4) }, "no fault of"},
		"its fence changed": {func(s *script) {
			s.write(1, SlotOperator, func(r *record.RowState) { r.DueMicros, r.Attempts = at(1).UnixMicro(), 5 })
			s.cancel(2)
		}, "changed the fence"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScript(task.Task{Do: task.Succeed})
			c.do(s)
			j := Check(s.Evidence)
			switch {
			case c.want == "" && len(j.violations) > 0:
				t.Errorf("unexpected: %+v", j.violations)
			case c.want != "" && !strings.Contains(whats(j), c.want):
				t.Errorf("found %q, want one with %q", whats(j), c.want)
			}
		})
	}
}

func whats(j *Findings) string {
	var all []string
	for _, v := range j.violations {
		all = append(all, v.what)
	}
	return strings.Join(all, "\n")
}
