package sim

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/maintenance"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/eventqueue/worker"
	"eventsv2/internal/refusal"
	"eventsv2/test/oracle"
)

// port is the database as a process sees it: through the gate, and with every
// change written into the history in the step in which it happens.
type port struct {
	operate.ChangeStore // nil: of the history, which is not simulated

	db *pgstore.Store
	p  *process
}

// store is the database as the process sees it.
func (p *process) store() *port { return &port{db: p.db, p: p} }

var (
	_ eventqueue.EmitStore = (*port)(nil)
	_ worker.Store         = (*port)(nil)
	_ operate.RuleStore    = (*port)(nil)
)

func (s *port) do(ctx context.Context, op, key string, f func() (string, error)) error {
	return s.p.do(ctx, call{to: database, op: op, key: key}, f)
}

// Claim implements worker.Store.
func (s *port) Claim(ctx context.Context, ids []eventqueue.EventID, known eventqueue.HandlerSet, claim eventqueue.ClaimID) (found []worker.ClaimResult, err error) {
	err = s.do(ctx, "Claim", fmt.Sprint(ids), func() (string, error) {
		found, err = s.db.Claim(ctx, ids, known, claim)
		slices.SortFunc(found, func(a, b worker.ClaimResult) int { return cmp.Compare(a.Event.ID, b.Event.ID) })
		s.p.spoilt("Claim", oracle.Claimed, err)
		s.p.w.claimed(s.p, found)
		s.p.rememberWrites(found)
		s.p.toClockEach(found)
		return describeFound(found), err
	})
	return onlyIf(found, err), err
}

func describeFound(found []worker.ClaimResult) string {
	var b strings.Builder
	for _, f := range found {
		fmt.Fprintf(&b, " %s:", f.Event.ID)
		switch {
		case f.Facts.Claimed:
			fmt.Fprintf(&b, "token %d", f.Attempt)
		default:
			fmt.Fprintf(&b, "rule %s, delay %s, lock %d, known %t", f.Facts.Rule, max(f.Facts.Delay, 0), f.Facts.Lock, f.Facts.HandlerKnown)
		}
	}
	return b.String()
}

// Complete implements worker.Store.
func (s *port) Complete(ctx context.Context, in eventqueue.DB, ends []worker.Completion, keep bool) (written worker.WriteResult, err error) {
	ends = slices.SortedFunc(slices.Values(ends), func(a, b worker.Completion) int {
		return cmp.Or(cmp.Compare(a.Event, b.Event), cmp.Compare(a.Attempt, b.Attempt))
	})
	var key strings.Builder
	for _, end := range ends {
		fmt.Fprintf(&key, " %s#%d:%s", end.Event, end.Attempt, end.Label)
	}
	err = s.do(ctx, "Finish", key.String(), func() (string, error) {
		s.p.forgetPlaces(ends)
		written, err = s.db.Complete(ctx, raw(in), ends, keep)
		inOrderOf(&written)
		s.p.spoilt("Finish", oracle.Written, err)
		if err != nil && !refusal.Is(err) {
			for i := range ends {
				s.p.w.failDispatch(s.p, &ends[i])
			}
			return "", err
		}
		s.p.w.refused(s.p, ends, written.Lost)
		s.p.w.record(in, func() { s.p.w.written(s.p, ends, written.Done, in != nil) })
		return fmt.Sprintf("done %v, lost %v", written.Done, written.Lost), err
	})
	return written, err
}

// GiveBack implements worker.Store.
func (s *port) GiveBack(ctx context.Context, claim eventqueue.ClaimID, ids []eventqueue.EventID) (given []eventqueue.EventID, err error) {
	ids = slices.Sorted(slices.Values(ids))
	err = s.do(ctx, "GiveBack", fmt.Sprint(ids), func() (string, error) {
		given, err = s.db.GiveBack(ctx, claim, ids)
		slices.Sort(given)
		s.p.spoilt("GiveBack", oracle.Written, err)
		for _, id := range given {
			s.p.w.add(oracle.Record{Kind: oracle.Written, Actor: s.p.name, Event: id, Attempt: s.p.w.row(id).Attempts, Label: machine.Released})
		}
		return fmt.Sprint(given), err
	})
	return onlyIf(given, err), err
}

// Runnable implements worker.Store.
func (s *port) Runnable(ctx context.Context, after eventqueue.Scope, except []eventqueue.CanvasID) (events []eventqueue.Event, next eventqueue.Scope, err error) {
	err = s.do(ctx, "Runnable", fmt.Sprint(after, except), func() (string, error) {
		events, next, err = s.db.Runnable(ctx, after, except)
		events = s.p.w.aloneOf(events)
		return fmt.Sprint(idsOf(events, func(e eventqueue.Event) eventqueue.EventID { return e.ID })), err
	})
	return onlyIf(events, err), onlyIf(next, err), err
}

// RunnablePriority implements worker.Store.
func (s *port) RunnablePriority(ctx context.Context, priority string, after eventqueue.Scope, most int) (events []eventqueue.Event, next eventqueue.Scope, err error) {
	err = s.do(ctx, "RunnablePriority", fmt.Sprint(priority, after), func() (string, error) {
		events, next, err = s.db.RunnablePriority(ctx, priority, after, most)
		events = s.p.w.aloneOf(events)
		return fmt.Sprint(idsOf(events, func(e eventqueue.Event) eventqueue.EventID { return e.ID })), err
	})
	return onlyIf(events, err), onlyIf(next, err), err
}

// LowRest implements maintenance.LowStore.
func (s *port) LowRest() time.Duration { return s.db.LowRest() }

// Advance implements worker.Store.
func (s *port) Advance(ctx context.Context, left, arrived []eventqueue.EventID) (advanced []eventqueue.Event, err error) {
	err = s.do(ctx, "Advance", fmt.Sprint(left, arrived), func() (string, error) {
		defer s.p.w.takingBack(s.p)()
		advanced, err = s.db.Advance(ctx, left, arrived)
		byID(advanced)
		return fmt.Sprint(idsOf(advanced, func(e eventqueue.Event) eventqueue.EventID { return e.ID })), err
	})
	return onlyIf(advanced, err), err
}

// Renew implements worker.Store.
func (s *port) Renew(ctx context.Context, claims []worker.Claim) (worker.WriteResult, error) {
	return s.renew(ctx, claims, 0)
}

// BeginRuns implements worker.Store.
func (s *port) BeginRuns(ctx context.Context, claims []worker.Claim, together int) (worker.WriteResult, error) {
	return s.renew(ctx, claims, together)
}

func (s *port) renew(ctx context.Context, claims []worker.Claim, together int) (written worker.WriteResult, err error) {
	claims = slices.SortedFunc(slices.Values(claims), func(a, b worker.Claim) int {
		return cmp.Or(cmp.Compare(a.Event, b.Event), cmp.Compare(a.Attempt, b.Attempt))
	})
	name, write := "Renew", s.db.Renew
	if together > 0 {
		name, write = "BeginRuns", func(ctx context.Context, claims []worker.Claim) (worker.WriteResult, error) {
			return s.db.BeginRuns(ctx, claims, together)
		}
	}
	err = s.do(ctx, name, fmt.Sprint(claims, together), func() (string, error) {
		written, err = write(ctx, claims)
		inOrderOf(&written)
		s.p.spoilt(name, oracle.Renewed, err)
		s.p.w.renewed(s.p, claims, written.Done, together)
		return fmt.Sprintf("done %v, lost %v", written.Done, written.Lost), err
	})
	return written, err
}

// Value implements worker.Store.
func (s *port) Value(ctx context.Context, claim worker.Claim) (value json.RawMessage, held bool, err error) {
	err = s.do(ctx, "Value", claim.String(), func() (string, error) {
		value, held, err = s.db.Value(ctx, claim)
		return fmt.Sprintf("%d bytes, held: %t", len(value), held), err
	})
	return value, held, err
}

// LeavePending implements maintenance.RelayStore.
func (s *port) LeavePending(ctx context.Context, ids []eventqueue.EventID) error {
	return s.do(ctx, "LeavePending", fmt.Sprint(ids), func() (string, error) { return "", s.db.LeavePending(ctx, ids) })
}

// Sweep implements maintenance.RelayStore.
func (s *port) Sweep(ctx context.Context, after eventqueue.EventID, limit int, lostAfter time.Duration) (swept maintenance.Swept, err error) {
	err = s.do(ctx, "Sweep", after.String(), func() (string, error) {
		defer s.p.w.takingBack(s.p)()
		swept, err = s.db.Sweep(ctx, after, limit, lostAfter)
		byEvent(swept.Lost)
		return eventsOf(swept.Lost), err
	})
	return onlyIf(swept, err), err
}

// TakeRound implements maintenance.RelayStore.
func (s *port) TakeRound(ctx context.Context, after maintenance.RoundPlace, lostAfter time.Duration) (lost []eventqueue.Notification, next maintenance.RoundPlace, err error) {
	err = s.do(ctx, "TakeRound", fmt.Sprint(after), func() (string, error) {
		defer s.p.w.takingBack(s.p)()
		lost, next, err = s.db.TakeRound(ctx, after, lostAfter)
		byEvent(lost)
		return eventsOf(lost), err
	})
	return onlyIf(lost, err), onlyIf(next, err), err
}

// AddRule implements operate.RuleStore.
func (s *port) AddRule(ctx context.Context, rule operate.Rule) (added bool, err error) {
	err = s.do(ctx, "AddRule", fmt.Sprint(rule.Type, " of ", rule.RuleScope), func() (string, error) {
		if !rule.Until.IsZero() {
			rule.Until = s.p.fromClock(rule.Until)
		}
		added, err = s.db.AddRule(ctx, rule)
		return fmt.Sprintf("added %t", added), err
	})
	return onlyIf(added, err), err
}

// LiftRule implements operate.RuleStore.
func (s *port) LiftRule(ctx context.Context, lift operate.Lift) (lifted operate.Lifted, err error) {
	err = s.do(ctx, "LiftRule", fmt.Sprint(lift.Type, " of ", lift.RuleScope), func() (string, error) {
		lifted, err = s.db.LiftRule(ctx, lift)
		lifted.At = s.p.toClock(lifted.At)
		return fmt.Sprintf("removed %t, last %t", lifted.Removed, lifted.Last), err
	})
	return onlyIf(lifted, err), err
}

// Release implements operate.RuleStore.
func (s *port) Release(ctx context.Context, t operate.RuleType, scope operate.RuleScope) (released operate.Released, err error) {
	err = s.do(ctx, "Release", fmt.Sprint(t, " of ", scope), func() (string, error) {
		released, err = s.db.Release(ctx, t, scope)
		released.At = s.p.toClock(released.At)
		return fmt.Sprintf("removed %t, goes on %t, up to %d", released.Removed, released.GoesOn, released.UpTo), err
	})
	return onlyIf(released, err), err
}

// Woken implements operate.RuleStore: nothing wakes a relay.
func (*port) Woken() <-chan struct{} { return nil }

// RulesToLift implements operate.RuleStore.
func (s *port) RulesToLift(ctx context.Context, within time.Duration) (rules []operate.RuleToLift, err error) {
	err = s.do(ctx, "RulesToLift", "", func() (string, error) {
		rules, err = s.db.RulesToLift(ctx, within)
		for i := range rules {
			if !rules[i].Until.IsZero() {
				rules[i].Until = s.p.toClock(rules[i].Until)
			}
		}
		return fmt.Sprint(len(rules), " rules"), err
	})
	return onlyIf(rules, err), err
}

// WaitingScopes implements operate.RuleStore.
func (s *port) WaitingScopes(ctx context.Context, scope operate.RuleScope) (scopes []eventqueue.Scope, err error) {
	err = s.do(ctx, "WaitingScopes", fmt.Sprint(scope), func() (string, error) {
		scopes, err = s.db.WaitingScopes(ctx, scope)
		return fmt.Sprint(len(scopes), " handlers"), err
	})
	return onlyIf(scopes, err), err
}

// TakeWaiting implements operate.RuleStore.
func (s *port) TakeWaiting(ctx context.Context, of operate.Waiting, limit int) (taken []eventqueue.Notification, next eventqueue.EventID, err error) {
	err = s.do(ctx, "TakeWaiting", fmt.Sprint(of.Scope, " after ", of.After), func() (string, error) {
		of.Since = s.p.fromClock(of.Since)
		taken, next, err = s.db.TakeWaiting(ctx, of, limit)
		byEvent(taken)
		return eventsOf(taken), err
	})
	return onlyIf(taken, err), onlyIf(next, err), err
}

// What a statement returns in no promised order depends on where its rows are, and that on what other databases do.
// A process gets it in the order of the ids.

func byEvent(list []eventqueue.Notification) {
	slices.SortFunc(list, func(a, b eventqueue.Notification) int { return cmp.Compare(a.Event, b.Event) })
}

func byID(list []eventqueue.Event) {
	slices.SortFunc(list, func(a, b eventqueue.Event) int { return cmp.Compare(a.ID, b.ID) })
}

func inOrderOf(written *worker.WriteResult) {
	slices.Sort(written.Done)
	slices.Sort(written.Lost)
	byID(written.Advanced)
}

// onlyIf is what a caller may see: nothing when there was an error, unless that names refused rows beside the others.
func onlyIf[T any](value T, err error) T {
	if err != nil && !refusal.Is(err) {
		var nothing T
		return nothing
	}
	return value
}

func idsOf[T any](from []T, id func(T) eventqueue.EventID) []eventqueue.EventID {
	ids := make([]eventqueue.EventID, len(from))
	for i, one := range from {
		ids[i] = id(one)
	}
	return ids
}

func eventsOf(notifications []eventqueue.Notification) string {
	return fmt.Sprint(idsOf(notifications, func(n eventqueue.Notification) eventqueue.EventID { return n.Event }))
}

// keysFree is when an insert may pass: one that waits for another's transaction within
// the database would not know when its turn has come.
func (s *port) keysFree(events []eventqueue.NewEvent) func() time.Time {
	return func() time.Time {
		if s.p.w.tables.keysFree(events) {
			return time.Time{}
		}
		return s.p.w.never()
	}
}

// DeleteKeys implements maintenance.UniqueStore.
func (s *port) DeleteKeys(ctx context.Context, after eventqueue.UniqueKey, limit int) (forgotten int, next eventqueue.UniqueKey, err error) {
	err = s.do(ctx, "DeleteKeys", fmt.Sprint(after), func() (string, error) {
		forgotten, next, err = s.db.DeleteKeys(ctx, after, limit)
		return fmt.Sprint(forgotten), err
	})
	return onlyIf(forgotten, err), onlyIf(next, err), err
}
