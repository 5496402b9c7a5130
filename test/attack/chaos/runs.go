package main

import (
	"path/filepath"
	"strings"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/test/attack/chaos/journal"
	"eventsv2/test/oracle"
)

// handled is one run as its handler noted it.
type handled struct {
	process string
	// attempt is a negative number of the run where the handler could not know it.
	attempt int32
	start   time.Time
	sum     uint32
	// ended is false when the end is not on record.
	ended   bool
	end     time.Time
	outcome journal.Outcome
}

// readRuns reads the journals of a directory. Standstills become faults of the
// process that noted them.
func readRuns(dir string, f *faults) (map[eventqueue.EventID][]handled, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.journal"))
	if err != nil {
		return nil, err
	}
	runs := map[eventqueue.EventID][]handled{}
	for _, path := range paths {
		process := strings.TrimSuffix(filepath.Base(path), ".journal")
		reader := journal.Reader{
			Start: func(s journal.Start) {
				runs[s.Event] = append(runs[s.Event], handled{process: process, attempt: s.Attempt, start: s.At, sum: s.Sum})
			},
			End: func(e journal.End) { endRun(runs[e.Event], process, e) },
			Still: func(s journal.Still) {
				f.add("standstill of the process", oracle.Frozen, process, s.From, s.To)
			},
		}
		if err := reader.Read(path); err != nil {
			return nil, err
		}
	}
	return runs, nil
}

// endRun notes the end of the run of a process and attempt.
func endRun(runs []handled, process string, e journal.End) {
	for i := range runs {
		r := &runs[i]
		if r.process == process && r.attempt == e.Attempt && !r.ended {
			r.ended, r.end, r.outcome = true, e.At, e.Outcome
			return
		}
	}
}
