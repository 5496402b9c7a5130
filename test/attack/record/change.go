package record

import (
	"fmt"
	"time"
)

// Claims reports whether a change is a claim.
func (ch *Change) Claims() bool {
	return ch.Op == Update && ch.New.Attempts == ch.Old.Attempts+1 && ch.New.LockedMicros != 0
}

// Renews reports whether a change is a heartbeat.
func (ch *Change) Renews() bool {
	return ch.Op == Update && ch.New.Attempts == ch.Old.Attempts && ch.Old.LockedMicros != 0 &&
		ch.New.LockedMicros != 0 && ch.Old.LockedMicros != ch.New.LockedMicros
}

// Unlocks reports whether a change took a lock away and left the event in the queue.
func (ch *Change) Unlocks() bool {
	return ch.Op == Update && ch.Old.LockedMicros != 0 && ch.New.LockedMicros == 0
}

// TakesBack reports whether a change removed an expired lock with the place of its event
// in its groups, as a claim would do it, and not the end of a run.
func (ch *Change) TakesBack(holder string, lockTimeout time.Duration) bool {
	return ch.Unlocks() && ch.New.DueMicros == ch.Old.DueMicros &&
		!ch.At.Before(Micros(ch.Old.LockedMicros).Add(lockTimeout)) && (ch.Writer != holder || ch.New.Retries > ch.Old.Retries)
}

// Micros is a time of the record.
func Micros(m int64) time.Time { return time.UnixMicro(m).UTC() }

const clockFormat = "15:04:05.000"

// String is the state of a row in a report.
func (r RowState) String() string {
	if r == (RowState{}) {
		return "nothing"
	}
	locked := "free"
	if r.LockedMicros != 0 {
		locked = "locked " + Micros(r.LockedMicros).Format(clockFormat)
	}
	return fmt.Sprintf("{%s attempts=%d retries=%d due %s}", locked, r.Attempts, r.Retries, Micros(r.DueMicros).Format(clockFormat))
}
