package oracle_test

import (
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/operate"
	"eventsv2/test/oracle"
)

// TestConcurrencyLimitsAreChecked: as many at once as a limit allows, of those that were emitted under it;
// a lock that has expired and was taken back does not count.
func TestConcurrencyLimitsAreChecked(t *testing.T) {
	t.Parallel()
	start := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	canvas := eventqueue.CanvasID{1}
	for _, c := range []struct {
		name          string
		set           int // when
		most          int
		second, taken int // when the second is claimed, and the first taken back (0: not)
		want          string
	}{
		{"one after the other", 0, 1, 62, 61, ""},
		{"two at once of one", 0, 1, 5, 0, "limits"},
		{"two at once of two", 0, 2, 5, 0, ""},
		{"emitted before the limit", 3, 1, 5, 0, ""},
		{"taken back too early", 0, 2, 40, 30, "I4"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := oracle.History{Bounds: oracle.Bounds{LockTimeout: time.Minute}}
			h.Limits = []oracle.LimitChange{{At: at(c.set), Limit: operate.ConcurrencyLimit{Canvas: canvas, Max: c.most}}}
			for id := eventqueue.EventID(1); id <= 2; id++ {
				h.Add(oracle.Record{Kind: oracle.Emitted, Event: id, At: at(1), Due: at(1), Canvas: canvas, Handler: eventqueue.HandlerKey{Module: "WORKER", Name: "a", Modifier: "_"}})
			}
			h.Add(oracle.Record{Kind: oracle.Claimed, Event: 1, At: at(1), Attempt: 1, Actor: "w1"})
			if c.taken > 0 {
				h.Add(oracle.Record{Kind: oracle.Renewed, Event: 1, At: at(1), Attempt: 1, Actor: "w1", Together: 1}) // its run has begun, alone
				h.Add(oracle.Record{Kind: oracle.TakenBack, Event: 1, At: at(c.taken), Retries: 1})
			}
			h.Add(oracle.Record{Kind: oracle.Claimed, Event: 2, At: at(c.second), Attempt: 1, Actor: "w1"})
			h.Add(oracle.Record{Kind: oracle.RunStarted, Event: 2, At: at(c.second), Attempt: 1, Actor: "w1"})
			h.Add(oracle.Record{Kind: oracle.RunEnded, Event: 2, At: at(c.second + 1), Attempt: 1, Result: oracle.OK, Actor: "w1"})
			h.Add(oracle.Record{Kind: oracle.Written, Event: 2, At: at(c.second + 1), Attempt: 1, Label: machine.ExecutesToCompletion, Actor: "w1"})
			h.Final = oracle.Final{At: at(70), Rows: []oracle.Row{{Event: 1, Due: at(1000)}}}
			found := map[string]bool{}
			for _, v := range oracle.Check(&h) {
				found[v.Invariant] = true
			}
			if c.want == "" && len(found) > 0 || c.want != "" && !found[c.want] {
				t.Errorf("found %v, want %q", found, c.want)
			}
		})
	}
}
