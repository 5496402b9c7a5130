package check

import (
	"path/filepath"
	"strings"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/test/attack/chaos/journal"
	"eventsv2/test/oracle"
)

// handled is one run as its handler recorded it.
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

// over is when a run had ended for its worker. Of one in a web server, only that knows, and its worker has hung
// up by the timeout of the handler.
func (r *handled) over(timeout time.Duration) time.Time {
	if given := r.start.Add(timeout - slack); r.attempt < 0 && given.Before(r.end) {
		return given
	}
	return r.end
}

// readRuns reads the journals of a directory. Standstills become faults of the
// process that recorded them.
func readRuns(dir string, f *Faults) (map[eventqueue.EventID][]handled, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.journal"))
	if err != nil {
		return nil, err
	}
	runs := map[eventqueue.EventID][]handled{}
	for _, path := range paths {
		process := strings.TrimSuffix(filepath.Base(path), ".journal")
		err := journal.Read(path, func(l journal.Line) {
			switch l.Kind {
			case journal.Start:
				runs[l.Event] = append(runs[l.Event], handled{process: process, attempt: l.Attempt, start: l.At, sum: l.Sum})
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
func endRun(runs []handled, process string, l journal.Line) {
	for i := range runs {
		r := &runs[i]
		if r.process == process && r.attempt == l.Attempt && !r.ended {
			r.ended, r.end, r.outcome = true, l.At, l.Outcome
			return
		}
	}
}
