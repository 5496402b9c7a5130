package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"eventsv2/test/attack/chaos/growth"
	"eventsv2/test/attack/harness"
	"eventsv2/test/command"
)

func TestAWrongCommandLineSaysSo(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		"-minutes is 0":                 {"-minutes", "0"},
		"-minutes is 1441":              {"-minutes", "1441"},
		"-minutes is 1500":              {"-hours", "25"},
		`invalid value "soon"`:          {"-hours", "soon"},
		"-minutes is NaN":               {"-minutes", "nan"},
		"-rate is -1":                   {"-rate", "-1"},
		"-drain is -1s":                 {"-drain", "-1s"},
		`"more" is no option`:           {"more"},
		"not defined: -nonsense":        {"-nonsense"},
		`invalid value "x" for flag`:    {"-seed", "x"},
		"-report: the folder of absent": {"-report", "absent/report.md"},
	} {
		var stdout, stderr bytes.Buffer
		if status := run(t.Context(), args, &stdout, &stderr); status != command.ExitUsage {
			t.Errorf("%q ended with %d, want %d", args, status, command.ExitUsage)
		}
		if !strings.Contains(stderr.String(), want) || stdout.Len() > 0 {
			t.Errorf("%q reported %q and %q, want %q", args, stdout.String(), stderr.String(), want)
		}
	}
}

func TestHelpIsNoMistake(t *testing.T) {
	t.Parallel()
	var stdout, stderr bytes.Buffer
	if status := run(t.Context(), []string{"-help"}, &stdout, &stderr); status != command.ExitOK || !strings.Contains(stderr.String(), "-drain") {
		t.Errorf("status %d, %q", status, stderr.String())
	}
}

// resultWith is the result of a run that found violations of some classes.
func resultWith(found ...class) *result {
	r := &result{findings: &findings{}, loaded: 90 * time.Second, faults: newFaults(), emitters: &emitters{forms: map[string]int{"Emit": 2}}}
	r.findings.figures.events = 12
	r.faults.count(killWorker)
	r.faults.count(killEmulator)
	r.faults.count(freezeWorker)
	for _, c := range found {
		r.findings.violations = append(r.findings.violations, violation{class: c, what: "an event of class " + string(c)})
	}
	return r
}

func TestTheVerdict(t *testing.T) {
	t.Parallel()
	for want, r := range map[string]*result{
		"chaos: minutes=1.5 events=12 kills=2 lost=0 stuck=0 early=0 stale_writes=0 unexplained_duplicates=0": resultWith(),
		"chaos: minutes=1.5 events=12 kills=2 lost=2 stuck=1 early=1 stale_writes=1 unexplained_duplicates=1": resultWith(
			lost, lost, stuck, early, stale, duplicates),
		"chaos: minutes=1.5 events=12 kills=2 lost=0 stuck=0 early=0 stale_writes=0 unexplained_duplicates=0 other=1": resultWith(other),
	} {
		if got := r.Line(); got != want {
			t.Errorf("the verdict is\n%s, want\n%s", got, want)
		}
	}
}

func TestSteadyRunSaysWhatGrows(t *testing.T) {
	t.Parallel()
	r := resultWith()
	r.opts.steady, r.growth = true, &growth.Report{}
	if got := r.Line(); !strings.HasSuffix(got, " growth=undecided") || !r.Good() {
		t.Errorf("good: %t, the verdict is\n%s", r.Good(), got)
	}
	if page := r.Page(); !strings.Contains(page, " -steady") || !strings.Contains(page, "| measure | start |") {
		t.Errorf("the report is\n%s", page)
	}
}

func TestTheReportHasWhatRepeatsTheRun(t *testing.T) {
	t.Parallel()
	r := resultWith(stuck)
	r.where = "a machine"
	r.opts = options{Options: harness.Options{Length: 1.5, Rate: 240}, seed: 7}
	text := r.Page()
	for _, want := range []string{
		"go run ./chaos -minutes 1.5 -seed 7 -rate 240", r.Line(), "On a machine.", "| " + string(killEmulator) + " | 1 |",
		"| Emit | 2 |", "From emit to end", "stuck: an event of class stuck",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
}
