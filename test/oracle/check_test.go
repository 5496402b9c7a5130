package oracle_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/operate"
	"eventsv2/test/oracle"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const lockTimeout = time.Minute

// script builds a history; numbers are seconds from its start.
type script struct{ oracle.History }

var key = eventqueue.HandlerKey{Module: "WORKER", Name: "job", Modifier: "_"}

func at(second float64) time.Time {
	return time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(second * float64(time.Second)))
}

func scope() eventqueue.Scope {
	return eventqueue.Scope{Canvas: eventqueue.CanvasID{1}, Module: key.Module, Name: key.Name}
}

func newScript() *script {
	s := &script{}
	s.Final.At = at(1000)
	s.Bounds = oracle.Bounds{LockTimeout: lockTimeout, LostAfter: 10 * time.Second, Progress: 200 * time.Second}
	return s
}

func (s *script) emit(second, due float64) *script {
	s.Add(oracle.Record{Kind: oracle.Emitted, At: at(second), Event: 7, Canvas: scope().Canvas, Handler: key, Value: `{"a":1}`, Due: at(due)})
	return s
}

func (s *script) claim(second float64, actor string, attempt int32, retries int) *script {
	s.Add(oracle.Record{Kind: oracle.Claimed, At: at(second), Actor: actor, Event: 7, Attempt: attempt, Retries: retries})
	return s
}

func (s *script) run(second float64, actor string, attempt int32, result oracle.Result) *script {
	s.Add(oracle.Record{Kind: oracle.RunStarted, At: at(second), Actor: actor, Event: 7, Attempt: attempt, Value: `{"a":1}`})
	s.Add(oracle.Record{Kind: oracle.RunEnded, At: at(second), Actor: actor, Event: 7, Attempt: attempt, Result: result})
	return s
}

func (s *script) write(second float64, actor string, attempt int32, label machine.Label, due float64) *script {
	r := oracle.Record{Kind: oracle.Written, At: at(second), Actor: actor, Event: 7, Attempt: attempt, Label: label}
	if due != 0 {
		r.Due = at(due)
	}
	s.Add(r)
	return s
}

func (s *script) kind(kind oracle.Kind, second float64, actor string, attempt int32) *script {
	s.Add(oracle.Record{Kind: kind, At: at(second), Actor: actor, Event: 7, Attempt: attempt, Label: machine.ExecutesToCompletion, Value: `{"a":1}`})
	return s
}

// begin records that the run of a suspect begins, and how many run together.
func (s *script) begin(second float64, actor string, attempt int32, together int) *script {
	s.Add(oracle.Record{Kind: oracle.Renewed, At: at(second), Actor: actor, Event: 7, Attempt: attempt, Together: together})
	return s
}

func (s *script) rule(kind oracle.Kind, second float64, call int64, changed bool) *script {
	s.Add(oracle.Record{Kind: kind, At: at(second), Rule: operate.PauseRule, Scope: scope(), Call: call, Changed: changed})
	return s
}

func (s *script) pause(from, to float64, call int64, changed bool) *script {
	return s.rule(oracle.RuleAsked, from, call, false).rule(oracle.RuleAdded, to, call, changed)
}

// narrow adds a rule of a width, for names or the beginnings of names.
func (s *script) narrow(width oracle.Width, name string, from float64) *script {
	of := scope()
	of.Name = name
	s.Add(oracle.Record{Kind: oracle.RuleAsked, At: at(from), Rule: operate.PauseRule, Scope: of, Width: width, Call: 9})
	s.Add(oracle.Record{Kind: oracle.RuleAdded, At: at(from), Rule: operate.PauseRule, Scope: of, Width: width, Call: 9, Changed: true})
	s.Final.Rules = append(s.Final.Rules, oracle.RuleRow{Type: operate.PauseRule, Scope: of, Width: width})
	return s
}

func (s *script) lift(from, to float64, call int64, changed bool) *script {
	return s.rule(oracle.LiftAsked, from, call, false).rule(oracle.RuleLifted, to, call, changed)
}

func (s *script) fault(kind oracle.FaultKind, actor string, from, to float64) *script {
	s.Faults = append(s.Faults, oracle.Fault{Kind: kind, Actor: actor, From: at(from), To: at(to)})
	return s
}

func (s *script) slot(second float64, slot time.Time) *script {
	s.Add(oracle.Record{Kind: oracle.SlotEmitted, At: at(second), Event: 7, Cron: 3, Slot: slot})
	return s
}

func (s *script) cron(policy oracle.Policy, seconds ...float64) *script {
	c := oracle.Cron{ID: 3, Policy: policy}
	for _, second := range seconds {
		c.Slots = append(c.Slots, at(second))
	}
	s.Crons = append(s.Crons, c)
	return s
}

func (s *script) log(status string) *script {
	s.Final.Log = append(s.Final.Log, oracle.LogRow{Event: 7, Status: status, Value: `{"a":1}`})
	return s
}

func (s *script) row(due float64, locked bool) *script {
	s.Final.Rows = append(s.Final.Rows, oracle.Row{Event: 7, Due: at(due), Locked: locked})
	return s
}

func (s *script) paused() *script {
	s.Final.Rules = append(s.Final.Rules, oracle.RuleRow{Type: operate.PauseRule, Scope: scope()})
	return s
}

// complete is what a good life is from the claim on.
func (s *script) complete(second float64, actor string, attempt int32, retries int) *script {
	return s.claim(second, actor, attempt, retries).run(second, actor, attempt, oracle.OK).
		write(second+1, actor, attempt, machine.ExecutesToCompletion, 0)
}

func (s *script) fail(second float64, attempt int32, label machine.Label) *script {
	due := second + 2
	if label == machine.RetryTooMany {
		due = 0
	}
	return s.claim(second, "w1", attempt, int(attempt)-1).run(second, "w1", attempt, oracle.Failed).write(second+1, "w1", attempt, label, due)
}

// beside puts event 7 into a line, and another one that runs from one time to another.
func (s *script) beside(from, to float64) *script {
	const other = 8
	s.Add(oracle.Record{Kind: oracle.Emitted, At: at(0), Event: other, Canvas: scope().Canvas, Handler: key, Value: `{"a":1}`})
	for i := range s.Records {
		if s.Records[i].Kind == oracle.Emitted {
			s.Records[i].OrderingKey = "line"
		}
	}
	s.Add(oracle.Record{Kind: oracle.Claimed, At: at(from), Actor: "w8", Event: other, Attempt: 1})
	s.Add(oracle.Record{Kind: oracle.RunStarted, At: at(from), Actor: "w8", Event: other, Attempt: 1, Value: `{"a":1}`})
	s.Add(oracle.Record{Kind: oracle.RunEnded, At: at(to), Actor: "w8", Event: other, Attempt: 1, Result: oracle.OK})
	s.Add(oracle.Record{Kind: oracle.Written, At: at(to), Actor: "w8", Event: other, Attempt: 1, Label: machine.ExecutesToCompletion})
	return s
}

func TestGoodHistoriesPass(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]*script{
		"nothing":   newScript(),
		"completed": newScript().emit(0, 0).complete(1, "w1", 1, 0),
		"delayed":   newScript().emit(0, 50).complete(50, "w1", 1, 0),
		"retried":   newScript().emit(0, 0).fail(1, 1, machine.RetryAllowed).complete(4, "w2", 2, 1),
		"failed":    newScript().emit(0, 0).fail(1, 1, machine.RetryAllowed).fail(4, 2, machine.RetryAllowed).fail(8, 3, machine.RetryTooMany).log("FAILED"),
		"for good":  newScript().emit(0, 0).claim(1, "w1", 1, 0).run(1, "w1", 1, oracle.Permanent).write(2, "w1", 1, machine.FailedForGood, 0).log("FAILED"),
		"released":  newScript().emit(0, 0).claim(1, "w1", 1, 0).run(1, "w1", 1, oracle.Cut).write(2, "w1", 1, machine.Released, 0).complete(3, "w2", 2, 0),
		"stopped":   newScript().emit(0, 0).claim(1, "w1", 1, 0).run(1, "w1", 1, oracle.Stopping).write(2, "w1", 1, machine.Released, 0).complete(3, "w2", 2, 0),
		"cut off as it began": func() *script { // a row by hand, for its last run
			s := newScript().emit(0, 0)
			s.Records[0].Retries = 2
			return s.claim(1, "w1", 1, 2).begin(1, "w1", 1, 1).fault(oracle.LostDatabase, "w1", 1, 70).
				claim(61, "w2", 2, 3).write(62, "w2", 2, machine.RetryTooMany, 0).log("FAILED")
		}(),
		"taken over":          newScript().emit(0, 0).claim(1, "w1", 1, 0).fault(oracle.Killed, "w1", 5, 30).complete(61, "w2", 2, 0),
		"begun, taken over":   newScript().emit(0, 0).claim(1, "w1", 1, 0).kind(oracle.Renewed, 1, "w1", 1).fault(oracle.Killed, "w1", 5, 30).complete(61, "w2", 2, 0),
		"died beside others":  newScript().emit(0, 0).claim(1, "w1", 1, 0).begin(1, "w1", 1, 2).fault(oracle.Killed, "w1", 5, 30).complete(61, "w2", 2, 0),
		"died alone":          newScript().emit(0, 0).claim(1, "w1", 1, 0).begin(1, "w1", 1, 1).fault(oracle.Killed, "w1", 5, 30).complete(61, "w2", 2, 1),
		"renewed":             newScript().emit(0, 0).claim(1, "w1", 1, 0).kind(oracle.Renewed, 30, "w1", 1).run(1, "w1", 1, oracle.OK).write(80, "w1", 1, machine.ExecutesToCompletion, 0),
		"stale one refused":   newScript().emit(0, 0).claim(1, "w1", 1, 0).fault(oracle.Frozen, "w1", 5, 90).complete(61, "w2", 2, 0).kind(oracle.Refused, 95, "w1", 1),
		"waits, not due":      newScript().emit(0, 5000).row(5000, false),
		"waits, paused":       newScript().pause(0, 1, 1, true).emit(2, 2).row(2, false).paused(),
		"paused and lifted":   newScript().emit(0, 0).pause(0, 1, 1, true).pause(2, 3, 2, false).lift(300, 301, 3, true).lift(302, 303, 4, false).complete(310, "w1", 1, 0),
		"claimed meanwhile":   newScript().emit(0, 0).rule(oracle.RuleAsked, 0, 1, false).complete(1, "w1", 1, 0).rule(oracle.RuleAdded, 2, 1, true).paused(),
		"another prefix":      newScript().emit(0, 0).narrow(oracle.Width{Prefix: true}, scope().Name+"x", 1).complete(5, "w1", 1, 0),
		"another modifier":    newScript().emit(0, 0).narrow(oracle.Width{Modifier: key.Modifier + "x"}, scope().Name, 1).complete(5, "w1", 1, 0),
		"unclear lift":        newScript().emit(0, 0).pause(0, 1, 1, true).rule(oracle.LiftAsked, 5, 2, false).complete(7, "w1", 1, 0),
		"late for a fault":    newScript().emit(0, 0).fault(oracle.LostDatabase, "", 1, 500).complete(510, "w1", 1, 0),
		"cron":                newScript().emit(60, 60).slot(60, at(60)).complete(61, "w1", 1, 0).cron(oracle.All, 60),
		"one after the other": newScript().emit(0, 0).complete(30, "w1", 1, 0).beside(31, 300),
		"before it in line":   newScript().emit(0, 0).complete(900, "w1", 1, 0).beside(1, 899),
		"slot missed": newScript().emit(120, 120).slot(120, at(120)).complete(121, "w1", 1, 0).
			cron(oracle.Latest, 60, 120).fault(oracle.Killed, "c1", 50, 119),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, v := range oracle.Check(&s.History) {
				t.Error(v)
			}
		})
	}
}

func TestBadHistoriesAreReported(t *testing.T) {
	t.Parallel()
	done := func() *script { return newScript().emit(0, 0).complete(1, "w1", 1, 0) }
	for name, c := range map[string]struct {
		want string
		*script
	}{
		"vanished":             {"I1", newScript().emit(0, 0)},
		"not emitted":          {"I1", newScript().claim(1, "w1", 1, 0)},
		"stuck":                {"I1", newScript().emit(900, 900).row(900, false)},
		"stuck, locked":        {"I1", newScript().emit(0, 0).claim(1, "w1", 1, 0).row(0, true)},
		"deleted and there":    {"I1", done().row(0, false)},
		"deleted without run":  {"I1", newScript().emit(0, 0).claim(1, "w1", 1, 0).write(2, "w1", 1, machine.ExecutesToCompletion, 0)},
		"deleted, run failed":  {"I1", newScript().emit(0, 0).claim(1, "w1", 1, 0).run(1, "w1", 1, oracle.Failed).write(2, "w1", 1, machine.ExecutesToCompletion, 0)},
		"failed, not logged":   {"I1", newScript().emit(0, 0).fail(1, 1, machine.RetryAllowed).fail(4, 2, machine.RetryAllowed).fail(8, 3, machine.RetryTooMany)},
		"logged twice":         {"I1", done().log("COMPLETED").log("COMPLETED")},
		"completed as failed":  {"I1", done().log("FAILED")},
		"no fault":             {"I3", newScript().emit(0, 0).claim(1, "w1", 1, 0).complete(62, "w2", 2, 1)},
		"another's fault":      {"I3", newScript().emit(0, 0).claim(1, "w1", 1, 0).fault(oracle.Killed, "w3", 5, 30).complete(62, "w2", 2, 1)},
		"the notifier's fault": {"I3", newScript().emit(0, 0).claim(1, "w1", 1, 0).fault(oracle.NotifierFault, "", 5, 30).complete(62, "w2", 2, 1)},
		"an earlier fault":     {"I3", newScript().fault(oracle.Killed, "w1", 0, 1).emit(2, 2).claim(3, "w1", 1, 0).complete(70, "w2", 2, 1)},
		"two of a line":        {"order", newScript().emit(0, 0).complete(30, "w1", 1, 0).beside(25, 40)},
		"two holders":          {"I4", newScript().emit(0, 0).claim(1, "w1", 1, 0).fault(oracle.Killed, "w1", 5, 30).complete(60, "w2", 2, 1)},
		"renewed, taken":       {"I4", newScript().emit(0, 0).claim(1, "w1", 1, 0).kind(oracle.Renewed, 30, "w1", 1).fault(oracle.Killed, "w1", 35, 80).complete(70, "w2", 2, 1)},
		"stale write": {"I5", newScript().emit(0, 0).claim(1, "w1", 1, 0).fault(oracle.Frozen, "w1", 5, 90).claim(62, "w2", 2, 1).
			run(1, "w1", 1, oracle.OK).write(63, "w1", 1, machine.ExecutesToCompletion, 0)},
		"stale writer":      {"I5", newScript().emit(0, 0).claim(1, "w1", 1, 0).run(1, "w1", 1, oracle.OK).write(3, "w2", 1, machine.ExecutesToCompletion, 0)},
		"written twice":     {"I5", done().write(4, "w1", 1, machine.Released, 0)},
		"renewed after end": {"I5", done().kind(oracle.Renewed, 5, "w1", 1)},
		"refused for wrong": {"I5", newScript().emit(0, 0).claim(1, "w1", 1, 0).kind(oracle.Refused, 2, "w1", 1)},
		"token not raised":  {"I5", newScript().emit(0, 0).claim(1, "w1", 1, 0).write(2, "w1", 1, machine.Released, 0).complete(3, "w1", 1, 0)},
		"claimed when gone": {"I5", done().claim(5, "w1", 2, 0)},
		"early":             {"I6", newScript().emit(0, 50).complete(49.5, "w1", 1, 0)},
		"early retry":       {"I6", newScript().emit(0, 0).fail(1, 1, machine.RetryAllowed).complete(2.5, "w1", 2, 1)},
		"stop is a failure": {"I9", newScript().emit(0, 0).claim(1, "w1", 1, 0).run(1, "w1", 1, oracle.Stopping).write(2, "w1", 1, machine.RetryAllowed, 4).complete(5, "w2", 2, 1)},
		"paused":            {"I7", newScript().emit(0, 0).pause(0, 1, 1, true).complete(2, "w1", 1, 0).paused()},
		"paused by prefix":  {"I7", newScript().emit(0, 0).narrow(oracle.Width{Prefix: true}, scope().Name[:1], 1).complete(5, "w1", 1, 0)},
		"modifier paused":   {"I7", newScript().emit(0, 0).narrow(oracle.Width{Modifier: key.Modifier}, scope().Name, 1).complete(5, "w1", 1, 0)},
		"other rule lifted": {"I7", newScript().emit(0, 0).pause(0, 1, 1, true).lift(0.1, 0.2, 2, false).pause(0.3, 1, 3, true).complete(2, "w1", 1, 0).paused()},
		"other bytes": {"I8", func() *script {
			s := done()
			s.Add(oracle.Record{Kind: oracle.RunStarted, At: at(1), Event: 7, Attempt: 1, Value: `{"a": 1}`})
			return s
		}()},
		"too often": {"I9", newScript().emit(0, 0).fail(1, 1, machine.RetryAllowed).fail(4, 2, machine.RetryAllowed).
			fail(8, 3, machine.RetryAllowed).fail(12, 4, machine.RetryTooMany).log("FAILED")},
		"takeover counted":     {"I9", newScript().emit(0, 0).claim(1, "w1", 1, 0).fault(oracle.Killed, "w1", 5, 30).complete(61, "w2", 2, 1)},
		"failed without a run": {"I18", newScript().emit(0, 0).claim(1, "w1", 1, 0).kind(oracle.Renewed, 1, "w1", 1).fault(oracle.LostDatabase, "w1", 5, 30).claim(61, "w2", 2, 1).write(62, "w2", 2, machine.RetryTooMany, 0).log("FAILED")},
		"takeover not counted": {"I9", newScript().emit(0, 0).claim(1, "w1", 1, 0).begin(1, "w1", 1, 1).fault(oracle.Killed, "w1", 5, 30).complete(61, "w2", 2, 0)},
		"guilt by company":     {"I9", newScript().emit(0, 0).claim(1, "w1", 1, 0).begin(1, "w1", 1, 2).fault(oracle.Killed, "w1", 5, 30).complete(61, "w2", 2, 1)},
		"suspects beside one that is said to be alone": {"I15", func() *script {
			s := newScript().emit(0, 0).claim(1, "w1", 1, 0).begin(1, "w1", 1, 1).fault(oracle.Killed, "w1", 5, 30).complete(61, "w2", 2, 1)
			const other = 8
			s.Add(oracle.Record{Kind: oracle.Emitted, At: at(0), Event: other, Canvas: scope().Canvas, Handler: key, Value: `{"a":1}`})
			s.Add(oracle.Record{Kind: oracle.Claimed, At: at(1), Actor: "w1", Event: other, Attempt: 1})
			s.Add(oracle.Record{Kind: oracle.Renewed, At: at(2), Actor: "w1", Event: other, Attempt: 1, Together: 2})
			return s
		}()},
		"release counted": {"I9", newScript().emit(0, 0).claim(1, "w1", 1, 0).write(2, "w1", 1, machine.Released, 0).complete(3, "w2", 2, 1)},
		"slot twice":      {"I10", newScript().emit(60, 60).complete(61, "w1", 1, 0).slot(60, at(60)).slot(61, at(60))},
		"slot early":      {"I10", newScript().emit(50, 50).complete(51, "w1", 1, 0).slot(50, at(60))},
		"slot forgotten":  {"I10", newScript().cron(oracle.Latest, 60, 120).emit(120, 120).complete(121, "w1", 1, 0).slot(120, at(120))},
		"all means all": {"I10", newScript().cron(oracle.All, 60, 120).emit(120, 120).complete(121, "w1", 1, 0).slot(120, at(120)).
			fault(oracle.Killed, "c1", 50, 119)},
		"no slot":            {"I10", newScript().cron(oracle.Latest, 60).emit(30, 30).complete(31, "w1", 1, 0).slot(30, at(30)).fault(oracle.Killed, "c1", 0, 999)},
		"published for ever": {"I11", func() *script { s := done(); s.repeat(oracle.Published, 20); return s }()},
		"published, paused": {"I11", func() *script {
			s := newScript().emit(0, 0).pause(0, 0.5, 1, true).row(0, false).paused()
			s.repeat(oracle.Published, 3)
			return s
		}()},
		"delivered for ever": {"I11", func() *script { s := done(); s.repeat(oracle.Published, 1); s.repeat(oracle.Delivered, 100); return s }()},
		"too late":           {"I13", newScript().emit(0, 0).complete(300, "w1", 1, 0)},
		"late after a fault": {"I13", newScript().emit(0, 0).fault(oracle.LostDatabase, "", 1, 50).complete(302, "w1", 1, 0)},
		"never":              {"I13", newScript().emit(0, 0).row(0, false)},
		"paused twice":       {"I14", newScript().pause(0, 1, 1, true).pause(2, 3, 2, true).paused()},
		"lifted twice":       {"I14", newScript().pause(0, 1, 1, true).lift(2, 3, 2, true).lift(4, 5, 3, true)},
		"not lifted":         {"I14", newScript().pause(0, 1, 1, true).lift(2, 3, 2, true).paused()},
		"failed innocently":  {"I15", newScript().emit(0, 0).fail(1, 1, machine.RetryTooMany).log("FAILED")},
		"condemned":          {"I15", newScript().emit(0, 0).claim(1, "w1", 1, 0).run(1, "w1", 1, oracle.Failed).write(2, "w1", 1, machine.FailedForGood, 0).log("FAILED")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			violations := oracle.Check(&c.History)
			if !slices.ContainsFunc(violations, func(v oracle.Violation) bool { return v.Invariant == c.want }) {
				t.Errorf("want a violation of %s, got %v", c.want, violations)
			}
		})
	}
}

// TestRunPastItsLockIsNoCompany: its worker has taken it for lost, though its end comes through later.
func TestRunPastItsLockIsNoCompany(t *testing.T) {
	t.Parallel()
	for began, want := range map[float64]string{50: "I15", 56: ""} { // the other one is taken for lost at 54.5
		s := newScript().emit(0, 0).claim(began, "w1", 1, 0).begin(began, "w1", 1, 1).fault(oracle.Killed, "w1", 61, 90).complete(130, "w2", 2, 1)
		const other = 8
		s.Add(oracle.Record{Kind: oracle.Emitted, At: at(0), Event: other, Canvas: scope().Canvas, Handler: key, Value: `{"a":1}`})
		s.Add(oracle.Record{Kind: oracle.Claimed, At: at(1), Actor: "w1", Event: other, Attempt: 1})
		s.Add(oracle.Record{Kind: oracle.Renewed, At: at(2), Actor: "w1", Event: other, Attempt: 1, Together: 2})
		s.Add(oracle.Record{Kind: oracle.RunStarted, At: at(2), Actor: "w1", Event: other, Attempt: 1, Value: `{"a":1}`})
		s.Add(oracle.Record{Kind: oracle.RunEnded, At: at(58), Actor: "w1", Event: other, Attempt: 1, Result: oracle.OK})
		s.Add(oracle.Record{Kind: oracle.Written, At: at(58), Actor: "w1", Event: other, Attempt: 1, Label: machine.ExecutesToCompletion})
		expect(t, &s.History, want)
	}
}

func (s *script) repeat(kind oracle.Kind, times int) {
	for range times {
		s.kind(kind, 1, "", 0)
	}
}

// A violation carries what it follows from.
func TestViolationHasItsEvidence(t *testing.T) {
	t.Parallel()
	s := newScript().emit(0, 0).claim(1, "w1", 1, 0).fault(oracle.Killed, "w3", 5, 30).fault(oracle.NotifierFault, "w2", 6, 30).complete(62, "w2", 2, 0)
	violations := oracle.Check(&s.History)
	if len(violations) != 1 {
		t.Fatalf("want one violation, got %v", violations)
	}
	text := violations[0].String()
	for _, want := range []string{"I3 event 7", "claimed", "by=w1", "notifier, w2", "ExecutesToCompletion"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
	if strings.Contains(text, "w3") {
		t.Errorf("a fault of somebody else's in:\n%s", text)
	}
}

// TestOrderOfAKeyIsChecked (I2): an event that is due goes before those of higher ids, also if it was not ready at first.
func TestOrderOfAKeyIsChecked(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		due      float64 // of the event with the lower id, which runs second
		operated bool    // the other one was to be due later, and an operator had it tried now
		want     string
	}{
		"due before the other":                   {2, false, "I2"},
		"due after the other began":              {12, false, ""},
		"due before one that was tried now":      {2, true, "I2"},
		"due after one that was tried now began": {12, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScript().emit(0, c.due).complete(20, "w1", 1, 0)
			const other = 8
			due := at(9)
			if c.operated {
				due = at(60)
			}
			s.Add(oracle.Record{Kind: oracle.Emitted, At: at(9), Due: due, Event: other, Canvas: scope().Canvas, Handler: key, Value: `{"a":1}`})
			for i := range s.Records {
				if s.Records[i].Kind == oracle.Emitted {
					s.Records[i].OrderingKey = "line"
				}
			}
			if c.operated {
				s.Add(oracle.Record{Kind: oracle.Changed, At: at(9.5), Event: other, Due: at(9.5)})
			}
			s.Add(oracle.Record{Kind: oracle.Claimed, At: at(10), Actor: "w8", Event: other, Attempt: 1})
			s.Add(oracle.Record{Kind: oracle.RunStarted, At: at(10), Actor: "w8", Event: other, Attempt: 1, Value: `{"a":1}`})
			s.Add(oracle.Record{Kind: oracle.RunEnded, At: at(11), Actor: "w8", Event: other, Attempt: 1, Result: oracle.OK})
			s.Add(oracle.Record{Kind: oracle.Written, At: at(11), Actor: "w8", Event: other, Attempt: 1, Label: machine.ExecutesToCompletion})
			expect(t, &s.History, c.want)
		})
	}
}
