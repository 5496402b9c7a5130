package model_test

import (
	"encoding/json"

	"pgregory.net/rapid"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/operate"
)

// remove cancels or deletes events as an operator does.
func (w *world) remove(t *rapid.T) {
	ids := w.drawIDs(t, "ids")
	cancellation := pick(t, "cancellation", []*operate.Cancellation{nil, {}, {Reason: "twice"}, {Reason: "a\nb", Actor: "ü"}})
	pg, pgAdvanced, pgErr := w.store.Remove(w.ctx, ids, cancellation)
	mem, memAdvanced, memErr := w.mem.Remove(w.ctx, ids, cancellation)
	w.sameErrors(t, pgErr, memErr, false)
	same(t, "Remove", pg, mem)
	same(t, "Remove, which has advanced", eventsByID(pgAdvanced), eventsByID(memAdvanced))
}

// drawEdit draws an edit, which may change nothing.
func (w *world) drawEdit(t *rapid.T) (edit operate.Edit) {
	edit.Value = pick(t, "value", []json.RawMessage{nil, nil, []byte(`{"n":  9}`)})
	edit.Attributes = pick(t, "attributes", drawnPairs)
	switch rapid.IntRange(0, 3).Draw(t, "time") {
	case 0:
		delay := pick(t, "delay", durations)
		edit.Delay = &delay
	case 1:
		edit.DelayUntil = w.now.Add(pick(t, "until", durations))
	case 2:
		edit.DelayUntil = w.now.Add(-pick(t, "ago", durations)).Add(1) // no whole microsecond
	}
	return edit
}

func (w *world) edit(t *rapid.T) {
	ids, edit := w.drawIDs(t, "ids"), w.drawEdit(t)
	pg, pgErr := w.store.Edit(w.ctx, edit, ids)
	mem, memErr := w.mem.Edit(w.ctx, edit, ids)
	w.sameErrors(t, pgErr, memErr, false)
	same(t, "Edit", pg, mem)
}

func (w *world) requeue(t *rapid.T) {
	ids := w.drawIDs(t, "ids")
	pg, pgErr := w.store.Requeue(w.ctx, ids)
	mem, memErr := w.mem.Requeue(w.ctx, ids)
	w.sameErrors(t, pgErr, memErr, false)
	same(t, "Requeue", pg, mem)
}

// drawEnded draws ids as drawIDs does, and those of events that have ended.
func (w *world) drawEnded(t *rapid.T) []eventqueue.EventID {
	ids := w.drawIDs(t, "ids")
	for _, r := range w.mem.Log() {
		if rapid.Bool().Draw(t, "ended") {
			ids = append(ids, r.ID)
		}
	}
	return ids
}

func (w *world) retry(t *rapid.T) {
	if len(w.keys) > 0 {
		t.Skip("the end of an event with one of these keys would wait for the transaction that has emitted it anew")
	}
	ids, edit := w.drawEnded(t), w.drawEdit(t)
	pg, pgErr := w.store.Retry(w.ctx, edit, ids)
	mem, memErr := w.mem.Retry(w.ctx, edit, ids)
	w.sameErrors(t, pgErr, memErr, false)
	same(t, "Retry", pg, mem)
}

func (w *world) deleteLogged(t *rapid.T) {
	ids := w.drawEnded(t)
	pg, pgErr := w.store.DeleteLogged(w.ctx, ids)
	mem, memErr := w.mem.DeleteLogged(w.ctx, ids)
	w.sameErrors(t, pgErr, memErr, false)
	same(t, "DeleteLogged", pg, mem)
}

// selectEvents walks the queue and the history by a filter.
func (w *world) selectEvents(t *rapid.T) {
	filter := operate.EventFilter{
		Module: pick(t, "module", []string{"", "", modules[0]}), Name: pick(t, "name", []string{"", "", names[0]}),
		Modifier: pick(t, "modifier", []string{"", "", modifiers[0]}), Attributes: pick(t, "attributes", drawnPairs),
		OlderThan: pick(t, "older", durations), NewerThan: pick(t, "newer", durations), Error: pick(t, "error", []string{"", "", "no"}),
	}
	if rapid.Bool().Draw(t, "onCanvas") {
		filter.Canvas = &canvases[0]
	}
	queued, logged, limit := filter, filter, pick(t, "limit", limits)
	queued.State = pick(t, "state", append(operate.QueuedStates(), ""))
	logged.State = pick(t, "status", append(operate.LoggedStates(), ""))
	pgLast, pgErr := w.store.LastQueued(w.ctx)
	memLast, memErr := w.mem.LastQueued(w.ctx)
	w.sameErrors(t, pgErr, memErr, false)
	same(t, "LastQueued", pgLast, memLast)
	for after := eventqueue.EventID(0); ; {
		pg, pgNext, pgErr := w.store.Select(w.ctx, queued, after, pgLast, limit)
		mem, memNext, memErr := w.mem.Select(w.ctx, queued, after, memLast, limit)
		w.sameErrors(t, pgErr, memErr, false)
		same(t, "Select", []any{pg, pgNext}, []any{mem, memNext})
		if after = pgNext; after == 0 {
			break
		}
	}
	pgLast, pgErr = w.store.LastLogged(w.ctx)
	memLast, memErr = w.mem.LastLogged(w.ctx)
	w.sameErrors(t, pgErr, memErr, false)
	same(t, "LastLogged", pgLast, memLast)
	for after := eventqueue.EventID(0); ; {
		pg, pgNext, pgErr := w.store.SelectLogged(w.ctx, logged, after, pgLast, limit)
		mem, memNext, memErr := w.mem.SelectLogged(w.ctx, logged, after, memLast, limit)
		w.sameErrors(t, pgErr, memErr, false)
		same(t, "SelectLogged", []any{pg, pgNext}, []any{mem, memNext})
		if after = pgNext; after == 0 {
			break
		}
	}
}
