package model_test

import (
	"fmt"
	"slices"
	"sync"

	"pgregory.net/rapid"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/worker"
)

// ender is one call of Finish, and what became of it.
type ender struct {
	completions []worker.Completion
	retain      bool
	written     worker.WriteResult
	err         error
}

// completeAtOnce has several end overlapping claims while somebody claims the same
// events, of which some have locks that expired.
func (w *world) completeAtOnce(t *rapid.T) {
	before := map[eventqueue.EventID]row{}
	for _, r := range w.mem.Events() {
		before[r.ID] = r
	}
	enders := make([]ender, rapid.IntRange(2, 3).Draw(t, "enders"))
	var ids []eventqueue.EventID
	for i := range enders {
		// Nobody can know a token that the concurrent claim has yet to give. Whether that
		// claim sees that a completion has advanced a group is open.
		enders[i].completions = slices.DeleteFunc(w.drawCompletions(t, storableErrors), func(end worker.Completion) bool {
			return end.Attempt > before[end.Event].Attempts || before[end.Event].OrderingKey != ""
		})
		enders[i].retain = rapid.Bool().Draw(t, "retain")
		for _, end := range enders[i].completions {
			ids = append(ids, end.Event)
		}
	}
	slices.Sort(ids)
	c := w.drawClaimer(t)
	c.ids = slices.Compact(ids)
	answers := w.runAtOnce(t, enders, c)
	for _, id := range c.ids {
		w.mustBeAnOrder(t, id, before[id], enders, c, answers)
	}
}

func (w *world) runAtOnce(t *rapid.T, enders []ender, c claimer) map[eventqueue.EventID]worker.ClaimResult {
	t.Helper()
	var wait sync.WaitGroup
	for i := range enders {
		e := &enders[i]
		wait.Go(func() { e.written, e.err = w.store.Complete(w.ctx, nil, e.completions, e.retain) })
	}
	found, err := w.store.Claim(w.ctx, c.ids, c.handlers, c.id)
	wait.Wait()
	if err != nil {
		t.Fatalf("Claim: %v", err)
	}
	for i := range enders {
		if enders[i].err != nil {
			t.Fatalf("Finish %d: %v", i, enders[i].err)
		}
	}
	w.recordClaims(found)
	return index(byEvent(found))
}

// mustBeAnOrder checks that the answers about one event are those of some order
// of the calls, and has the model follow it. Who ended the event did so before
// it was claimed: after that, their claims had gone.
func (w *world) mustBeAnOrder(t *rapid.T, id eventqueue.EventID, before row, enders []ender, c claimer, answers map[eventqueue.EventID]worker.ClaimResult) {
	t.Helper()
	earlier := index(c.check(t, w, id))
	ended := w.followEnder(t, id, enders)
	got, present := answers[id]
	for i := range enders {
		enders[i].mustNotHave(t, id, before, ended == i, ended >= 0 || got.Facts.Claimed)
	}
	ask := c.ask
	if ended >= 0 && !got.Facts.Claimed {
		ask = c.check // the model may claim what it may not have seen
	}
	later := index(ask(t, w, id))
	if sameFound(got, present, later, id) {
		return
	}
	// It may have read the event before that ended, and claimed it after that.
	if f, ok := earlier[id]; ok {
		f.Facts.Claimed = got.Facts.Claimed
		f.Attempt, f.ClaimID, f.LostRun, f.Company, f.Unique, f.Limited, f.Exact, f.Event.Retries = got.Attempt, got.ClaimID, got.LostRun, got.Company, got.Unique, got.Limited, got.Exact, got.Event.Retries
		f.Event.EnqueuedAt, f.Event.Value = got.Event.EnqueuedAt, got.Event.Value
		earlier[id] = f
	}
	if !sameFound(got, present, earlier, id) || got.Facts.Claimed && got.Attempt != later[id].Attempt {
		t.Fatalf("Claim of event %s beside ends\n  Postgres:              %+v\n  model, before the end: %+v\n  model, after it:       %+v",
			id, got, earlier[id], later[id])
	}
}

func sameFound(got worker.ClaimResult, present bool, answers map[eventqueue.EventID]worker.ClaimResult, id eventqueue.EventID) bool {
	want, ok := answers[id]
	return present == ok && fmt.Sprintf("%+v", got) == fmt.Sprintf("%+v", want)
}

// followEnder has the model write the end that Postgres wrote, and returns whose
// it was, or -1.
func (w *world) followEnder(t *rapid.T, id eventqueue.EventID, enders []ender) int {
	t.Helper()
	ended := -1
	for i, e := range enders {
		if !slices.Contains(e.written.Done, id) {
			continue
		}
		if ended >= 0 {
			t.Fatalf("event %s was ended by calls %d and %d", id, ended, i)
		}
		ended = i
		end, _ := e.end(id)
		written, err := w.mem.Complete(w.ctx, nil, []worker.Completion{end}, e.retain)
		if err != nil || len(written.Done) != 1 {
			t.Fatalf("the end %+v was written in Postgres, and not in the model: %+v, %v", end, written, err)
		}
	}
	return ended
}

func (e *ender) end(id eventqueue.EventID) (worker.Completion, bool) {
	i := slices.IndexFunc(e.completions, func(end worker.Completion) bool { return end.Event == id })
	if i < 0 {
		return worker.Completion{}, false
	}
	return e.completions[i], true
}

// mustNotHave checks the answer to a call that has not ended an event. Its claim
// was lost from the start, or somebody else was faster.
func (e *ender) mustNotHave(t *rapid.T, id eventqueue.EventID, before row, has, somebodyHas bool) {
	t.Helper()
	end, asked := e.end(id)
	if has || !asked {
		return
	}
	held, lost := holds(before, end.Claim), slices.Contains(e.written.Lost, id)
	if !held && !lost || held && lost && !somebodyHas {
		t.Fatalf("the claim %+v is lost: %t; it held before: %t; somebody else got the event: %t", end.Claim, lost, held, somebodyHas)
	}
}
