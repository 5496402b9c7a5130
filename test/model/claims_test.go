package model_test

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"pgregory.net/rapid"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/locktimeout"
	"eventsv2/eventqueue/worker"
)

// agree sets the lock timeout of both databases, or leaves them the default.
func (w *world) agree(t *rapid.T) {
	own := pick(t, "lockTimeout", lockTimeouts)
	if own == locktimeout.Default {
		return
	}
	for _, store := range []locktimeout.Store{w.store, w.mem} {
		if agreed, err := store.AgreeOnLockTimeout(w.ctx, own); err != nil || agreed != own {
			t.Fatalf("AgreeOnLockTimeout(%s) = %s, %v", own, agreed, err)
		}
	}
}

// claimer is one call of Claim.
type claimer struct {
	ids      []eventqueue.EventID
	handlers eventqueue.HandlerSet
	id       eventqueue.ClaimID
}

func (w *world) drawClaimer(t *rapid.T) claimer {
	return claimer{w.drawIDs(t, "ids"), w.drawHandlers(t), pick(t, "claimID", claimIDs)}
}

func (c claimer) claim(t *rapid.T, w *world, store worker.Store) []worker.ClaimResult {
	t.Helper()
	found, err := store.Claim(w.ctx, c.ids, c.handlers, c.id)
	if err != nil {
		t.Fatalf("Claim: %v", err)
	}
	return byEvent(found)
}

// ask is what the model answers about one event, which it claims if it may.
func (c claimer) ask(t *rapid.T, w *world, id eventqueue.EventID) []worker.ClaimResult {
	c.ids = []eventqueue.EventID{id}
	return c.claim(t, w, w.mem)
}

// check is what the model answers about one event when nobody claims it.
func (c claimer) check(t *rapid.T, w *world, id eventqueue.EventID) []worker.ClaimResult {
	handlers := c.handlers
	c.handlers = eventqueue.HandlerSet{} // with which nothing is claimed
	found := c.ask(t, w, id)
	for i := range found {
		e := &found[i].Event
		key := eventqueue.HandlerKey{Module: e.Module, Name: e.Name, Modifier: e.Modifier}
		found[i].Facts.HandlerKnown = slices.Contains(handlers.Everywhere, key) ||
			slices.Contains(handlers.OnCanvas, eventqueue.CanvasHandler{Canvas: e.Canvas, Key: key})
	}
	return found
}

// byEvent puts answers in order, and takes out the places, which the model does not
// have.
func byEvent(found []worker.ClaimResult) []worker.ClaimResult {
	slices.SortFunc(found, func(a, b worker.ClaimResult) int { return int(a.Event.ID - b.Event.ID) })
	for i := range found {
		inUTC(&found[i].Event.DelayUntil, &found[i].Event.EnqueuedAt)
		found[i].RowID = 0
	}
	return found
}

func (w *world) recordClaims(found []worker.ClaimResult) {
	for _, f := range found {
		if f.Facts.Claimed {
			c := worker.Claim{Event: f.Event.ID, Attempt: f.Attempt, ID: f.ClaimID}
			w.claims = append(w.claims, c)
			w.grouped[c] = f.Grouped
		}
	}
}

func (w *world) claim(t *rapid.T) {
	c := w.drawClaimer(t)
	pg, mem := c.claim(t, w, w.store), c.claim(t, w, w.mem)
	same(t, "Claim", pg, mem)
	w.recordClaims(pg)
}

// claimAtOnce has several claim overlapping ids at the same time. What one of
// them got, the model lets it get, too; then the others must find nothing left.
// They may have read it before the winner or after it.
func (w *world) claimAtOnce(t *rapid.T) {
	claimers := make([]claimer, rapid.IntRange(2, 4).Draw(t, "claimers"))
	before := make([]map[eventqueue.EventID]worker.ClaimResult, len(claimers))
	for i := range claimers {
		claimers[i] = w.drawClaimer(t)
		before[i] = map[eventqueue.EventID]worker.ClaimResult{}
		for _, id := range claimers[i].ids {
			maps.Copy(before[i], index(claimers[i].check(t, w, id)))
		}
	}

	answers := make([]map[eventqueue.EventID]worker.ClaimResult, len(claimers))
	errs := make([]error, len(claimers))
	var wait sync.WaitGroup
	for i, c := range claimers {
		wait.Go(func() {
			var found []worker.ClaimResult
			found, errs[i] = w.store.Claim(w.ctx, c.ids, c.handlers, c.id)
			answers[i] = index(byEvent(found))
		})
	}
	wait.Wait()

	for i, c := range claimers {
		if errs[i] != nil {
			t.Fatalf("claimer %d: %v", i, errs[i])
		}
		for _, id := range c.ids {
			if f := answers[i][id]; f.Facts.Claimed {
				same(t, fmt.Sprintf("claimer %d of event %s", i, id), []worker.ClaimResult{f}, c.ask(t, w, id))
				w.recordClaims([]worker.ClaimResult{f})
			}
		}
	}
	for i, c := range claimers {
		for _, id := range c.ids {
			w.mustHaveLost(t, i, c, id, before[i], answers[i])
		}
	}
}

// mustHaveLost checks the answer to a claimer that did not get an event.
func (w *world) mustHaveLost(t *rapid.T, i int, c claimer, id eventqueue.EventID, before, answers map[eventqueue.EventID]worker.ClaimResult) {
	t.Helper()
	got, present := answers[id]
	if got.Facts.Claimed {
		return
	}
	after := c.ask(t, w, id)
	if present != (len(after) > 0) {
		t.Fatalf("claimer %d of event %s: present is %t, in the model %t", i, id, present, !present)
	}
	if !present {
		return
	}
	if after[0].Facts.Claimed {
		t.Fatalf("claimer %d of event %s: nobody claimed it in Postgres, and the model may: %+v", i, id, got)
	}
	if text := fmt.Sprintf("%+v", got); text != fmt.Sprintf("%+v", before[id]) && text != fmt.Sprintf("%+v", after[0]) {
		t.Fatalf("claimer %d of event %s\n  Postgres:             %+v\n  model, before claims: %+v\n  model, after claims:  %+v",
			i, id, got, before[id], after[0])
	}
}

func index(found []worker.ClaimResult) map[eventqueue.EventID]worker.ClaimResult {
	byID := map[eventqueue.EventID]worker.ClaimResult{}
	for _, f := range found {
		byID[f.Event.ID] = f
	}
	return byID
}

func (w *world) renew(t *rapid.T) {
	claims := w.drawClaims(t)
	if together := rapid.SampledFrom([]int{0, 0, 1, 2, 40, 2000}).Draw(t, "together"); together > 0 {
		pg, pgErr := w.store.BeginRuns(w.ctx, claims, together)
		mem, memErr := w.mem.BeginRuns(w.ctx, claims, together)
		w.sameErrors(t, pgErr, memErr, false)
		same(t, "BeginRuns", byID(pg), byID(mem))
		return
	}
	pg, pgErr := w.store.Renew(w.ctx, claims)
	mem, memErr := w.mem.Renew(w.ctx, claims)
	w.sameErrors(t, pgErr, memErr, false)
	same(t, "Renew", byID(pg), byID(mem))
}

// giveBack gives back what a claim may hold.
func (w *world) giveBack(t *rapid.T) {
	ids, claim := w.drawIDs(t, "ids"), pick(t, "claimID", claimIDs)
	pg, pgErr := w.store.GiveBack(w.ctx, claim, ids)
	mem, memErr := w.mem.GiveBack(w.ctx, claim, ids)
	w.sameErrors(t, pgErr, memErr, false)
	slices.Sort(pg)
	same(t, "GiveBack", pg, mem)
}

// runnable asks for events that could be claimed, leaving out some canvases.
func (w *world) runnable(t *rapid.T) {
	var after eventqueue.Scope
	if rapid.Bool().Draw(t, "after") {
		after = drawScope(t)
	}
	except := rapid.SliceOfNDistinct(rapid.SampledFrom(canvases), 0, len(canvases), rapid.ID[eventqueue.CanvasID]).Draw(t, "except")
	pg, pgNext, pgErr := w.store.Runnable(w.ctx, after, except)
	mem, memNext, memErr := w.mem.Runnable(w.ctx, after, except)
	w.sameErrors(t, pgErr, memErr, false)
	same(t, "Runnable: next", pgNext, memNext)
	same(t, "Runnable", pg, mem)
}
