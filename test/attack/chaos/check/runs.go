package check

import (
	"path/filepath"
	"strings"

	"eventsv2/eventqueue"
	"eventsv2/test/attack/chaos/journal"
	"eventsv2/test/attack/record"
	"eventsv2/test/oracle"
)

// readRuns reads the journals of a directory. Standstills become faults of the
// process that recorded them.
func readRuns(dir string, f *Faults) (map[eventqueue.EventID][]record.Run, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.journal"))
	if err != nil {
		return nil, err
	}
	runs := map[eventqueue.EventID][]record.Run{}
	for _, path := range paths {
		process := strings.TrimSuffix(filepath.Base(path), ".journal")
		err := journal.Read(path, func(l journal.Line) {
			switch l.Kind {
			case journal.Start:
				runs[l.Event] = append(runs[l.Event], record.Run{Process: process, Attempt: l.Attempt, Start: l.At, Sum: l.Sum})
			case journal.End:
				endRun(runs[l.Event], process, l)
			case journal.Standstill:
				f.Add("standstill of the process", oracle.Frozen, process, l.At, l.Until)
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return runs, nil
}

// endRun records the end of the run of a process and attempt.
func endRun(runs []record.Run, process string, l journal.Line) {
	for i := range runs {
		r := &runs[i]
		if r.Process == process && r.Attempt == l.Attempt && !r.Ended {
			r.Ended, r.End, r.Result = true, l.At, resultOf(l.Outcome)
			return
		}
	}
}

func resultOf(o journal.Outcome) oracle.Result {
	switch o {
	case journal.OK:
		return oracle.OK
	case journal.Permanent:
		return oracle.Permanent
	case journal.Snoozed:
		return oracle.Snoozed
	case journal.Cancelled:
		return oracle.Cut
	default:
		return oracle.Failed
	}
}
