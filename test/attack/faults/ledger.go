package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/internal/backoff"
	"eventsv2/test/attack/faults/emission"
)

// batch is what to emit.
type batch struct {
	label string // names the events in figures and messages
	n     int
	// canvas is the number of the tenant, name that of the handler ("": work).
	canvas byte
	name   string
	// every is the wait between two emits; 0 emits all of them at once.
	every time.Duration
	delay time.Duration
	key   func(i int) string // the ordering key of the i-th
}

func canvas(n byte) eventqueue.CanvasID { return eventqueue.CanvasID{0xfa, 0x17, 15: n + 1} }

// event is the i-th event of a batch.
func (b batch) event(i int) eventqueue.NewEvent {
	if b.name == "" {
		b.name = "work"
	}
	e := eventqueue.NewEvent{Canvas: canvas(b.canvas), Module: "WORKER", Name: b.name, Modifier: "_", Delay: b.delay,
		Value: json.RawMessage(fmt.Sprintf(`{ "event": "%s-%d",  "text": "ä€😀" }`, b.label, i))}
	if b.key != nil {
		e.OrderingKey = b.key(i)
	}
	return e
}

// most is how many events one emit of a batch has.
const most = 500

// emit emits a batch through the library; an emit that fails ends the scenario.
func (r *rig) emit(ctx context.Context, b batch) []eventqueue.EventID {
	return r.emitBy(ctx, b, func(ctx context.Context, events []eventqueue.NewEvent) ([]eventqueue.EventID, error) {
		return r.emitter.EmitMany(ctx, events)
	})
}

// emitBy emits a batch in some way.
func (r *rig) emitBy(ctx context.Context, b batch, emit func(context.Context, []eventqueue.NewEvent) ([]eventqueue.EventID, error)) []eventqueue.EventID {
	var ids []eventqueue.EventID
	size := most
	if b.every > 0 {
		size = 1
	}
	for i := 0; i < b.n; i += size {
		var events []eventqueue.NewEvent
		for j := i; j < min(i+size, b.n); j++ {
			events = append(events, b.event(j))
		}
		began := time.Now()
		got, err := emit(ctx, events)
		if err != nil || len(got) != len(events) {
			r.fatalf("emit %s: %d ids for %d events, %v", b.label, len(got), len(events), err)
		}
		for k, id := range got {
			e := events[k] // as emit has left it
			r.note(&entry{id: id, label: b.label, value: string(e.Value), key: e.OrderingKey, unique: e.UniqueKey, uniqueFor: e.UniqueFor,
				emitted: time.Now(), due: began.Add(b.delay)})
		}
		ids = append(ids, got...)
		backoff.Sleep(ctx, b.every)
	}
	return ids
}

// emitVia emits a batch through a program that embeds the library.
func (r *rig) emitVia(ctx context.Context, p *program, b batch) {
	to := r.url(ctx, p) + "/emit"
	r.emitBy(ctx, b, func(ctx context.Context, events []eventqueue.NewEvent) (ids []eventqueue.EventID, err error) {
		var asked []emission.Event
		for _, e := range events {
			asked = append(asked, emission.Of(e))
		}
		body, err := json.Marshal(asked)
		if err != nil {
			return nil, err
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
		if err != nil {
			return nil, err
		}
		reply, err := http.DefaultClient.Do(request)
		if err != nil {
			return nil, err
		}
		defer func() { _ = reply.Body.Close() }() // it is read
		text, err := io.ReadAll(reply.Body)
		if err == nil && reply.StatusCode != http.StatusOK {
			err = fmt.Errorf("%s says %s: %s", p.Name, reply.Status, text)
		}
		if err != nil {
			return nil, err
		}
		return ids, json.Unmarshal(text, &ids)
	})
}

func (r *rig) note(e *entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ledger = append(r.ledger, e)
	r.labels[e.label] = append(r.labels[e.label], e)
}

const insertSQL = `
INSERT INTO events_v2 (canvas_id, module, name, modifier, value, delay_until)
SELECT $1, $2, $3, $4, value, clock_timestamp() + $5
  FROM unnest($6::text[]) AS value
RETURNING id`

// insert emits a batch as somebody does who has only SQL.
func (r *rig) insert(ctx context.Context, b batch) {
	r.emitBy(ctx, b, func(ctx context.Context, events []eventqueue.NewEvent) (ids []eventqueue.EventID, err error) {
		var values []string
		for _, e := range events {
			values = append(values, string(e.Value))
		}
		first := events[0]
		rows, err := r.db.Query(ctx, insertSQL, [16]byte(first.Canvas), first.Module, first.Name, first.Modifier, b.delay, values)
		if err != nil {
			return nil, err
		}
		defer rows.Close()
		for rows.Next() {
			var id eventqueue.EventID
			if err := rows.Scan(&id); err != nil {
				return nil, err
			}
			ids = append(ids, id)
		}
		return ids, rows.Err()
	})
}

// emitSQL emits a batch as a statement does, which wakes the relay.
func (r *rig) emitSQL(ctx context.Context, b batch) {
	r.emitBy(ctx, b, func(ctx context.Context, events []eventqueue.NewEvent) (ids []eventqueue.EventID, err error) {
		for _, e := range events {
			var id eventqueue.EventID
			if err := r.db.QueryRow(ctx, `SELECT events_emit($1, $2, $3, $4)`, [16]byte(e.Canvas), e.Module, e.Name, string(e.Value)).Scan(&id); err != nil {
				return nil, err
			}
			ids = append(ids, id)
		}
		return ids, nil
	})
}

// of are the entries of a label, all for "".
func (r *rig) of(label string) []*entry {
	r.mu.Lock()
	defer r.mu.Unlock()
	if label == "" {
		return slices.Clone(r.ledger)
	}
	return slices.Clone(r.labels[label])
}

// done counts the events of a label that have had a run that ended well.
func (r *rig) done(label string) (n int) {
	for _, e := range r.of(label) {
		if slices.ContainsFunc(r.target.of(e.id), func(v visit) bool { return v.status == completed.status }) {
			n++
		}
	}
	return n
}

// begun counts the events of a label that have had a run.
func (r *rig) begun(label string) (n int) {
	for _, e := range r.of(label) {
		if len(r.target.of(e.id)) > 0 {
			n++
		}
	}
	return n
}

// awaitDone fails the scenario when not all events of a label have had a run that
// ended well within a limit, and reports whether they had.
func (r *rig) awaitDone(ctx context.Context, label string, limit time.Duration) bool {
	all := len(r.of(label))
	if r.eventually(ctx, limit, func() bool { return r.done(label) >= all }) {
		return true
	}
	r.failf("%d of %d events %s have run within %s", r.done(label), all, label, limit)
	return false
}

// lateness is how long after their time the events of a label began, the longest
// last; one that has not begun counts until now.
func (r *rig) lateness(label string) []time.Duration {
	var all []time.Duration
	for _, e := range r.of(label) {
		from := e.emitted
		if e.due.After(from) {
			from = e.due
		}
		began := time.Now()
		if visits := r.target.of(e.id); len(visits) > 0 {
			began = visits[0].began
		}
		all = append(all, max(began.Sub(from), 0))
	}
	slices.Sort(all)
	return all
}

// percentile is that of sorted durations.
func percentile(sorted []time.Duration, p float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(int(p*float64(len(sorted))), len(sorted)-1)]
}

// punctual fails the scenario when the share p of a label's events did not begin
// within a limit of their time. It notes the figure.
func (r *rig) punctual(label string, p float64, limit time.Duration) {
	got := percentile(r.lateness(label), p)
	what := "max"
	if p < 1 {
		what = fmt.Sprintf("p%g", 100*p)
	}
	r.figure("%s_start_%s=%.1fs", label, what, got.Seconds())
	if got > limit {
		r.latef("events %s started up to %s (%s) after their time, at most %s are allowed here", label, got.Round(time.Millisecond), what, limit)
	}
}

// gate has a handler wait until it is opened.
func (r *rig) gate(handler string) (open func()) {
	gate := make(chan struct{})
	r.target.behave(handler, func(ctx context.Context, _ visit) answer {
		select {
		case <-gate:
		case <-ctx.Done():
		}
		return completed
	})
	return func() { close(gate) }
}

// ids are those of all entries.
func (r *rig) ids() (ids []int64) {
	for _, e := range r.of("") {
		ids = append(ids, int64(e.id))
	}
	return ids
}
