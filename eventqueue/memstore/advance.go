package memstore

import (
	"context"
	"maps"
	"slices"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/worker"
)

// maxAdvanced is how many events of one group one call may admit.
const maxAdvanced = 1000

// Advance implements worker.Store.
func (s *Store) Advance(ctx context.Context, left, arrived []eventqueue.EventID) (advanced []eventqueue.Event, err error) {
	err = s.inTx(ctx, nil, OpAdvance, func(tx *Tx) error {
		advanced = tx.advance(left, nil, arrived, true)
		return nil
	})
	return resultOf(advanced, err)
}

// advanceAfter advances the groups of completed events.
func (tx *Tx) advanceAfter(completions []worker.Completion) []eventqueue.Event {
	var left []eventqueue.EventID
	passes := map[eventqueue.EventID]bool{}
	for i := range completions {
		if completions[i].Grouped {
			left = append(left, completions[i].Event)
			passes[completions[i].Event] = completions[i].Passes && completions[i].Label != machine.ExecutesToCompletion
		}
	}
	if len(left) == 0 {
		return nil
	}
	return tx.advance(left, passes, nil, false)
}

// advancing is a call of events_v2_advance, and follows its steps.
type advancing struct {
	*Tx
	now     time.Time
	expired time.Time // the zero time: all locks count
	gone    []eventqueue.EventID
	putOff  []eventqueue.EventID
	moving  []eventqueue.EventID
	came    []eventqueue.EventID // those that arrived, and those that joined the group of their key with them
	again   map[eventqueue.EventID]bool
}

// advance is events_v2_advance. Unless freeing, all locks count, also those that have expired.
func (tx *Tx) advance(left []eventqueue.EventID, passes map[eventqueue.EventID]bool, arrived []eventqueue.EventID, freeing bool) []eventqueue.Event {
	t := advancing{Tx: tx, now: tx.store.db.now(), again: map[eventqueue.EventID]bool{}}
	if freeing {
		t.expired = t.now.Add(-tx.store.db.validFor())
	}
	for _, id := range sortedOnce(left) {
		row, there := tx.row(id)
		switch {
		case !there:
			t.gone = append(t.gone, id)
		case row.Group == groupMayRun && t.isFree(&row) && tx.mayWrite(id):
			t.putOff = append(t.putOff, id)
		}
	}
	for _, id := range sortedOnce(arrived) {
		if row, there := tx.row(id); there && row.Group != groupMayRun && row.LockedAt.IsZero() && tx.mayWrite(id) {
			t.moving = append(t.moving, id)
		}
	}
	t.came = slices.Clone(t.moving)
	var passing []eventqueue.EventID
	for _, id := range t.putOff {
		if passes[id] {
			passing = append(passing, id)
		}
	}
	t.takeBack()
	for stage := stageKey; stage <= stageCanvas; stage++ {
		off := t.putOff
		if stage == stageKey {
			off = passing
		}
		t.pass(stage, slices.Concat(t.gone, off))
	}
	return t.result()
}

// isFree reports whether no worker runs an event: it has no lock, or the lock does not
// count.
func (t *advancing) isFree(row *Row) bool {
	return row.LockedAt.IsZero() || !t.expired.IsZero() && !row.LockedAt.After(t.expired)
}

// takeBack frees the places of events that count against the limits of arriving events
// and cannot run.
func (t *advancing) takeBack() {
	seen := map[group]bool{}
	for _, id := range t.moving {
		row, _ := t.row(id)
		for _, stage := range []int{stageHandler, stageCanvas} {
			seen[row.groupAt(stage)] = true
		}
	}
	var held []eventqueue.EventID
	for _, of := range sortedGroups(seen) {
		running := t.placesOf(of, true)
		for _, id := range running[:min(len(running), maxAdvanced)] {
			row, there := t.row(id.event)
			if there && row.Group == groupMayRun && t.isFree(&row) && t.mayWrite(id.event) && t.store.db.isHeld(&row, t.now) {
				held = append(held, id.event)
			}
		}
	}
	t.putOff = sortedOnce(slices.Concat(t.putOff, held))
}

// pass works on one stage: leaving events give up their places, moving events take
// theirs, and the first of each group may run.
func (t *advancing) pass(stage int, leaving []eventqueue.EventID) {
	groups := map[group]bool{}
	for _, id := range slices.Concat(leaving, t.moving) {
		if p, ok := t.place(placeID{id, stage}); ok {
			groups[p.group] = true
		}
	}
	for _, id := range t.moving {
		if of, needed := t.needs(id, stage); needed {
			groups[of] = true
		}
	}
	if len(groups) == 0 {
		return
	}
	for _, id := range leaving {
		if _, ok := t.place(placeID{id, stage}); ok {
			t.again[id] = true
			t.writePlace(placeID{id, stage}, nil)
		}
	}
	for _, id := range t.moving {
		if _, there := t.place(placeID{id, stage}); there {
			continue
		}
		if of, needed := t.needs(id, stage); needed {
			t.writePlace(placeID{id, stage}, &place{group: of})
		}
	}
	if stage == stageKey {
		t.join(groups)
	}
	chosen := t.choose(stage, sortedGroups(groups))
	for _, id := range chosen {
		p, _ := t.place(placeID{id, stage})
		t.writePlace(placeID{id, stage}, &place{group: p.group, mayRun: true})
	}
	t.moving = slices.DeleteFunc(t.moving, func(id eventqueue.EventID) bool {
		p, there := t.place(placeID{id, stage})
		return there && !p.mayRun
	})
	t.moving = sortedOnce(slices.Concat(t.moving, chosen))
}

// join adds to the groups of keys the due events that nothing has announced yet, also those whose rows others are
// writing (I2).
func (t *advancing) join(groups map[group]bool) {
	for _, id := range slices.Sorted(maps.Keys(t.store.db.events)) {
		row, there := t.row(id)
		if !there || row.OrderingKey == "" || !groups[row.groupAt(stageKey)] || row.Group != groupLater || !row.LockedAt.IsZero() ||
			slices.Contains(t.moving, id) || t.store.db.isHeld(&row, t.now) {
			continue
		}
		if p, placed := t.place(placeID{id, stageKey}); placed && p.mayRun {
			continue
		}
		t.writePlace(placeID{id, stageKey}, &place{group: row.groupAt(stageKey)})
		if t.mayWrite(id) {
			t.came = append(t.came, id)
		}
	}
}

// needs returns the group that an event has to be in at a stage, if any.
func (t *advancing) needs(id eventqueue.EventID, stage int) (group, bool) {
	row, _ := t.row(id)
	if stage == stageKey && row.OrderingKey == "" {
		return group{}, false
	}
	of := row.groupAt(stage)
	_, limited := t.store.db.maxRunning(stage, of)
	return of, limited
}

// choose returns the first events of each group, as many as it has room for. It deletes
// the places of events that were deleted by hand: a thousand of a group, then two
// thousand, and so on.
func (t *advancing) choose(stage int, groups []group) (chosen []eventqueue.EventID) {
	for many := maxAdvanced; ; many *= 2 {
		chosen = chosen[:0]
		deleted := false
		for _, of := range groups {
			waiting := t.placesOf(of, false)
			for _, id := range waiting[:min(len(waiting), t.room(stage, of))] {
				_, there := t.row(id.event)
				deleted = deleted || !there
				chosen = append(chosen, id.event)
			}
		}
		if !deleted {
			break
		}
		for _, of := range groups {
			waiting := t.placesOf(of, false)
			for _, id := range waiting[:min(len(waiting), many)] {
				if _, there := t.row(id.event); !there {
					t.removePlaces(id.event)
				}
			}
		}
	}
	return slices.DeleteFunc(chosen, func(id eventqueue.EventID) bool { return !t.mayWrite(id) })
}

// room is how many more events of a group may run now.
func (t *advancing) room(stage int, of group) int {
	most, limited := t.store.db.maxRunning(stage, of)
	if !limited {
		return maxAdvanced
	}
	return max(min(maxAdvanced, most-len(t.placesOf(of, true))), 0)
}

func (tx *Tx) removePlaces(id eventqueue.EventID) {
	for stage := stageKey; stage <= stageCanvas; stage++ {
		tx.writePlace(placeID{id, stage}, nil)
	}
}

// result writes the new states of the events that were put off and of those that arrived
// to their rows, and returns the events that may run now.
func (t *advancing) result() (advanced []eventqueue.Event) {
	for _, id := range t.putOff {
		row, _ := t.row(id)
		_, handler := t.store.db.maxRunning(stageHandler, row.groupAt(stageHandler))
		_, canvas := t.store.db.maxRunning(stageCanvas, row.groupAt(stageCanvas))
		if !t.again[id] && !handler && !canvas {
			continue
		}
		if !row.LockedAt.IsZero() {
			row.takeLock() // as a claim does that takes the event over
		}
		row.Group, row.LockedAt = groupLater, time.Time{}
		t.write(id, &row)
	}
	for _, id := range t.came {
		if row, _ := t.row(id); !slices.Contains(t.moving, id) && row.Group != groupWaiting {
			row.Group = groupWaiting
			t.write(id, &row)
		}
	}
	for _, id := range t.moving {
		row, _ := t.row(id)
		if row.Group == groupMayRun {
			continue
		}
		row.Group, row.NotifiedAt = groupMayRun, t.now
		t.write(id, &row)
		advanced = append(advanced, eventqueue.Event{ID: id, Canvas: row.Canvas, Module: row.Module, Name: row.Name, Modifier: row.Modifier})
	}
	return advanced
}

// repair advances the groups of a page that are stuck: groups with places without an event,
// with admitted events that cannot run, or with unused room. last is the end of the page,
// or 0.
func (s *Store) repair(page []*record, after, last eventqueue.EventID, limit int) (taken []eventqueue.Notification) {
	tx := s.begin()
	defer tx.end(true)
	lost := slices.Concat(s.db.orphans(page, after, last, 3*limit), s.db.idle(page), tx.stalled(page))
	for _, e := range tx.advance(lost, nil, lost, true) {
		taken = append(taken, eventqueue.Notification{Event: e.ID, Canvas: e.Canvas})
	}
	tx.apply()
	return taken
}

// orphans returns the events that have places in the range of a page and are not in the
// page.
func (db *database) orphans(page []*record, after, last eventqueue.EventID, limit int) (ids []eventqueue.EventID) {
	for id := range db.places {
		if id.event > after && (last == 0 || id.event <= last) {
			ids = append(ids, id.event) // once for each of its places
		}
	}
	slices.Sort(ids)
	ids = ids[:min(len(ids), limit)]
	return slices.DeleteFunc(ids, func(id eventqueue.EventID) bool {
		return slices.ContainsFunc(page, func(r *record) bool { return r.ID == id })
	})
}

// idle returns the events of a page that a limit has admitted and that cannot run.
func (db *database) idle(page []*record) (ids []eventqueue.EventID) {
	now := db.now()
	for _, r := range page {
		_, handler := db.places[placeID{r.ID, stageHandler}]
		_, canvas := db.places[placeID{r.ID, stageCanvas}]
		if r.Group == groupMayRun && (handler || canvas) && db.unlocked(&r.Row, now) && db.isHeld(&r.Row, now) {
			ids = append(ids, r.ID)
		}
	}
	return ids
}

// stalled returns the first waiting event of each group of a page's events that has room.
func (tx *Tx) stalled(page []*record) (ids []eventqueue.EventID) {
	groups := map[group]int{}
	for _, r := range page {
		if r.Group != groupWaiting {
			continue
		}
		for _, stage := range r.stages() {
			groups[r.groupAt(stage)] = stage
		}
	}
	for of, stage := range groups {
		ids = append(ids, tx.firstStalled(stage, of)...)
	}
	return ids
}

// firstStalled returns the first waiting event of a group, if the group has room.
func (tx *Tx) firstStalled(stage int, of group) []eventqueue.EventID {
	waiting := tx.placesOf(of, false)
	most, limited := tx.store.db.maxRunning(stage, of)
	if len(waiting) == 0 || limited && len(tx.placesOf(of, true)) >= most {
		return nil
	}
	return []eventqueue.EventID{waiting[0].event}
}
