package inspect

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue"
)

// ValueChecker is a handler that can say of an event, without running it, why it could not read its value, as
// those of typed events can. The error is nil if it could.
type ValueChecker interface {
	CheckValue(e *eventqueue.Event) error
}

// Unfit are waiting events of one handler that a program could not run, all for the same reason.
type Unfit struct {
	Canvas  eventqueue.CanvasID
	Handler eventqueue.HandlerKey
	// Unknown reports whether the program has no such handler. Otherwise Problem says what the handler cannot read.
	Unknown bool
	Problem string
	Events  int
	// First is the event of the lowest id.
	First eventqueue.EventID
}

// Fitness is how the waiting events fit the handlers of a program.
type Fitness struct {
	// Checked is how many events were waiting.
	Checked int
	// Unfit are those that do not fit, by canvas and handler: at most MaxUnfit of them.
	Unfit []Unfit
	// More reports whether there are further ones.
	More bool
}

// MaxUnfit bounds the entries of a Fitness.
const MaxUnfit = 1000

const (
	unfitPage      = 10_000
	unfitPageBytes = 8 << 20
)

const (
	lastWaitingSQL = `SELECT coalesce(max(id), 0) FROM events_v2`

	waitingHandlersSQL = `
SELECT id, canvas_id, module, name, modifier, octet_length(value)
FROM events_v2
WHERE id > $1 AND id <= $2
ORDER BY id
LIMIT $3`

	waitingValuesSQL = `SELECT id, value FROM events_v2 WHERE id = ANY ($1) ORDER BY id`
)

// Fitness finds the waiting events that handlers do not know, or whose values they could not read, before a
// program with these handlers is deployed. It runs none, and changes nothing. It reads the whole queue once, in
// pages: events that are emitted meanwhile are left out. Of the handlers, only a ValueChecker is asked about
// values.
func (r *Reader) Fitness(ctx context.Context, handlers *eventqueue.Handlers) (f Fitness, err error) {
	var last eventqueue.EventID
	if err := r.pool.QueryRow(ctx, lastWaitingSQL).Scan(&last); err != nil {
		return f, fmt.Errorf("check the waiting events: %w", err)
	}
	found := unfitEvents{}
	for after := eventqueue.EventID(0); ; {
		events, sizes, err := r.waitingHandlers(ctx, after, last)
		if err != nil {
			return f, fmt.Errorf("check the waiting events after %s: %w", after, err)
		}
		if len(events) == 0 {
			break
		}
		f.Checked += len(events)
		if err := r.checkPage(ctx, handlers, events, sizes, found); err != nil {
			return f, fmt.Errorf("check the values of the events after %s: %w", after, err)
		}
		after = events[len(events)-1].ID
	}
	f.Unfit, f.More = found.sorted()
	return f, nil
}

// unfitEvents are counted by what they have in common: an Unfit without its Events and First.
type unfitEvents map[Unfit]*Unfit

func (u unfitEvents) add(e *eventqueue.Event, problem string) {
	key := Unfit{Canvas: e.Canvas, Handler: e.Handler(), Unknown: problem == "", Problem: problem}
	all := u[key]
	if all == nil {
		if len(u) > MaxUnfit {
			return
		}
		first := key
		first.First = e.ID
		u[key], all = &first, &first
	}
	all.Events++
}

func (u unfitEvents) sorted() (unfit []Unfit, more bool) {
	for _, all := range u {
		unfit = append(unfit, *all)
	}
	slices.SortFunc(unfit, func(a, b Unfit) int {
		return cmp.Or(slices.Compare(a.Canvas[:], b.Canvas[:]), cmp.Compare(a.Handler.String(), b.Handler.String()), cmp.Compare(a.First, b.First))
	})
	return unfit[:min(len(unfit), MaxUnfit)], len(unfit) > MaxUnfit
}

// checkPage checks a page of events, and reads the values that a handler checks.
func (r *Reader) checkPage(ctx context.Context, handlers *eventqueue.Handlers, events []eventqueue.Event, sizes []int, found unfitEvents) error {
	toCheck, bytes := map[eventqueue.EventID]*eventqueue.Event{}, 0
	for i := range events {
		e := &events[i]
		registered, known := handlers.Lookup(e)
		if !known {
			found.add(e, "")
			continue
		}
		if _, checks := registered.Handler.(ValueChecker); !checks {
			continue
		}
		toCheck[e.ID] = e
		if bytes += sizes[i]; bytes < unfitPageBytes {
			continue
		}
		if err := r.checkValues(ctx, handlers, toCheck, found); err != nil {
			return err
		}
		clear(toCheck)
		bytes = 0
	}
	return r.checkValues(ctx, handlers, toCheck, found)
}

// checkValues reads the values of events and has their handlers check them. Events that have ended are left out.
func (r *Reader) checkValues(ctx context.Context, handlers *eventqueue.Handlers, events map[eventqueue.EventID]*eventqueue.Event, found unfitEvents) error {
	if len(events) == 0 {
		return nil
	}
	rows, err := r.pool.Query(ctx, waitingValuesSQL, slices.Collect(maps.Keys(events)))
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var id eventqueue.EventID
		var value []byte
		if err := rows.Scan(&id, &value); err != nil {
			return err
		}
		e := *events[id]
		e.Value = value
		registered, _ := handlers.Lookup(&e) // it was found before
		if err := registered.Handler.(ValueChecker).CheckValue(&e); err != nil {
			found.add(&e, err.Error())
		}
	}
	return rows.Err()
}

func (r *Reader) waitingHandlers(ctx context.Context, after, last eventqueue.EventID) (events []eventqueue.Event, sizes []int, err error) {
	rows, err := r.pool.Query(ctx, waitingHandlersSQL, after, last, unfitPage)
	if err != nil {
		return nil, nil, err
	}
	events, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (e eventqueue.Event, err error) {
		var size int
		err = row.Scan(&e.ID, (*[16]byte)(&e.Canvas), &e.Module, &e.Name, &e.Modifier, &size)
		sizes = append(sizes, size)
		return e, err
	})
	return events, sizes, err
}
