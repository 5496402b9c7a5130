package check

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"eventsv2/test/oracle"
)

// fault is one thing that went wrong, on purpose or not, as the checker needs it.
type fault struct {
	what string
	as   oracle.FaultKind
	// target is a slot, one process of it, or everything ("").
	target   string
	from, to time.Time
}

// String is the fault in a report.
func (f fault) String() string {
	target := f.target
	if target == "" {
		target = "all"
	}
	return fmt.Sprintf("%s: %s from %s to %s", target, f.what, f.from.UTC().Format(clockFormat), f.to.UTC().Format(clockFormat))
}

const clockFormat = "15:04:05.000"

// concerns reports whether a fault is one of a process, or of all.
func (f fault) concerns(process string) bool {
	return f.target == "" || f.target == process || f.target == SlotPostgres
}

// Unplanned reports whether a fault is one that a holder of a lock does not see
// coming. An orderly stop is none, and Pub/Sub has no part in locks.
func (f fault) unplanned() bool { return f.as != oracle.Stopped && f.as != oracle.NotifierFault }

// forOracle is the fault in the terms of the oracle.
func (f fault) forOracle() oracle.Fault {
	actor := f.target
	if actor == SlotPostgres || actor == SlotEmulator {
		actor = ""
	}
	return oracle.Fault{Kind: f.as, Actor: actor, From: f.from, To: f.to}
}

// life is the time of one process in its slot.
type life struct {
	process, slot string
	from, to      time.Time
}

// Faults is the record of what went wrong. It is safe for concurrent use.
type Faults struct {
	mu    sync.Mutex
	all   []fault
	lives []life
}

// Add records a fault.
func (f *Faults) Add(what string, as oracle.FaultKind, target string, from, to time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all = append(f.all, fault{what, as, target, from, to})
}

// Unplanned counts what nobody planned.
func (f *Faults) Unplanned() map[string]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	counts := map[string]int{}
	for _, one := range f.all {
		if strings.HasPrefix(one.what, "standstill") || strings.HasPrefix(one.what, "Postgres does") {
			counts[one.what+" (not planned)"]++
		}
	}
	return counts
}

// Born records the beginning of a process.
func (f *Faults) Born(process, slot string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lives = append(f.lives, life{process: process, slot: slot, from: time.Now()})
}

// processEnded is the end of a process, for whatever reason.
const processEnded = "the process ended"

// Died records the end of a process.
func (f *Faults) Died(process string) {
	f.mu.Lock()
	for i := range f.lives {
		if f.lives[i].process == process {
			f.lives[i].to = time.Now()
		}
	}
	f.mu.Unlock()
	now := time.Now()
	f.Add(processEnded, oracle.Stopped, process, now, now.Add(Mourning))
}

// Mourning is how long the end of a process has consequences: its locks expire,
// and a successor starts.
const Mourning = LockTimeout + 10*time.Second

// list returns the faults; those of the connections of a slot as faults of the
// processes that used them.
func (f *Faults) list() []fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []fault
	for _, one := range f.all {
		slot, notifier := strings.CutSuffix(one.target, NotifierSuffix)
		known := false
		for _, l := range f.lives {
			if l.slot != slot {
				continue
			}
			known = true
			if !l.from.After(one.to) && (l.to.IsZero() || !l.to.Before(one.from)) {
				split := one
				split.target = l.process
				if notifier {
					split.target += NotifierSuffix
				}
				all = append(all, split)
			}
		}
		if !known {
			all = append(all, one)
		}
	}
	return all
}

// NotifierSuffix marks faults of a slot's connection to Pub/Sub.
const NotifierSuffix = "/pubsub"
