package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"eventsv2/test/attack/chaos/check"
	"eventsv2/test/attack/chaos/growth"
	"eventsv2/test/attack/harness"
	"eventsv2/test/command"
)

func TestWrongCommandLineIsRefused(t *testing.T) {
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

// ranWith is the result of a run in which some faults were carried out, and evidence of nothing else.
func ranWith(e check.Evidence) *result {
	r := &result{findings: check.Check(e), loaded: 90 * time.Second, attacks: newTally(), emitted: []harness.Row{{What: "Emit", Number: 2}}}
	r.attacks.count(killWorker)
	r.attacks.count(killEmulator)
	r.attacks.count(freezeWorker)
	return r
}

func TestVerdictHasLengthKillsAndClasses(t *testing.T) {
	t.Parallel()
	const want = "chaos: minutes=1.5 events=0 kills=2 lost=0 stuck=0 early=0 stale_writes=0 unexplained_duplicates=0"
	if r := ranWith(check.Evidence{}); r.Line() != want || !r.Good() {
		t.Errorf("good: %t, the verdict is\n%s, want\n%s", r.Good(), r.Line(), want)
	}
	if r := ranWith(check.Evidence{MissingDefaults: []string{"TimeZone"}}); r.Line() != want+" other=1" || r.Good() {
		t.Errorf("good: %t, the verdict is\n%s, want\n%s other=1", r.Good(), r.Line(), want)
	}
}

func TestSteadyRunSaysWhatGrows(t *testing.T) {
	t.Parallel()
	r := ranWith(check.Evidence{})
	r.opts.steady, r.growth = true, &growth.Report{}
	if got := r.Line(); !strings.HasSuffix(got, " growth=undecided") || !r.Good() {
		t.Errorf("good: %t, the verdict is\n%s", r.Good(), got)
	}
	if page := r.Page(); !strings.Contains(page, " -steady") || !strings.Contains(page, "| measure | start |") {
		t.Errorf("the report is\n%s", page)
	}
}

func TestReportSaysHowToRepeatTheRun(t *testing.T) {
	t.Parallel()
	r := ranWith(check.Evidence{MissingDefaults: []string{"TimeZone"}})
	r.where = "a machine"
	r.opts = options{minutes: 1.5, rate: 240, seed: 7}
	text := r.Page()
	for _, want := range []string{
		"go run ./chaos -minutes 1.5 -seed 7 -rate 240", r.Line(), "On a machine.", "| " + string(killEmulator) + " | 1 |",
		"| Emit | 2 |", "From emit to end", "other: other programs' defaults",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
}
