package memstore

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/worker"
)

// SetConcurrencyLimit implements operate.ConcurrencyLimitStore.
func (s *Store) SetConcurrencyLimit(ctx context.Context, limit operate.ConcurrencyLimit) (before bool, err error) {
	err = s.atOnce(ctx, OpSetConcurrencyLimit, func() {
		_, before = s.db.limits[groupOf(limit)]
		if limit.Max > 0 {
			s.db.limits[groupOf(limit)] = limit.Max
		} else {
			delete(s.db.limits, groupOf(limit))
		}
	})
	return before && err == nil, err
}

// ConcurrencyLimits implements operate.ConcurrencyLimitStore.
func (s *Store) ConcurrencyLimits(ctx context.Context, canvas eventqueue.CanvasID) (limits []operate.ConcurrencyLimit, err error) {
	err = s.atOnce(ctx, OpConcurrencyLimits, func() {
		var groups []group
		for of := range s.db.limits {
			if of.canvas == canvas {
				groups = append(groups, of)
			}
		}
		slices.SortFunc(groups, func(a, b group) int { return cmp.Compare(a.name, b.name) })
		for _, of := range groups {
			limits = append(limits, operate.LimitOfGroup(of.canvas, of.name, s.db.limits[of]))
		}
	})
	return resultOf(limits, err)
}

// fillPage is how many groups one FillGroups visits.
const fillPage = worker.MaxGrouped

// FillGroups implements operate.ConcurrencyLimitStore.
func (s *Store) FillGroups(ctx context.Context, limit operate.ConcurrencyLimit, after string) (advanced []eventqueue.Event, next string, err error) {
	err = s.inTx(ctx, nil, OpFillGroups, func(tx *Tx) error {
		groups, stage := []group{groupOf(limit)}, stageCanvas
		switch {
		case limit.EveryKey:
			groups, stage = s.db.keyGroups(limit.Canvas, after), stageKey
			if groups = groups[:min(len(groups), fillPage)]; len(groups) == fillPage {
				next = groups[fillPage-1].name
			}
		case limit.Key != "":
			stage = stageKey
		case limit.Module != "":
			stage = stageHandler
		}
		var stalled []eventqueue.EventID
		for _, of := range groups {
			stalled = append(stalled, tx.firstStalled(stage, of)...)
		}
		advanced = tx.advance(stalled, nil, stalled, false)
		return nil
	})
	if err != nil {
		return nil, "", err
	}
	return advanced, next, nil
}

// keyGroups are the groups of the keys of a canvas after the given one, in order.
func (db *database) keyGroups(canvas eventqueue.CanvasID, after string) []group {
	groups := map[group]bool{}
	for _, p := range db.places {
		if p.group.canvas == canvas && p.group.name > after && strings.HasPrefix(p.group.name, operate.KeyGroup) {
			groups[p.group] = true
		}
	}
	return sortedGroups(groups)
}
