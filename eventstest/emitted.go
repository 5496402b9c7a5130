package eventstest

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/internal/envelope"
)

// Emitted is an event that was emitted, and may have ended since.
type Emitted struct {
	eventqueue.Event

	// Delay is how long after its emit the event was due, or is now if it was tried since; 0 once it has ended.
	Delay time.Duration

	// Ended reports whether the event has left the queue.
	Ended bool
}

// String shows the event in a line, its value cut to some length.
func (e Emitted) String() string {
	text := fmt.Sprintf("event %s for %s", e.ID, e.Handler())
	for _, part := range []struct{ name, value string }{{"ordering key", e.OrderingKey}, {"unique key", e.UniqueKey}, {"priority", e.Priority}} {
		if part.value != "" {
			text += fmt.Sprintf(", %s %q", part.name, part.value)
		}
	}
	if e.Delay > 0 {
		text += ", delayed by " + e.Delay.String()
	}
	if e.Ended {
		text += ", which has ended"
	}
	return text + ": " + shortened(string(e.Value))
}

// emittedSQL is one text, so that it can be read with pgx and with database/sql alike.
const emittedSQL = `
SELECT coalesce(json_agg(e ORDER BY e.id), '[]')::text
FROM (
    SELECT id, canvas_id, module, name, modifier, value, coalesce(attributes, '{}') AS attributes, coalesce(parent_id, 0) AS parent_id,
        ordering_key, coalesce(unique_key, '') AS unique_key, coalesce(priority::text, '') AS priority,
        (extract(epoch FROM delay_until - enqueued_at) * 1000000)::bigint AS delay_us, false AS ended,
        delay_until, enqueued_at, retries
    FROM events_v2
    UNION ALL
    SELECT id, canvas_id, module, name, modifier, value, coalesce(attributes, '{}'), coalesce(parent_id, 0),
        coalesce(ordering_key, ''), coalesce(unique_key, ''), '', 0, true,
        '0001-01-01 00:00Z', enqueued_at, retries
    FROM event_log
) AS e`

// row is an event of emittedSQL.
type row struct {
	ID          eventqueue.EventID  `json:"id"`
	Canvas      eventqueue.CanvasID `json:"canvas_id"`
	Module      string              `json:"module"`
	Name        string              `json:"name"`
	Modifier    string              `json:"modifier"`
	Value       string              `json:"value"`
	Attributes  map[string]string   `json:"attributes"`
	ParentID    eventqueue.EventID  `json:"parent_id"`
	OrderingKey string              `json:"ordering_key"`
	UniqueKey   string              `json:"unique_key"`
	Priority    string              `json:"priority"`
	DelayMicros int64               `json:"delay_us"`
	Ended       bool                `json:"ended"`
	DelayUntil  time.Time           `json:"delay_until"`
	EnqueuedAt  time.Time           `json:"enqueued_at"`
	Retries     int                 `json:"retries"`
}

func (r row) emitted() Emitted {
	e := Emitted{Delay: time.Duration(max(r.DelayMicros, 0)) * time.Microsecond, Ended: r.Ended}
	e.Event = eventqueue.Event{ID: r.ID, Canvas: r.Canvas, Module: r.Module, Name: r.Name, Modifier: r.Modifier, Value: json.RawMessage(r.Value),
		Attributes: r.Attributes, ParentID: r.ParentID, OrderingKey: r.OrderingKey, UniqueKey: r.UniqueKey, Priority: r.Priority, Retries: r.Retries,
		DelayUntil: r.DelayUntil, EnqueuedAt: r.EnqueuedAt}
	return e
}

// View is what was emitted, as one transaction sees it. Queue.In and Queue.InSQL return it.
type View struct {
	queue *Queue
	scan  func(ctx context.Context, query string, into *string) error
	in    string // in messages
}

// In is for what was emitted in a transaction of pgx that has not ended, such as that of [eventqueue.Queue.InTx] and
// [eventqueue.Run.CompleteTx] or of EmitTx, with what was committed before.
func (q *Queue) In(tx eventqueue.DB) View {
	return View{q, func(ctx context.Context, query string, into *string) error {
		return tx.QueryRow(ctx, query).Scan(into)
	}, " in this transaction or before it"}
}

// InSQL is In for a transaction of database/sql.
func (q *Queue) InSQL(tx *sql.Tx) View {
	return View{q, func(ctx context.Context, query string, into *string) error {
		return tx.QueryRowContext(ctx, query).Scan(into)
	}, " in this transaction or before it"}
}

// committed is for what everybody sees.
func (q *Queue) committed() View {
	v := q.In(q.config.Pool)
	v.in = ""
	return v
}

// Emitted returns all events that were emitted, in the order of their ids, whether they wait or have ended.
func (v View) Emitted() []Emitted {
	t := v.queue.t
	t.Helper()
	var text string
	v.queue.must("read the events", v.scan(t.Context(), v.queue.config.Schema.SQL(emittedSQL), &text))
	var rows []row
	v.queue.must("read the events", json.Unmarshal([]byte(text), &rows))
	all := make([]Emitted, len(rows))
	for i, r := range rows {
		all[i] = r.emitted()
		v.queue.openValue(&all[i].Event)
	}
	return all
}

// openValue opens a value that the Codec of the program has encrypted.
func (q *Queue) openValue(e *eventqueue.Event) {
	q.t.Helper()
	if q.config.Codec == nil || !envelope.Is(e.Value) {
		return
	}
	value, err := q.config.Codec.Open(e)
	q.must("open the value of event "+e.ID.String(), err)
	e.Value, e.Encrypted = value, true
}

// RequireEmitted is RequireEmitted of Queue.
func (v View) RequireEmitted(want any) Emitted {
	t := v.queue.t
	t.Helper()
	pattern := v.pattern("RequireEmitted", want)
	all := v.Emitted()
	for i := len(all) - 1; i >= 0; i-- {
		if len(pattern.differences(&all[i])) == 0 {
			return all[i]
		}
	}
	t.Fatalf("eventstest: no such event was emitted%s: %s\n%s", v.in, pattern, pattern.instead(all, v.in == ""))
	return Emitted{}
}

// RequireNotEmitted is RequireNotEmitted of Queue.
func (v View) RequireNotEmitted(unwanted any) {
	t := v.queue.t
	t.Helper()
	pattern := v.pattern("RequireNotEmitted", unwanted)
	var found []string
	for _, e := range v.Emitted() {
		if len(pattern.differences(&e)) == 0 {
			found = append(found, "\t"+e.String())
		}
	}
	if len(found) > 0 {
		t.Fatalf("eventstest: what should not be emitted was%s: %s\n%s", v.in, pattern, strings.Join(found[:min(len(found), mostShown)], "\n"))
	}
}

// Emitted returns all events that were emitted and committed, in the order of their ids, whether they wait or have ended.
func (q *Queue) Emitted() []Emitted {
	q.t.Helper()
	return q.committed().Emitted()
}

// RequireEmitted fails the test unless an event like want was emitted and committed, and returns the last such event,
// whether it waits or has ended. want is one of:
//
//   - an [eventqueue.NewEvent], of which the fields that are set are compared. Values are compared as JSON, and the
//     event may have more attributes. A Delay, or a DelayUntil, can be compared until the event has been tried again or has ended, and a
//     Priority until the event has ended.
//   - a typed event that is known to Service, by its handling key and its fields, and by what typed.With sets.
//
// What handlers have emitted counts as well. The failure lists what was emitted instead, and how the nearest of it differs.
func (q *Queue) RequireEmitted(want any) Emitted {
	q.t.Helper()
	return q.committed().RequireEmitted(want)
}

// RequireNotEmitted fails the test if an event was emitted and committed that is like one for RequireEmitted.
func (q *Queue) RequireNotEmitted(unwanted any) {
	q.t.Helper()
	q.committed().RequireNotEmitted(unwanted)
}
