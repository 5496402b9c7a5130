package pgstore_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/worker"
)

// emit inserts a few events, sometimes in a transaction that stays open.
func (m *member) emit(ctx context.Context) {
	events := make([]eventqueue.NewEvent, 1+m.dice.IntN(4))
	for i := range events {
		events[i] = m.event()
	}
	var tx eventqueue.DB
	if m.dice.IntN(4) == 0 && len(m.open) == 0 {
		for i := range events {
			events[i].UniqueKey = "" // who repeats one would wait for the end of the transaction
		}
		opened, err := m.pool.Begin(ctx)
		if !m.must("begin", err) {
			return
		}
		m.open, tx = append(m.open, opened), opened
	}
	if m.first && tx == nil {
		e := event()
		e.Name, e.OrderingKey = "two", inOrder
		events = append(events, e)
	}
	inserted, err := m.store.Insert(ctx, tx, events, eventqueue.NotifyModeSelf)
	if !m.must("emit", err) {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, e := range inserted {
		m.heard = append(m.heard, e.ID)
		if events[i].OrderingKey == inOrder {
			m.order[e.ID] = true
		}
	}
}

// close ends a transaction, one way or the other.
func (m *member) close(ctx context.Context) {
	if len(m.open) == 0 {
		return
	}
	tx := m.open[0]
	m.open = m.open[1:]
	if m.dice.IntN(3) == 0 {
		m.must("roll back", tx.Rollback(ctx))
		return
	}
	m.must("commit", tx.Commit(ctx))
}

// limit changes a limit on the canvas where they change.
func (m *member) limit(ctx context.Context) {
	l := operate.ConcurrencyLimit{Canvas: canvas, Max: m.dice.IntN(4)} // 0 removes it
	switch m.dice.IntN(4) {
	case 0:
		l.Module, l.Name = "WORKER", crowdNames[m.dice.IntN(2)]
	case 1:
		l.Key = "a"
	case 2:
		l.EveryKey = true
		l.Max = 0 // inOrder is one at a time
	}
	_, err := m.store.SetConcurrencyLimit(ctx, l)
	m.must("limit", err)
	advanced, _, err := m.store.FillGroups(ctx, l, "")
	m.must("fill lines", err)
	m.given(advanced)
}

// byHand deletes an event, or lets a worker die: its lock is old.
func (m *member) byHand(ctx context.Context) {
	if len(m.held) > 0 && m.dice.IntN(2) == 0 {
		_, err := m.pool.Exec(ctx, `UPDATE events_v2 SET locked_at = locked_at - interval '1 hour' WHERE id = $1`, m.held[0].Event)
		m.must("expire", err)
		m.hear(m.held[0].Event)
		m.held = m.held[1:]
		return
	}
	_, err := m.pool.Exec(ctx, `DELETE FROM events_v2 WHERE id = ANY ($1) AND ordering_key <> 'in order'`, m.some(1+m.dice.IntN(2)))
	m.must("delete", err)
}

// given hears of turns, mostly.
func (m *member) given(advanced []eventqueue.Event) {
	for i := range advanced {
		if m.dice.IntN(10) > 0 {
			m.hear(advanced[i].ID)
		}
	}
}

// look does what a worker does with notifications.
func (m *member) look(ctx context.Context, ids []eventqueue.EventID) {
	found, err := m.store.Claim(ctx, ids, crowdKnown, 0)
	if !m.must("claim", err) {
		return
	}
	var left, arrived []eventqueue.EventID
	for _, f := range found {
		switch _, label := machine.DecideClaim(f.Facts); {
		case label == machine.Claimed:
			m.claimed(&f)
		case label == machine.NotItsTurn:
			arrived = append(arrived, f.Event.ID)
		case f.Grouped && (label == machine.DelayNotYet || m.dice.IntN(4) == 0): // a hint may be wrong
			left = append(left, f.Event.ID)
		}
	}
	advanced, err := m.store.Advance(ctx, left, arrived)
	m.must("take turns", err)
	m.given(advanced)
}

func (m *member) claimed(f *worker.ClaimResult) {
	m.held = append(m.held, worker.Completion{Claim: worker.Claim{Event: f.Event.ID, Attempt: f.Attempt},
		RowID: f.RowID, Unique: f.Unique, Grouped: f.Grouped})
	m.mu.Lock()
	defer m.mu.Unlock()
	m.claims++
	if m.order[f.Event.ID] {
		if f.Event.ID < m.last {
			m.broken = append(m.broken, fmt.Sprintf("event %s ran after %s", f.Event.ID, m.last))
		}
		m.last = f.Event.ID
	}
}

// end ends some of the runs, each in its own way.
func (m *member) end(ctx context.Context) {
	n := min(len(m.held), 1+m.dice.IntN(4))
	completions := slices.Clone(m.held[:n])
	m.held = m.held[n:]
	if n == 0 {
		return
	}
	m.mu.Lock()
	for i := range completions {
		completions[i].Label = machine.ExecutesToCompletion
		switch m.dice.IntN(8) {
		case 0:
			completions[i].Label, completions[i].LastError = machine.RetryTooMany, "no luck"
		case 1:
			completions[i].Label, completions[i].LastError = machine.FailedForGood, "no luck"
		case 2:
			completions[i].Label, completions[i].Delay = machine.RetryAllowed, time.Duration(m.dice.IntN(20))*time.Millisecond
		case 3:
			completions[i].Label, completions[i].Delay = machine.Snoozed, time.Duration(m.dice.IntN(20))*time.Millisecond
		case 4:
			completions[i].Label = machine.Released
		}
		if m.order[completions[i].Event] && completions[i].LastError != "" { // a retry by hand would come after others
			completions[i].Label = machine.ExecutesToCompletion
		}
		completions[i].Passes = !m.order[completions[i].Event] && m.dice.IntN(2) == 0
		m.heard = append(m.heard, completions[i].Event)
	}
	m.mu.Unlock()
	if m.dice.IntN(5) == 0 {
		m.endInTx(ctx, completions[0])
	}
	for range 20 {
		written, err := m.store.Complete(ctx, nil, completions, true)
		if m.must("finish", err) {
			m.given(written.Advanced)
		}
		if err == nil && len(written.Done)+len(written.Lost) == len(completions) {
			return
		}
	}
}

// endInTx completes an event in a transaction, which does not always commit.
func (m *member) endInTx(ctx context.Context, end worker.Completion) {
	tx, err := m.pool.Begin(ctx)
	if !m.must("begin", err) {
		return
	}
	defer func() { _ = tx.Rollback(ctx) }()
	end.Label, end.LastError = machine.ExecutesToCompletion, ""
	written, err := m.store.Complete(ctx, tx, []worker.Completion{end}, true)
	if m.must("finish in a transaction", err) && len(written.Advanced) > 0 {
		m.complain("a transaction has given the turns of %v before it has committed", written.Advanced)
	}
	if m.dice.IntN(2) == 0 {
		m.must("commit", tx.Commit(ctx))
	}
}

// leave ends the transactions of a member that goes; its claims are left.
func (m *member) leave(ctx context.Context) {
	for len(m.open) > 0 {
		m.close(ctx)
	}
}

// drain has a relay and one worker that heard of nothing finish what is left.
func (c *throng) drain(ctx context.Context) {
	c.exec(`UPDATE events_v2 SET locked_at = locked_at - interval '1 hour' WHERE locked_at IS NOT NULL`)
	m := &member{throng: c, store: c.store, dice: rand.New(rand.NewPCG(1, 1))}
	left := func() int { return one[int](c.rig, `SELECT count(*) FROM events_v2`) }
	most := 20 * (left() + 10)
	for range most {
		if left() == 0 {
			break
		}
		lost, _, err := m.store.TakeLost(ctx, 0, 10_000, time.Microsecond)
		m.must("take lost", err)
		due, err := m.store.TakeDue(ctx, 0, 1000, nil)
		m.must("take due", err)
		var ids []eventqueue.EventID
		for _, n := range append(lost, due...) {
			ids = append(ids, n.Event)
		}
		slices.Sort(ids)
		m.look(ctx, slices.Compact(ids))
		for i := range m.held {
			m.held[i].Label = machine.ExecutesToCompletion
		}
		_, err = m.store.Complete(ctx, nil, m.held, true)
		m.must("finish", err)
		m.held = nil
	}
	if n := left(); n > 0 {
		c.t.Errorf("%d events are stuck", n)
	}
	_, _, err := m.store.TakeLost(ctx, 0, 10_000, time.Microsecond)
	m.must("take lost", err)
	if n := one[int](c.rig, `SELECT count(*) FROM event_groups`); n > 0 {
		c.t.Errorf("%d places are left", n)
	}
}
