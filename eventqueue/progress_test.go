package eventqueue_test

import (
	"context"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"eventsv2/eventqueue"
)

// reporter is a Completer that takes what a run says.
type reporter struct {
	results  []string
	progress []eventqueue.Progress
}

func (*reporter) CompleteTx(context.Context, func(context.Context, *eventqueue.Tx) error) error {
	return nil
}
func (*reporter) CompleteIn(context.Context, eventqueue.DB) error { return nil }

func (r *reporter) SetResult(result json.RawMessage) error {
	r.results = append(r.results, string(result))
	return nil
}

func (r *reporter) ShowProgress(progress eventqueue.Progress) {
	r.progress = append(r.progress, progress)
}

func TestRunRefusesResultsThatCannotBeKept(t *testing.T) {
	t.Parallel()
	longest := strings.Repeat("x", eventqueue.MaxResultBytes-2)
	for name, c := range map[string]struct {
		result any
		want   string // of the error; "": it is kept
		kept   string
	}{
		"a struct":           {struct{ N int }{7}, "", `{"N":7}`},
		"JSON":               {json.RawMessage(`[1]`), "", `[1]`},
		"nothing":            {nil, "", `null`},
		"the longest":        {longest, "", `"` + longest + `"`},
		"too long":           {longest + "x", "is 65537 bytes of JSON: at most 65536 are kept", ""},
		"no JSON":            {json.RawMessage(`{`), "encode the result of event 17 as JSON", ""},
		"what has no JSON":   {make(chan int), "encode the result of event 17 as JSON", ""},
		"a number of no use": {math.NaN(), "encode the result of event 17 as JSON", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &reporter{}
			run := eventqueue.Run{Event: eventqueue.Event{ID: 17}, Completer: r}
			err := run.SetResult(c.result)
			if c.want == "" && (err != nil || len(r.results) != 1 || r.results[0] != c.kept) {
				t.Errorf("%v, kept %.100q", err, r.results)
			}
			if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || len(r.results) != 0) {
				t.Errorf("%v, kept %.100q", err, r.results)
			}
		})
	}
}

func TestRunRefusesProgressThatCannotBeShown(t *testing.T) {
	t.Parallel()
	r := &reporter{}
	run := eventqueue.Run{Event: eventqueue.Event{ID: 17}, Completer: r}
	for _, c := range []struct {
		fraction float64
		note     string
		want     string
	}{
		{0, "", ""},
		{1, strings.Repeat("é", eventqueue.MaxNoteBytes/2), ""},
		{-0.01, "", "is -0.01: it is a fraction of 0 to 1"},
		{1.01, "", "is 1.01: it is a fraction of 0 to 1"},
		{math.NaN(), "", "is NaN: it is a fraction of 0 to 1"},
		{0.5, strings.Repeat("x", eventqueue.MaxNoteBytes+1), "has 201 bytes: at most 200 are shown"},
		{0.5, "a\x00b", "is not UTF-8 without zero bytes"},
		{0.5, "\xff", "is not UTF-8 without zero bytes"},
	} {
		if err := run.Progress(c.fraction, c.note); c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%v %q: %v, want %q", c.fraction, c.note, err, c.want)
		}
	}
	if len(r.progress) != 2 {
		t.Errorf("shown: %v", r.progress)
	}
}

func TestRunOfATestCannotReport(t *testing.T) {
	t.Parallel()
	var run eventqueue.Run
	for _, err := range []error{run.SetResult(1), run.Progress(0.5, "")} {
		if err == nil || !strings.Contains(err.Error(), "begin the run with Begin of package eventstest") {
			t.Errorf("%v", err)
		}
	}
}
