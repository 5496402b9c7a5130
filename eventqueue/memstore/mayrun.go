package memstore

import (
	"cmp"
	"slices"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/locktimeout"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/worker"
)

// validFor is how long a lock is valid: the time that the programs have agreed on, or the default. Call it
// with the database locked.
func (db *database) validFor() time.Duration {
	return cmp.Or(db.lockTimeout, locktimeout.Default).Truncate(time.Microsecond)
}

// unlocked reports whether a row has no lock, or one that has expired.
func (db *database) unlocked(r *Row, now time.Time) bool {
	return r.LockedAt.IsZero() || !r.LockedAt.After(now.Add(-db.validFor()))
}

// mayRun reports whether nothing but a rule may keep a row from running.
func (db *database) mayRun(r *Row, now time.Time) bool {
	return r.Group != groupWaiting && !r.DelayUntil.After(now) && db.unlocked(r, now)
}

// takeLock is what is done to an event whose lock has expired: see pgstore/suspect.go.
func (r *Row) takeLock() {
	switch {
	case r.Company == 0:
		r.Company = worker.AnyCompany
	case r.Begun && r.Company == 1:
		r.Retries++
		r.LostRun = true
	case r.Begun:
		r.Company /= 2
	}
}

// isHeld reports whether a rule or a delay keeps an event from running.
func (db *database) isHeld(row *Row, now time.Time) bool {
	return row.DelayUntil.After(now) || len(db.rulesOf(row)) > 0
}

// rulesOf returns the types of the rules that hold a row back.
func (db *database) rulesOf(row *Row) []operate.RuleType {
	var types []operate.RuleType
	for _, r := range db.rules {
		if r.holds(row) {
			types = append(types, r.Type)
		}
	}
	return types
}

func (r RuleRow) holds(row *Row) bool {
	return r.Holds(&eventqueue.Event{ID: row.ID, Canvas: row.Canvas, Module: row.Module, Name: row.Name, Modifier: row.Modifier})
}

// rule is the strongest rule that holds a row back, as a fact.
func (db *database) rule(row *Row) machine.Rule {
	types := db.rulesOf(row)
	if slices.Contains(types, machine.BlockRule) {
		return machine.BlockRule
	}
	return cmp.Or(append(types, machine.NoRule)...)
}

// maxRunning is events_v2_max_running; false means any number.
func (db *database) maxRunning(stage int, of group) (most int, limited bool) {
	if most, set := db.limits[of]; set {
		return most, true
	}
	if stage != stageKey {
		return 0, false
	}
	if most, set := db.limits[group{of.canvas, operate.EveryKeyGroup}]; set {
		return most, true
	}
	return 1, true
}

// needsGroup reports whether an event in no group needs one, because of a limit.
func (db *database) needsGroup(r *Row) bool {
	_, handler := db.limits[r.groupAt(stageHandler)]
	_, canvas := db.limits[r.groupAt(stageCanvas)]
	return r.Group == groupNone && r.LockedAt.IsZero() && (handler || canvas)
}
