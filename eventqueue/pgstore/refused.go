package pgstore

import (
	"errors"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/maintenance"
	"eventsv2/internal/refusal"
	"eventsv2/internal/sqlstate"
)

// refusedRows are events whose rows the database refuses to write.
type refusedRows = refusal.Rows[eventqueue.EventID]

// around has write called with the events, and goes around the rows that the database refuses to
// write (I15). It returns these as a *refusal.Error. Those that were refused before and have to wait
// are left out. write is called with no events, too (see refusal.Halve).
func around(rows *refusedRows, ids []eventqueue.EventID, write func(ids []eventqueue.EventID) error) error {
	refused, err := halve(rows, ids, write)
	if refusedErr := named(rows, refused); err == nil {
		return refusedErr
	}
	return err
}

// halve is around, and returns the refused rows as they are.
func halve(rows *refusedRows, ids []eventqueue.EventID, write func(ids []eventqueue.EventID) error) ([]refusal.Refused[eventqueue.EventID], error) {
	together, alone, _ := rows.Part(ids)
	parts := [][]eventqueue.EventID{together}
	for i := range alone {
		parts = append(parts, alone[i:i+1])
	}
	return refusal.Halve(func(ids []eventqueue.EventID) error {
		err := write(ids)
		if err == nil {
			rows.Remove(ids)
		}
		return err
	}, parts...)
}

// named records refused rows, and returns them as a *refusal.Error; nil if there are none.
func named(rows *refusedRows, refused []refusal.Refused[eventqueue.EventID]) error {
	if len(refused) == 0 {
		return nil
	}
	err := &refusal.Error{}
	for _, r := range refused {
		err.Rows = append(err.Rows, refusal.Row{Event: r.Item, Wait: rows.Put(r.Item, refusal.MaxWait), Err: r.Err})
	}
	return err
}

// takeAround takes the events of a page in one statement. If the database refuses that, and while
// some row is known to be refused, it finds the events, and then takes them around such rows: taking
// makes the function for this, which adds those that are still to be taken. With await it always does so, and a
// page with nothing to take is one statement nevertheless. A crowd of refused rows
// takes a statement or two each, and what time that leaves is shared by all canvases (I20). What is
// returned was taken, whatever the error is.
func takeAround(rows *refusedRows, await maintenance.AwaitTake, take, find func() ([]eventqueue.Notification, error),
	taking func(taken *[]eventqueue.Notification) func(ids []eventqueue.EventID) error) (taken []eventqueue.Notification, err error) {
	if rows.Empty() && await == nil {
		if taken, err = take(); err == nil {
			return taken, nil
		}
		if !sqlstate.Refused(err) {
			return nil, err
		}
		taken = nil
	}
	found, err := find()
	if err != nil || len(found) == 0 {
		return nil, err
	}
	err = around(rows, inTurn(found), awaited(await, taking(&taken)))
	return taken, err
}

// awaited has each statement of take awaited by itself: the ones before it had their answers. await may be nil.
func awaited(await maintenance.AwaitTake, take func(ids []eventqueue.EventID) error) func(ids []eventqueue.EventID) error {
	if await == nil {
		return take
	}
	return func(ids []eventqueue.EventID) error {
		over := await(ids)
		err := take(ids)
		over(err)
		return err
	}
}

// inTurn returns the ids in an order in which no canvas waits for all of another's.
func inTurn(found []eventqueue.Notification) []eventqueue.EventID {
	ids := make([]eventqueue.EventID, len(found))
	for i, n := range maintenance.Interleaved(found) {
		ids[i] = n.Event
	}
	return ids
}

// outcome is the error of a method that has taken so many events. What is taken has to be published,
// even if the rest failed: then the errors are in a *refusal.Error.
func outcome(taken int, errs ...error) error {
	all := &refusal.Error{}
	for _, err := range errs {
		var refused *refusal.Error
		switch {
		case errors.As(err, &refused):
			all.Rows = append(all.Rows, refused.Rows...)
			all.Rest = errors.Join(all.Rest, refused.Rest)
		case err != nil && taken == 0:
			return err
		case err != nil:
			all.Rest = errors.Join(all.Rest, err)
		}
	}
	if len(all.Rows) == 0 && all.Rest == nil {
		return nil
	}
	return all
}
