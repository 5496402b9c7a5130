package main

import (
	"fmt"
	"time"

	"eventsv2/eventqueue"
)

// The states of event_log.
const (
	statusCompleted = "COMPLETED"
	statusFailed    = "FAILED"
)

// sighting is one event as the target saw it.
type sighting struct {
	runs    int  // requests
	done    int  // how often it did the event
	differs bool // two requests had different bodies
	digest  digest
}

// facts has everything that the verdict is based on.
type facts struct {
	emitted map[eventqueue.EventID]digest
	ended   map[eventqueue.EventID]ending
	seen    map[eventqueue.EventID]sighting
	waiting int // rows that are left in the queue
	took    time.Duration
}

// verdict is the result of the demo.
type verdict struct {
	emitted, completed, failed int
	lost, duplicates           int
	differing                  int // events with another value than was emitted
	waiting                    int
	took                       time.Duration
}

// judge compares the emitted events with their ends. It is a pure function.
//
// An event is lost if it has not ended (I1), and also if it is COMPLETED although the
// target never did it.
func judge(f facts) verdict {
	v := verdict{emitted: len(f.emitted), waiting: f.waiting, took: f.took}
	for id, value := range f.emitted {
		end, ended := f.ended[id]
		saw, seen := f.seen[id]
		switch {
		case ended && end.status == statusCompleted && saw.done > 0:
			v.completed++
		case ended && end.status == statusFailed:
			v.failed++
		default:
			v.lost++
		}
		v.duplicates += max(saw.done-1, 0)
		if seen && (saw.differs || saw.digest != value) || ended && end.digest != value {
			v.differing++
		}
	}
	return v
}

// ok reports whether the queue kept its guarantees.
func (v verdict) ok() bool { return v.lost == 0 && v.differing == 0 && v.waiting == 0 }

// String is the last line of the demo.
func (v verdict) String() string {
	return fmt.Sprintf("demo: emitted=%d completed=%d failed=%d lost=%d duplicates=%d seconds=%.1f",
		v.emitted, v.completed, v.failed, v.lost, v.duplicates, v.took.Seconds())
}
