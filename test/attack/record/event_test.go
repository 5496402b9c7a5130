package record_test

import (
	"strings"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/test/attack/record"
	"eventsv2/test/oracle"
)

func at(seconds float64) time.Time {
	return time.Date(2030, 1, 2, 3, 0, 0, 0, time.UTC).Add(time.Duration(seconds * float64(time.Second)))
}

// TestRunInAWebServerIsOverByItsTimeout, since its worker hangs up then; any other one tells when it is over.
func TestRunInAWebServerIsOverByItsTimeout(t *testing.T) {
	t.Parallel()
	for attempt, want := range map[int32]time.Time{-1: at(2).Add(-record.Slack), 1: at(3)} {
		r := record.Run{Attempt: attempt, Start: at(1), End: at(3)}
		if got := r.Over(time.Second); !got.Equal(want) {
			t.Errorf("attempt %d: over at %s, want %s", attempt, got, want)
		}
	}
	short := record.Run{Attempt: -1, Start: at(1), End: at(1.5)}
	if got := short.Over(time.Second); !got.Equal(at(1.5)) {
		t.Errorf("over at %s, before its timeout", got)
	}
}

// made is an event of a lock timeout of 5 s that w1 has claimed at 1 s, whose row then becomes what is said of it.
func made(writer string, seconds float64, becomes record.RowState) *record.Event {
	value := `{"n": 1}`
	free := record.RowState{DueMicros: at(0).UnixMicro()}
	claimed := record.RowState{LockedMicros: at(1).UnixMicro(), Attempts: 1, DueMicros: at(0).UnixMicro()}
	return &record.Event{LockTimeout: 5 * time.Second, Timeout: time.Minute, Operator: func(writer string) bool { return writer == "operator" },
		Runs: []record.Run{{Process: "w1", Attempt: -1, Start: at(1.1), Sum: record.Checksum(value), Ended: true, End: at(1.2), Result: oracle.Failed}},
		Trace: &record.Trace{ID: 7, Entered: &record.Entered{Canvas: eventqueue.CanvasID{1}, Value: value}, Changes: []record.Change{
			{At: at(0), Writer: "e", Op: record.Insert, New: free},
			{At: at(1), Writer: "w1", Op: record.Update, Old: free, New: claimed},
			{At: at(seconds), Writer: writer, Op: record.Update, Old: claimed, New: becomes},
		}}}
}

// TestChangesAreReportedByTheirKind gives each change of a claimed row, and looks for the last record that it becomes.
func TestChangesAreReportedByTheirKind(t *testing.T) {
	t.Parallel()
	due := func(seconds float64, retries int32) record.RowState {
		return record.RowState{Attempts: 1, Retries: retries, DueMicros: at(seconds).UnixMicro()}
	}
	locked := record.RowState{LockedMicros: at(2).UnixMicro(), Attempts: 1, DueMicros: at(0).UnixMicro(), Together: 3}
	for name, test := range map[string]struct {
		event *record.Event
		edit  func(*record.Event)
		want  string
	}{
		"renewed":            {event: made("w1", 2, locked), want: "renewed"},
		"retried":            {event: made("w1", 2, due(3, 1)), want: "label=retryallowed"},
		"snoozed":            {event: made("w1", 2, due(3, 0)), want: "label=snoozed"},
		"released":           {event: made("w1", 2, due(0, 0)), want: "label=released"},
		"put off":            {event: made("w1", 2, due(3, 0)), edit: func(e *record.Event) { e.Rated, e.Runs = true, nil }, want: "label=overlimit"},
		"taken back":         {event: made("w2", 6.1, due(0, 0)), want: "taken back"},
		"not yet taken back": {event: made("w2", 5.9, due(0, 0)), want: "label=released"},
		"changed":            {event: made("operator", 2, due(3, 0)), want: "changed"},
		"made due": {event: made("e", 2, due(3, 0)), edit: func(e *record.Event) {
			e.Changes[2].Old = due(90, 0)
			e.Releases = func(*record.Change) bool { return true }
		}, want: "made due"},
		"completed": {event: made("w1", 2, record.RowState{}), edit: func(e *record.Event) { e.Changes[2].Op = record.Delete }, want: "label=executestocompletion"},
		"failed": {event: made("w1", 2, record.RowState{}), edit: func(e *record.Event) {
			e.Changes[2].Op, e.Ending = record.Delete, &record.Ending{Status: record.Failed}
		}, want: "label=retrytoomany"},
		"failed for good": {event: made("w1", 2, record.RowState{}), edit: func(e *record.Event) {
			e.Changes[2].Op, e.Ending = record.Delete, &record.Ending{Status: record.Failed}
			e.Runs[0].Result = oracle.Permanent
		}, want: "label=failedforgood"},
		"cancelled": {event: made("operator", 2, record.RowState{}), edit: func(e *record.Event) {
			e.Changes[2].Op, e.Ending = record.Delete, &record.Ending{Status: record.Cancelled}
		}, want: "cancelled"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if test.edit != nil {
				test.edit(test.event)
			}
			var h oracle.History
			test.event.Report(&h)
			if last := h.Records[len(h.Records)-1].String(); !strings.Contains(strings.ToLower(last), test.want) {
				t.Errorf("reported as %q, want %q", last, test.want)
			}
		})
	}
}

// TestPromisesOfAnEventAreReported: its earliest time, its ordering key, and what its handler saw.
func TestPromisesOfAnEventAreReported(t *testing.T) {
	t.Parallel()
	e := made("w1", 2, record.RowState{})
	e.NotBefore, e.OrderingKey, e.Runs[0].Sum = at(0.5), "k", 0
	var h oracle.History
	e.Report(&h)
	if due := h.Records[0].Due; !due.Equal(at(0.5)) {
		t.Errorf("due at %s, want %s", due, at(0.5))
	}
	if key := h.Records[0].OrderingKey; key != "k" {
		t.Errorf("of ordering key %q, want that of its emit, \"k\"", key)
	}
	for _, r := range h.Records {
		if r.Kind == oracle.RunStarted && r.Value == e.Entered.Value {
			t.Errorf("the handler is said to have seen %s", r.Value)
		}
	}
}
