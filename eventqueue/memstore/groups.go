package memstore

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
)

// place is what the transaction sees of a place.
func (tx *Tx) place(id placeID) (place, bool) {
	if own, written := tx.places[id]; written {
		if own == nil {
			return place{}, false
		}
		return *own, true
	}
	p, ok := tx.store.db.places[id]
	return p, ok
}

// writePlace sets the transaction's version of a place; nil deletes it.
func (tx *Tx) writePlace(id placeID, p *place) { tx.places[id] = p }

// placesOf lists the events of a group that may run, or those that wait, by id. A group
// is of one stage.
func (tx *Tx) placesOf(of group, mayRun bool) (ids []placeID) {
	see := func(id placeID) {
		if p, ok := tx.place(id); ok && p.group == of && p.mayRun == mayRun {
			ids = append(ids, id)
		}
	}
	for id := range tx.store.db.places {
		see(id)
	}
	for id := range tx.places {
		if _, committed := tx.store.db.places[id]; !committed {
			see(id)
		}
	}
	slices.SortFunc(ids, func(a, b placeID) int { return cmp.Compare(a.event, b.event) })
	return ids
}

func sortedGroups(groups map[group]bool) []group {
	return slices.SortedFunc(maps.Keys(groups), func(a, b group) int {
		return cmp.Or(bytes.Compare(a.canvas[:], b.canvas[:]), cmp.Compare(a.name, b.name))
	})
}
