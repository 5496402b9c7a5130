package model_test

import (
	"slices"

	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"eventsv2/eventqueue/memstore"
	"eventsv2/eventqueue/operate"
)

const (
	placesSQL            = `SELECT event_id, stage, canvas_id, group_key, admitted FROM event_groups ORDER BY event_id, stage`
	concurrencyLimitsSQL = `SELECT canvas_id, group_key, max_running FROM concurrency_limits ORDER BY canvas_id, group_key`
)

func scanPlace(row pgx.CollectableRow) (r memstore.PlaceRow, err error) {
	err = row.Scan(&r.Event, &r.Stage, (*[16]byte)(&r.Canvas), &r.Group, &r.MayRun)
	return r, err
}

// drawConcurrencyLimit draws what a limit is for, mostly what concerns many events.
func drawConcurrencyLimit(t *rapid.T) operate.ConcurrencyLimit {
	limit := operate.ConcurrencyLimit{Canvas: pick(t, "canvas", canvases)}
	switch pick(t, "limitOf", []string{"canvas", "canvas", "handler", "handler", "key", "every key"}) {
	case "handler":
		limit.Module, limit.Name = pick(t, "module", modules), pick(t, "name", names)
	case "key":
		limit.Key = pick(t, "limitedKey", orderings[len(orderings)-2:])
	case "every key":
		limit.EveryKey = true
	}
	return limit
}

// unlessLimited leaves races out of sequences that have concurrency limits: who
// may run under a limit depends on which of several calls was first, in ways that
// their answers do not show.
func (w *world) unlessLimited(race, single func(*rapid.T)) func(*rapid.T) {
	return func(t *rapid.T) {
		if w.limited {
			single(t)
		} else {
			race(t)
		}
	}
}

// setConcurrencyLimit sets a limit or removes it, and mostly fills its lines as
// operate.ConcurrencyLimits does.
func (w *world) setConcurrencyLimit(t *rapid.T) {
	if !w.limited {
		t.Skip("a sequence without concurrency limits")
	}
	limit := drawConcurrencyLimit(t)
	limit.Max = rapid.IntRange(0, 3).Draw(t, "max")
	pg, pgErr := w.store.SetConcurrencyLimit(w.ctx, limit)
	mem, memErr := w.mem.SetConcurrencyLimit(w.ctx, limit)
	w.sameErrors(t, pgErr, memErr, false)
	same(t, "SetConcurrencyLimit", pg, mem)
	if rapid.IntRange(0, 3).Draw(t, "fill") > 0 {
		w.fill(t, limit, "")
	}
	for _, canvas := range canvases {
		pg, pgErr := w.store.ConcurrencyLimits(w.ctx, canvas)
		mem, memErr := w.mem.ConcurrencyLimits(w.ctx, canvas)
		w.sameErrors(t, pgErr, memErr, false)
		same(t, "ConcurrencyLimits", slices.Clip(pg), slices.Clip(mem))
	}
}

// fillGroups is for a limit that somebody else has set.
func (w *world) fillGroups(t *rapid.T) {
	w.fill(t, drawConcurrencyLimit(t), pick(t, "after", []string{"", "key line"}))
}

func (w *world) fill(t *rapid.T, limit operate.ConcurrencyLimit, after string) {
	pg, pgNext, pgErr := w.store.FillGroups(w.ctx, limit, after)
	mem, memNext, memErr := w.mem.FillGroups(w.ctx, limit, after)
	w.sameErrors(t, pgErr, memErr, false)
	same(t, "FillGroups", eventsByID(pg), eventsByID(mem))
	same(t, "FillGroups: next", pgNext, memNext)
}
