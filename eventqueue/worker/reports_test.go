package worker

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"eventsv2/eventqueue"
)

func reportingRun() *execution {
	x := &execution{executor: &executor{part: part{config: &Config{}}}}
	x.run = eventqueue.Run{Event: eventqueue.Event{ID: 17}, Completer: x}
	return x
}

func TestRunRefusesResultsThatCannotBeKept(t *testing.T) {
	t.Parallel()
	longest := strings.Repeat("x", maxResultBytes-2)
	for name, c := range map[string]struct {
		result any
		want   string // of the error; "": it is kept
		kept   string
	}{
		"a struct":           {struct{ N int }{7}, "", `{"N":7}`},
		"JSON":               {json.RawMessage(`[1]`), "", `[1]`},
		"nothing":            {nil, "", `null`},
		"the longest":        {longest, "", `"` + longest + `"`},
		"too long":           {longest + "x", "has 65537 bytes of JSON: at most 65536 are retained", ""},
		"no UTF-8":           {json.RawMessage("\"\xff\""), "the result of event 17 is not UTF-8", ""},
		"no JSON":            {json.RawMessage(`{`), "encode the result of event 17 as JSON", ""},
		"what has no JSON":   {make(chan int), "encode the result of event 17 as JSON", ""},
		"a number of no use": {math.NaN(), "encode the result of event 17 as JSON", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := reportingRun()
			err := x.run.SetResult(c.result)
			if string(x.resultSet()) != c.kept || (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, kept %.100s", err, x.resultSet())
			}
		})
	}
}

func TestRunRefusesProgressThatCannotBeShown(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		fraction float64
		note     string
		want     string
	}{
		{0, "", ""},
		{1, strings.Repeat("é", maxNoteBytes/2), ""},
		{-0.01, "", "is -0.01: it is a fraction of 0 to 1"},
		{1.01, "", "is 1.01: it is a fraction of 0 to 1"},
		{math.NaN(), "", "is NaN: it is a fraction of 0 to 1"},
		{0.5, strings.Repeat("x", maxNoteBytes+1), "has 201 bytes: at most 200 are shown"},
		{0.5, "a\x00b", "is not UTF-8 without zero bytes"},
		{0.5, "\xff", "is not UTF-8 without zero bytes"},
	} {
		x := reportingRun()
		err := x.run.Progress(c.fraction, c.note)
		if (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) || (x.progress.Load() != nil) != (c.want == "") {
			t.Errorf("%v %q: %v, want %q", c.fraction, c.note, err, c.want)
		}
	}
}

func TestResultAfterTheCompletionIsRefused(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(x *execution){"committed": func(x *execution) { x.completed.Store(true) }, "written": func(x *execution) { x.completing.Store(true) }} {
		x := reportingRun()
		end(x)
		if err := x.run.SetResult(1); !errors.Is(err, ErrCompleted) || x.resultSet() != nil {
			t.Errorf("%s: %v, kept %s", name, err, x.resultSet())
		}
	}
}
