package oracle_test

import (
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/test/oracle"
)

func TestPublicationsAreChecked(t *testing.T) {
	t.Parallel()
	const own, other = 1, 2
	act := func(kind oracle.Kind, event eventqueue.EventID, second float64, attempt int32, name string) oracle.Record {
		return oracle.Record{Kind: kind, Event: event, At: at(second), Attempt: attempt, Actor: "w", Value: name, Publication: "to anna", TTL: 5 * time.Second}
	}
	sent := func(second float64, attempt int32, name string, until float64) oracle.Record {
		r := act(oracle.PublicationSent, own, second, attempt, name)
		if until > 0 {
			r.Due = at(until)
		}
		return r
	}
	recorded := func(second float64, name string) oracle.Record {
		return act(oracle.PublicationRecorded, own, second, 0, name)
	}
	deleted := func(second float64, name string) oracle.Record {
		return act(oracle.PublicationDeleted, other, second, 1, name)
	}
	// Two runs of an event, from 1 s and 10 s to a second later, of which the second ends it, and one of another event.
	run := func(end machine.Label, acts ...oracle.Record) *oracle.History {
		h := history(life{other, oracle.Record{At: at(0)}, 30})
		h.Add(oracle.Record{Kind: oracle.Emitted, Event: own, At: at(0), Due: at(0), Canvas: eventqueue.CanvasID{1}, Handler: key, Value: "{}"})
		result := oracle.OK
		if end != machine.ExecutesToCompletion {
			result = oracle.Permanent
			h.Final.Log = []oracle.LogRow{{Event: own, Status: "FAILED", Value: "{}"}}
		}
		for i, label := range []machine.Label{machine.RetryAllowed, end} {
			r := oracle.Record{Event: own, At: at(float64(1 + 9*i)), Attempt: int32(i + 1), Actor: "w", Retries: i, Value: "{}"}
			for _, r.Kind = range []oracle.Kind{oracle.Claimed, oracle.RunStarted} {
				h.Add(r)
			}
			r.At, r.Kind, r.Result, r.Label = r.At.Add(time.Second), oracle.RunEnded, []oracle.Result{oracle.Failed, result}[i], label
			h.Add(r)
			r.Kind = oracle.Written
			h.Add(r)
		}
		h.Records = append(h.Records, acts...)
		return h
	}
	killed := func(h *oracle.History) *oracle.History {
		h.Faults = append(h.Faults, oracle.Fault{Kind: oracle.Killed, Actor: "w", From: at(20.1), To: at(21)})
		return h
	}
	untold := sent(20, 1, "m1", 0)
	untold.Failed = true
	foreign := deleted(30, "m1")
	foreign.Publication = "to ben"
	done, failed := machine.ExecutesToCompletion, machine.FailedForGood
	for name, c := range map[string]struct {
		h    *oracle.History
		want string
	}{
		"sent, recorded and deleted":        {run(done, sent(10.2, 2, "m1", 15.1), recorded(10.3, "m1"), deleted(30, "m1")), ""},
		"found by the second run":           {run(done, sent(1.2, 1, "m1", 6.1), recorded(10.3, "m1"), deleted(30, "m1")), ""},
		"sent by the second run as well":    {run(done, sent(1.2, 1, "m1", 6.1), sent(10.2, 2, "m2", 15.1), recorded(10.3, "m2"), deleted(30, "m1"), deleted(30, "m2")), "publications"},
		"the first one sent late":           {run(done, sent(10.1, 1, "m1", 15.1), sent(10.2, 2, "m2", 15.1), recorded(10.3, "m2"), deleted(30, "m1"), deleted(30, "m2")), ""},
		"with an old intent":                {run(done, sent(10.2, 2, "m1", 6.1), recorded(10.3, "m1"), deleted(30, "m1")), "publications"},
		"completed and not recorded":        {run(done, sent(10.2, 2, "m1", 15.1), deleted(30, "m1")), "publications"},
		"failed, and not recorded":          {run(failed, sent(10.2, 2, "m1", 15.1), deleted(30, "m1")), ""},
		"failed, and deleted too early":     {run(failed, sent(10.2, 2, "m1", 15.1), deleted(14, "m1")), "publications"},
		"failed, and left behind":           {run(failed, sent(10.2, 2, "m1", 15.1)), "publications"},
		"recorded, and left behind":         {run(done, sent(10.2, 2, "m1", 15.1), recorded(10.3, "m1")), "publications"},
		"deleted too early":                 {run(done, sent(10.2, 2, "m1", 15.1), recorded(10.9, "m1"), deleted(15.5, "m1")), "publications"},
		"deleted before its event ended":    {run(done, sent(1.2, 1, "m1", 6.1), recorded(1.3, "m1"), deleted(9, "m1")), "publications"},
		"which it may be if it is a second": {run(done, sent(1.1, 1, "m1", 6.1), sent(1.2, 1, "m2", 6.1), recorded(1.3, "m1"), recorded(1.4, "m2"), deleted(9, "m2"), deleted(30, "m1")), ""},
		"deleted for another key":           {run(done, sent(10.2, 2, "m1", 15.1), recorded(10.3, "m1"), foreign), "publications"},
		"sent after the end, and recorded":  {run(failed, sent(20, 1, "m1", 0), recorded(20.1, "m1"), deleted(30, "m1")), ""},
		"sent after the end, and forgotten": {run(failed, sent(20, 1, "m1", 0)), "publications"},
		"by a run that was not told":        {run(failed, untold), ""},
		"by a run that died":                {killed(run(failed, sent(20, 1, "m1", 0))), ""},
	} {
		t.Run(name, func(t *testing.T) { t.Parallel(); expect(t, c.h, c.want) })
	}
}
