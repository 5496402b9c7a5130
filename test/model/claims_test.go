package model_test

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"pgregory.net/rapid"

	"eventsv2/eventqueue"
)

// claimer is one call of Claim.
type claimer struct {
	ids         []eventqueue.EventID
	known       eventqueue.Known
	lockTimeout time.Duration
}

func (w *world) drawClaimer(t *rapid.T) claimer {
	return claimer{w.drawIDs(t, "ids"), w.drawKnown(t), pick(t, "lockTimeout", lockTimeouts)}
}

func (c claimer) claim(t *rapid.T, w *world, store eventqueue.ClaimStore) []eventqueue.Found {
	t.Helper()
	found, err := store.Claim(w.ctx, c.ids, c.known, c.lockTimeout)
	if err != nil {
		t.Fatalf("Claim: %v", err)
	}
	return byEvent(found)
}

// ask is what the model answers about one event, which it claims if it may.
func (c claimer) ask(t *rapid.T, w *world, id eventqueue.EventID) []eventqueue.Found {
	c.ids = []eventqueue.EventID{id}
	return c.claim(t, w, w.mem)
}

// look is what the model answers about one event when nobody claims it.
func (c claimer) look(t *rapid.T, w *world, id eventqueue.EventID) []eventqueue.Found {
	known := c.known
	c.known = eventqueue.Known{} // with which nothing is claimed
	found := c.ask(t, w, id)
	for i := range found {
		e := &found[i].Event
		key := eventqueue.HandlerKey{Module: e.Module, Name: e.Name, Modifier: e.Modifier}
		found[i].Facts.Known = slices.Contains(known.Everywhere, key) ||
			slices.Contains(known.OnCanvas, eventqueue.CanvasHandler{Canvas: e.Canvas, Key: key})
	}
	return found
}

// byEvent puts answers in order, and takes out the places, which the model does not
// have.
func byEvent(found []eventqueue.Found) []eventqueue.Found {
	slices.SortFunc(found, func(a, b eventqueue.Found) int { return int(a.Event.ID - b.Event.ID) })
	for i := range found {
		inUTC(&found[i].Event.DelayUntil, &found[i].Event.EnqueuedAt)
		found[i].Place = 0
	}
	return found
}

func (w *world) noteClaims(found []eventqueue.Found) {
	for _, f := range found {
		if f.Facts.Claimed {
			c := eventqueue.Claim{Event: f.Event.ID, Attempt: f.Attempt}
			w.claims = append(w.claims, c)
			w.inLine[c] = f.InLine
		}
	}
}

func (w *world) claim(t *rapid.T) {
	c := w.drawClaimer(t)
	pg, mem := c.claim(t, w, w.store), c.claim(t, w, w.mem)
	same(t, "Claim", pg, mem)
	w.noteClaims(pg)
}

// claimAtOnce has several claim overlapping ids at the same time. What one of
// them got, the model lets it get, too; then the others must find nothing left.
// They may have looked before the winner or after it.
func (w *world) claimAtOnce(t *rapid.T) {
	claimers := make([]claimer, rapid.IntRange(2, 4).Draw(t, "claimers"))
	before := make([]map[eventqueue.EventID]eventqueue.Found, len(claimers))
	for i := range claimers {
		claimers[i] = w.drawClaimer(t)
		before[i] = map[eventqueue.EventID]eventqueue.Found{}
		for _, id := range claimers[i].ids {
			maps.Copy(before[i], index(claimers[i].look(t, w, id)))
		}
	}

	answers := make([]map[eventqueue.EventID]eventqueue.Found, len(claimers))
	errs := make([]error, len(claimers))
	var wait sync.WaitGroup
	for i, c := range claimers {
		wait.Go(func() {
			var found []eventqueue.Found
			found, errs[i] = w.store.Claim(w.ctx, c.ids, c.known, c.lockTimeout)
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
				same(t, fmt.Sprintf("claimer %d of event %s", i, id), []eventqueue.Found{f}, c.ask(t, w, id))
				w.noteClaims([]eventqueue.Found{f})
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
func (w *world) mustHaveLost(t *rapid.T, i int, c claimer, id eventqueue.EventID, before, answers map[eventqueue.EventID]eventqueue.Found) {
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

func index(found []eventqueue.Found) map[eventqueue.EventID]eventqueue.Found {
	byID := map[eventqueue.EventID]eventqueue.Found{}
	for _, f := range found {
		byID[f.Event.ID] = f
	}
	return byID
}

func (w *world) renew(t *rapid.T) {
	claims := w.drawClaims(t)
	pg, pgErr := w.store.Renew(w.ctx, claims)
	mem, memErr := w.mem.Renew(w.ctx, claims)
	w.sameErrors(t, pgErr, memErr, false)
	same(t, "Renew", byID(pg), byID(mem))
}

// runnable looks for events that could be claimed, leaving out some canvases.
func (w *world) runnable(t *rapid.T) {
	var after eventqueue.Scope
	if rapid.Bool().Draw(t, "after") {
		after = drawScope(t)
	}
	except := rapid.SliceOfNDistinct(rapid.SampledFrom(canvases), 0, len(canvases), rapid.ID[eventqueue.CanvasID]).Draw(t, "except")
	lockTimeout := pick(t, "lockTimeout", lockTimeouts)
	pg, pgNext, pgErr := w.store.Runnable(w.ctx, after, except, lockTimeout)
	mem, memNext, memErr := w.mem.Runnable(w.ctx, after, except, lockTimeout)
	w.sameErrors(t, pgErr, memErr, false)
	same(t, "Runnable: next", pgNext, memNext)
	same(t, "Runnable", pg, mem)
}
