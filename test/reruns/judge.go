package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// event is a line of go test -json.
type event struct{ Action, Package, Test, Output string }

// verdict is what failed in a first run: what was tried again, and what may not be.
type verdict struct{ again, final []string }

// drawnBy is in the output of a test that failed for input that it drew: rapid says how to repeat it.
const drawnBy = "-rapid.seed="

// packageRun is one run of a package: the first one has all of its tests, the later ones a failed one each.
type packageRun struct {
	begun  map[string]bool // that have not ended; without subtests, whose ends can get lost
	failed map[string]bool
	drawn  map[string]bool
}

// judge reads the events of the first run of each package, and of those that were tried again.
func judge(r io.Reader) (verdict, error) {
	var judged verdict
	runs := map[string]*packageRun{}
	for lines := json.NewDecoder(r); ; {
		var e event
		if err := lines.Decode(&e); errors.Is(err, io.EOF) {
			return judged, nil
		} else if err != nil {
			return judged, fmt.Errorf("read an event of go test: %w", err)
		}
		if e.Package == "" {
			continue
		}
		run := runs[e.Package]
		if run == nil {
			run = &packageRun{map[string]bool{}, map[string]bool{}, map[string]bool{}}
			runs[e.Package] = run
		}
		if e.Test != "" {
			run.record(e)
			continue
		}
		switch e.Action {
		case "fail":
			again, final := run.judge(e.Package)
			judged.again, judged.final = append(judged.again, again...), append(judged.final, final...)
			delete(runs, e.Package)
		case "pass", "skip":
			delete(runs, e.Package)
		}
	}
}

// record takes an event of a test.
func (p *packageRun) record(e event) {
	switch e.Action {
	case "run":
		if !strings.Contains(e.Test, "/") {
			p.begun[e.Test] = true
		}
	case "output":
		if strings.Contains(e.Output, drawnBy) {
			p.drawn[e.Test] = true
		}
	case "fail":
		p.failed[e.Test] = true
		delete(p.begun, e.Test)
	case "pass", "skip":
		delete(p.begun, e.Test)
	}
}

// judge says of a run that failed what may be tried again, and what failed for good.
func (p *packageRun) judge(name string) (again, final []string) {
	for _, test := range slices.Sorted(maps.Keys(p.failed)) {
		switch {
		case p.drawn[test]:
			final = append(final, fmt.Sprintf("%s.%s: it draws its input, and another run draws another", name, test))
		case !strings.Contains(test, "/"):
			again = append(again, name+"."+test)
		}
	}
	switch {
	case len(p.begun) > 0:
		final = append(final, fmt.Sprintf("%s: its process ended during %s, so that other tests were not run", name,
			strings.Join(slices.Sorted(maps.Keys(p.begun)), ", ")))
	case len(p.failed) == 0:
		final = append(final, name+": it failed outside its tests, as by goroutines that they left behind")
	}
	return again, final
}
