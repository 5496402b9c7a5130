package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"eventsv2/test/command"
)

func TestAWrongCommandLineSaysSo(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		"-minutes is 0":                 {"-minutes", "0"},
		"-minutes is 1441":              {"-minutes", "1441"},
		"-minutes is NaN":               {"-minutes", "nan"},
		"-rate is -1":                   {"-rate", "-1"},
		"-settle is -1s":                {"-settle", "-1s"},
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
			t.Errorf("%q said %q and %q, want %q", args, stdout.String(), stderr.String(), want)
		}
	}
}

func TestHelpIsNoMistake(t *testing.T) {
	t.Parallel()
	var stdout, stderr bytes.Buffer
	if status := run(t.Context(), []string{"-help"}, &stdout, &stderr); status != command.ExitOK || !strings.Contains(stderr.String(), "-settle") {
		t.Errorf("status %d, %q", status, stderr.String())
	}
}

// resultWith is the result of a run that found violations of some classes.
func resultWith(found ...class) *result {
	r := &result{judgement: &judgement{}, loaded: 90 * time.Second, faults: newFaults(), emitters: &emitters{forms: map[string]int{"Emit": 2}}}
	r.judgement.figures.events = 12
	r.faults.count(killWorker)
	r.faults.count(killEmulator)
	r.faults.count(freezeWorker)
	for _, c := range found {
		r.judgement.violations = append(r.judgement.violations, violation{class: c, what: "an event of class " + string(c)})
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
		if got := r.line(); got != want {
			t.Errorf("the verdict is\n%s, want\n%s", got, want)
		}
	}
}

func TestTheReportHasWhatRepeatsTheRun(t *testing.T) {
	t.Parallel()
	r := resultWith(stuck)
	r.host = host{cores: 2, memory: "4 GiB", postgres: "17.1", fsync: "on"}
	text := r.report(options{minutes: 1.5, seed: 7, rate: 240})
	for _, want := range []string{
		"go run ./chaos -minutes 1.5 -seed 7 -rate 240", r.line(), "2 cores, 4 GiB", "Postgres 17.1 with fsync on", "| " + string(killEmulator) + " | 1 |",
		"| Emit | 2 |", "From emit to end", "stuck: an event of class stuck",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
}

func TestTheVersionOfTheEmulatorIsInItsJar(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Mkdir(dir+"/lib", 0o755); err != nil {
		t.Fatal(err)
	}
	origin := "gcloud's " + dir + "/bin/cloud-pubsub-emulator"
	if got := emulatorVersion(origin); got != "of an unknown version" {
		t.Errorf("without a jar it is %q", got)
	}
	if err := os.WriteFile(dir+"/lib/cloud-pubsub-emulator-1.2.3-all.jar", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := emulatorVersion(origin); got != "1.2.3" {
		t.Errorf("it is %q, want 1.2.3", got)
	}
}
