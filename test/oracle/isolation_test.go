package oracle_test

import (
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/test/oracle"
)

// What a refused statement would have written beside the refused row has to be written soon.
func TestRefusedRowMustStopNoOther(t *testing.T) {
	t.Parallel()
	spoilt := func(second float64, meant oracle.Kind, claimed float64) *script {
		s := newScript().emit(0, 0)
		s.Bounds.Beside = time.Second
		if second < claimed {
			s.Add(oracle.Record{Kind: oracle.Spoilt, At: at(second), Actor: "w", Event: 7, Meant: meant})
		}
		s.claim(claimed, "w", 1, 0)
		if second >= claimed {
			s.Add(oracle.Record{Kind: oracle.Spoilt, At: at(second), Actor: "w", Event: 7, Meant: meant})
		}
		return s
	}
	row := func(s *script, event int, from, to float64) *script {
		s.Faults = append(s.Faults, oracle.Fault{Kind: oracle.RowRefused, Event: eventqueue.EventID(event), From: at(from), To: at(to)})
		return s
	}
	for name, c := range map[string]struct {
		*script
		want string
	}{
		"claimed soon":                      {spoilt(1, oracle.Claimed, 1.5).end(5), ""},
		"claimed late":                      {spoilt(1, oracle.Claimed, 3).end(5), "I15"},
		"claimed late beside a fault":       {spoilt(1, oracle.Claimed, 3).fault(oracle.LostDatabase, "w", 1.5, 2).end(5), ""},
		"claimed late, and another fails":   {spoilt(1, oracle.Claimed, 3).fault(oracle.LostDatabase, "x", 1.5, 2).end(5), "I15"},
		"claimed late, and answers fail":    {spoilt(1, oracle.Claimed, 3).fault(oracle.AnswerFault, "w", 1, 9).end(5), "I15"},
		"claimed late, and was paused":      {spoilt(1, oracle.Claimed, 3).pause(1.5, 1.6, 1, true).lift(2, 2.1, 2, true).end(5), ""},
		"claimed late for another's row":    {row(spoilt(1, oracle.Claimed, 3), 8, 0, 9).end(5), "I15"},
		"claimed late for a row of its own": {row(spoilt(1, oracle.Claimed, 3), 7, 0, 9).end(5), ""},
		"written soon":                      {spoilt(4.5, oracle.Written, 3).end(5), ""},
		"written late":                      {spoilt(4.5, oracle.Written, 3).end(6), "I15"},
		"renewed soon":                      {spoilt(4, oracle.Renewed, 3).kind(oracle.Renewed, 4.5, "w", 1).end(9), ""},
		"not renewed":                       {spoilt(4, oracle.Renewed, 3).end(9), "I15"},
	} {
		t.Run(name, func(t *testing.T) { t.Parallel(); expect(t, &c.History, c.want) })
	}
}

// end has the run of the only claim end well.
func (s *script) end(second float64) *script {
	return s.run(second, "w", 1, oracle.OK).write(second, "w", 1, machine.ExecutesToCompletion, 0)
}
