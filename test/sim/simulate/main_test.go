package main

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"strings"
	"testing"

	"eventsv2/test/oracle"
	"eventsv2/test/sim"
)

func TestOptions(t *testing.T) {
	t.Parallel()
	o, err := parse([]string{"-first", "17", "-seeds", "3", "-twice"}, io.Discard)
	if want := (options{first: 17, seeds: 3, twice: true}); err != nil || o != want {
		t.Errorf("got %+v and %v, want %+v", o, err, want)
	}
	for args, want := range map[string]string{
		"-seeds 0":                             "at least 1",
		"-seeds -1":                            "invalid value",
		"-seeds many":                          "invalid value",
		"-sedes 5":                             "not defined",
		"5":                                    "no option",
		"-first 18446744073709551615":          "largest seed",
		"-first 1 -seeds 99999999999999999999": "out of range",
	} {
		if _, err := parse(strings.Fields(args), io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want an error with %q", args, err, want)
		}
	}
	var usage bytes.Buffer
	if _, err := parse([]string{"-help"}, &usage); !errors.Is(err, flag.ErrHelp) || !strings.Contains(usage.String(), "-seeds") {
		t.Errorf("-help: got %v and %q", err, usage.String())
	}
}

// A violation is shown with its seed, its evidence, the end of the trace and the
// command that repeats it, and counts.
func TestViolationIsShown(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	r := newRun(&out, options{first: 5, seeds: 1})
	r.add(sim.Result{
		Seed: 5, Events: 2, Trace: []string{"one", "two"}, Faults: map[string]int{"process killed": 3},
		Violations: []oracle.Violation{{Invariant: "I5", Event: 9, Problem: "a stale write", Evidence: []string{"who did it"}}},
	}, "")
	for _, want := range []string{"seed 5: I5 event 9: a stale write", "who did it", "two\n", "-first 5 -seeds 1 -trace"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in:\n%s", want, out.String())
		}
	}
	if r.violations != 1 || r.events != 2 || r.faults["process killed"] != 3 {
		t.Errorf("got %d violations, %d events, %v", r.violations, r.events, r.faults)
	}
}
