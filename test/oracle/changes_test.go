package oracle_test

import (
	"testing"

	"eventsv2/eventqueue/machine"
	"eventsv2/test/oracle"
)

func (s *script) cancelled(second float64) *script {
	s.Add(oracle.Record{Kind: oracle.Cancelled, At: at(second), Actor: "op", Event: 7})
	return s
}

// asks says that cancellations of events that run are recorded.
func (s *script) asks() *script {
	s.Bounds.AsksKnown = true
	return s
}

// asked is a cancellation of an event that runs.
func (s *script) asked(second float64) *script {
	s.asks().Add(oracle.Record{Kind: oracle.CancelAsked, At: at(second), Actor: "op", Event: 7})
	return s
}

// changed is an edit with a value, or a requeue without one.
func (s *script) changed(second, due float64, retries int, value string) *script {
	r := oracle.Record{Kind: oracle.Changed, At: at(second), Actor: "op", Event: 7, Retries: retries, Edited: value != "", Value: value}
	if due != 0 {
		r.Due = at(due)
	}
	s.Add(r)
	return s
}

func (s *script) saw(second float64, attempt int32, value string) *script {
	s.Add(oracle.Record{Kind: oracle.RunStarted, At: at(second), Actor: "w1", Event: 7, Attempt: attempt, Value: value})
	s.Add(oracle.Record{Kind: oracle.RunEnded, At: at(second), Actor: "w1", Event: 7, Attempt: attempt, Result: oracle.OK})
	return s.write(second, "w1", attempt, machine.ExecutesToCompletion, 0)
}

func (s *script) logged(status, value string) *script {
	s.Final.Log = append(s.Final.Log, oracle.LogRow{Event: 7, Status: status, Value: value})
	return s
}

func TestOperatorChangesAreChecked(t *testing.T) {
	t.Parallel()
	const old, edited = `{"a":1}`, `{"a":2}`
	begun := func() *script { return newScript().emit(0, 0).claim(1, "w1", 1, 0).begin(2, "w1", 1, 1) }
	for name, c := range map[string]struct {
		script *script
		want   string
	}{
		"cancelled":                        {newScript().emit(0, 50).cancelled(1).logged("CANCELLED", old), ""},
		"cancelled and gone":               {newScript().emit(0, 50).cancelled(1), "I1"},
		"cancelled and logged as another":  {newScript().emit(0, 50).cancelled(1).logged("FAILED", old), "I1"},
		"cancelled, logged twice":          {newScript().emit(0, 50).cancelled(1).logged("CANCELLED", old).logged("CANCELLED", old), "I1"},
		"cancelled twice":                  {newScript().emit(0, 50).cancelled(1).cancelled(2).logged("CANCELLED", old), "I1"},
		"completed, then cancelled":        {newScript().emit(0, 0).claim(1, "w1", 1, 0).saw(2, 1, old).cancelled(3).logged("CANCELLED", old), "I1"},
		"completed, logged as cancelled":   {newScript().emit(0, 0).claim(1, "w1", 1, 0).saw(2, 1, old).logged("CANCELLED", old), "I1"},
		"claimed after it was cancelled":   {newScript().emit(0, 0).cancelled(1).claim(2, "w1", 1, 0).logged("CANCELLED", old), "I5"},
		"cancelled while it runs":          {begun().cancelled(30).logged("CANCELLED", old), "I4"},
		"cancelled after its lock expired": {begun().cancelled(63).logged("CANCELLED", old), ""},
		"ended as it was cancelled":        {begun().run(3, "w1", 1, oracle.Cut).asked(4).write(5, "w1", 1, machine.Cancelled, 0).logged("CANCELLED", old), ""},
		"ended, logged as another":         {begun().run(3, "w1", 1, oracle.Cut).asked(4).write(5, "w1", 1, machine.Cancelled, 0).logged("FAILED", old), "I1"},
		"ended as no one asked":            {newScript().asks().emit(0, 0).claim(1, "w1", 1, 0).run(2, "w1", 1, oracle.Cut).write(3, "w1", 1, machine.Cancelled, 0).logged("CANCELLED", old), "I1"},
		"cancelled though it had ended":    {begun().run(3, "w1", 1, oracle.OK).asked(4).write(5, "w1", 1, machine.Cancelled, 0).logged("CANCELLED", old), "I1"},
		"completed though it was to end":   {begun().asked(2).saw(3, 1, old).logged("COMPLETED", old), ""},
		"left to the next claim":           {begun().asked(2).write(3, "w1", 1, machine.Released, 0).claim(4, "w2", 2, 0).write(5, "w2", 2, machine.Cancelled, 0).logged("CANCELLED", old), "I1"},
		"taken over as it was to end":      {begun().asked(2).claim(63, "w2", 2, 1).write(64, "w2", 2, machine.Cancelled, 0).logged("CANCELLED", old), ""},
		"run again as it was to end":       {begun().asked(2).claim(63, "w2", 2, 1).run(64, "w2", 2, oracle.Cut).write(65, "w2", 2, machine.Cancelled, 0).logged("CANCELLED", old), "I3"},
		"edited":                           {newScript().emit(0, 0).changed(1, 0, 0, edited).claim(2, "w1", 1, 0).saw(3, 1, edited).logged("COMPLETED", edited), ""},
		"edited, and run with the old one": {newScript().emit(0, 0).changed(1, 0, 0, edited).claim(2, "w1", 1, 0).saw(3, 1, old).logged("COMPLETED", edited), "I8"},
		"edited, and logged as it was":     {newScript().emit(0, 0).changed(1, 0, 0, edited).claim(2, "w1", 1, 0).saw(3, 1, edited).logged("COMPLETED", old), "I8"},
		"run before it is due by an edit":  {newScript().emit(0, 0).changed(1, 9, 0, "").claim(2, "w1", 1, 0).saw(3, 1, old), "I6"},
		"tried now":                        {newScript().emit(0, 90).changed(1, 1, 0, "").claim(2, "w1", 1, 0).saw(3, 1, old), ""},
		"tried now while it runs":          {begun().fault(oracle.Frozen, "w1", 2, 99).changed(30, 30, 1, "").claim(31, "w1", 2, 1).saw(32, 2, old), "I4"},
		"tried now after its lock expired": {begun().fault(oracle.Frozen, "w1", 2, 99).changed(63, 63, 1, "").claim(64, "w1", 2, 1).saw(65, 2, old), ""},
		"its lost run is not counted":      {begun().fault(oracle.Frozen, "w1", 2, 99).changed(63, 63, 0, "").claim(64, "w1", 2, 0).saw(65, 2, old), "I9"},
		"changed after it had ended":       {newScript().emit(0, 0).claim(1, "w1", 1, 0).saw(2, 1, old).changed(3, 3, 0, ""), "I1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			expect(t, &c.script.History, c.want)
		})
	}
}
