package model_test

import (
	"slices"

	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/memstore"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/eventqueue/worker"
)

// underWay is a claim in Postgres that has not committed yet. The model claims
// in one step, so that it takes these events when the claim has committed, and
// leaves them alone until then.
type underWay struct {
	claimer
	tx   pgx.Tx
	got  []worker.ClaimResult
	ids  []eventqueue.EventID        // that it got
	rows map[eventqueue.EventID]row  // as they are for everybody else
	held map[eventqueue.EventID]bool // the ids
}

type row = memstore.Row

// beginClaim compares at once what it did not get: the model must not get it
// either.
func (w *world) beginClaim(t *rapid.T) *underWay {
	t.Helper()
	u := &underWay{claimer: w.drawClaimer(t), rows: map[eventqueue.EventID]row{}, held: map[eventqueue.EventID]bool{}}
	var err error
	if u.tx, err = w.pool.BeginTx(w.ctx, readCommitted); err != nil {
		t.Fatal(err)
	}
	w.claiming = u.tx // which a failure from here on leaves open
	found, err := pgstore.ClaimIn(w.ctx, u.tx, u.claimer.ids, u.handlers, u.id)
	if err != nil {
		t.Fatalf("Claim: %v", err)
	}
	var missed []worker.ClaimResult
	for _, f := range byEvent(found) {
		if !f.Facts.Claimed {
			missed = append(missed, f)
			continue
		}
		u.got, u.ids, u.held[f.Event.ID] = append(u.got, f), append(u.ids, f.Event.ID), true
	}
	for _, r := range w.mem.Events() {
		u.rows[r.ID] = r
	}
	others := u.claimer
	others.ids = u.free(others.ids)
	same(t, "Claim, of what it did not get", missed, others.claim(t, w, w.mem))
	return u
}

// rollBack gives back what the claim holds.
func (u *underWay) rollBack(w *world) {
	_ = u.tx.Rollback(w.ctx) // after a commit there is nothing to give back
	w.claiming = nil
}

// commit has the model claim, too.
func (u *underWay) commit(t *rapid.T, w *world) {
	t.Helper()
	if err := u.tx.Commit(w.ctx); err != nil {
		t.Fatalf("commit a claim: %v", err)
	}
	c := u.claimer
	c.ids = u.ids
	same(t, "Claim", byEvent(u.got), c.claim(t, w, w.mem))
	w.recordClaims(u.got)
}

// free are those of the ids that the claim does not hold.
func (u *underWay) free(ids []eventqueue.EventID) []eventqueue.EventID {
	return slices.DeleteFunc(slices.Clone(ids), func(id eventqueue.EventID) bool { return u.held[id] })
}

// claimUnderWay has others claim, renew, complete and notify events that a claim is
// about to take: none of them waits for it, and it may commit or not.
func (w *world) claimUnderWay(t *rapid.T) {
	u := w.beginClaim(t)
	defer u.rollBack(w)
	for range rapid.IntRange(1, 3).Draw(t, "meanwhile") {
		switch pick(t, "what", []string{"claim", "renew", "complete", "markPending", "takePending"}) {
		case "claim":
			u.othersClaim(t, w)
		case "renew":
			u.othersRenew(t, w)
		case "complete":
			u.othersComplete(t, w)
		case "markPending":
			ids := w.drawIDs(t, "ids")
			w.sameErrors(t, w.store.MarkPending(w.ctx, ids), w.mem.MarkPending(w.ctx, u.free(ids)), false)
		case "takePending":
			ids := w.drawIDs(t, "ids")
			pg, pgErr := w.store.TakePending(w.ctx, ids)
			mem, memErr := w.mem.TakePending(w.ctx, u.free(ids))
			w.sameErrors(t, pgErr, memErr, false)
			same(t, "TakePending beside a claim", byNotified(pg), byNotified(mem))
		}
	}
	if rapid.IntRange(0, 3).Draw(t, "commit") > 0 {
		u.commit(t, w)
	}
}

// othersClaim must see the rows as they were before the claim, and not get them.
func (u *underWay) othersClaim(t *rapid.T, w *world) {
	c := w.drawClaimer(t)
	pg := c.claim(t, w, w.store)
	all := c.ids
	c.ids = u.free(all)
	mem := c.claim(t, w, w.mem)
	for _, id := range all {
		if u.held[id] {
			mem = append(mem, c.check(t, w, id)...)
		}
	}
	same(t, "Claim beside a claim", pg, byEvent(mem))
	w.recordClaims(pg)
}

func (u *underWay) othersRenew(t *rapid.T, w *world) {
	claims := w.drawClaims(t)
	pg, pgErr := w.store.Renew(w.ctx, claims)
	free, lost := u.split(claims)
	mem, memErr := w.mem.Renew(w.ctx, free)
	w.sameErrors(t, pgErr, memErr, false)
	mem.Lost = append(mem.Lost, lost...)
	same(t, "Renew beside a claim", byID(pg), byID(mem))
}

func (u *underWay) othersComplete(t *rapid.T, w *world) {
	ends, retain := w.drawCompletions(t, storableErrors), rapid.Bool().Draw(t, "retain")
	pg, pgErr := w.store.Complete(w.ctx, nil, ends, retain)
	claims := make([]worker.Claim, len(ends))
	for i := range ends {
		claims[i] = ends[i].Claim
	}
	free, lost := u.split(claims)
	ends = slices.DeleteFunc(ends, func(end worker.Completion) bool { return !slices.Contains(free, end.Claim) })
	mem, memErr := w.mem.Complete(w.ctx, nil, ends, retain)
	w.sameErrors(t, pgErr, memErr, false)
	mem.Lost = append(mem.Lost, lost...)
	same(t, "Finish beside a claim", byID(pg), byID(mem))
}

// split returns the claims of events that are free, and those events of the
// others whose claims do not hold. One that does is neither: its row is being
// written.
func (u *underWay) split(claims []worker.Claim) (free []worker.Claim, lost []eventqueue.EventID) {
	for _, c := range claims {
		switch {
		case !u.held[c.Event]:
			free = append(free, c)
		case !holds(u.rows[c.Event], c):
			lost = append(lost, c.Event)
		}
	}
	return free, lost
}

func holds(r row, c worker.Claim) bool {
	return r.ID == c.Event && r.Attempts == c.Attempt && r.ClaimID == c.ID && !r.LockedAt.IsZero()
}

const ruleWaitsSQL = `
SELECT EXISTS (
    SELECT FROM pg_locks
    WHERE relation = 'claim_barrier'::regclass AND NOT granted
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))`

// ruleWaitsForClaim adds a rule while a claim is under way. It must not return
// before the claim has committed (I7).
func (w *world) ruleWaitsForClaim(t *rapid.T) {
	u := w.beginClaim(t)
	kind, scope := pick(t, "type", ruleTypes), drawScope(t)
	var added bool
	var pgErr error
	done := make(chan struct{})
	go func() {
		defer close(done)
		added, pgErr = w.store.AddRule(w.ctx, operate.RuleOf(kind, scope))
	}()
	defer func() {
		u.rollBack(w)
		<-done
	}()
	for waits := false; !waits; {
		select {
		case <-done:
			t.Fatalf("AddRule has not waited for a claim that is under way; its error: %v", pgErr)
		default:
		}
		if err := w.pool.QueryRow(w.ctx, ruleWaitsSQL).Scan(&waits); err != nil {
			t.Fatal(err)
		}
	}
	u.commit(t, w)
	<-done
	mem, memErr := w.mem.AddRule(w.ctx, operate.RuleOf(kind, scope))
	w.sameErrors(t, pgErr, memErr, false)
	same(t, "AddRule", added, mem)
}
