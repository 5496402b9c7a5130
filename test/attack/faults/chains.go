package main

import (
	"context"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/test/attack/faults/emission"
)

// typed starts a program that runs the typed events.
func (r *rig) typed(ctx context.Context, name, lockTimeout string) *program {
	return r.embed(ctx, name, map[string]string{"FAULTS_TYPED": "true", "LOCK_TIMEOUT": lockTimeout})
}

// emitTyped emits typed events, whose completion emits a child for each of their handlers.
func (r *rig) emitTyped(ctx context.Context, label string, n int) {
	bus, err := emission.Bus(r.emitter, func(context.Context, *eventqueue.Run) error { return nil })
	r.must(err)
	var events []eventqueue.NewEvent
	for i := range n {
		e, err := bus.NewEvent(canvas(chainCanvas), emission.Made{N: len(r.of(label)) + i, Text: "ä€😀"})
		r.must(err)
		events = append(events, e)
	}
	began := time.Now()
	ids, err := r.emitter.EmitMany(ctx, events)
	r.must(err)
	for i, id := range ids {
		r.note(&entry{id: id, label: label, value: string(events[i].Value), emitted: time.Now(), due: began})
	}
}

const childrenSQL = `
SELECT id, name, value, enqueued_at FROM (
    SELECT id, canvas_id, module, name, modifier, value, enqueued_at FROM event_log
    UNION ALL
    SELECT id, canvas_id, module, name, modifier, value, enqueued_at FROM events_v2) AS e
 WHERE canvas_id = $1 AND module = $2 AND modifier <> '_'`

// children looks for those of the typed events of a label, all of which have run: each
// must have one for each handler, once. From then on the children are judged as all events
// are.
func (r *rig) children(ctx context.Context, label string) {
	rows, err := r.db.Query(ctx, childrenSQL, [16]byte(canvas(chainCanvas)), emission.Module)
	r.must(err)
	found := map[string]int{}
	for rows.Next() {
		e := &entry{label: label + "_children"}
		var name string
		r.must(rows.Scan(&e.id, &name, &e.value, &e.emitted))
		e.due = e.emitted.Add(-time.Second) // the clock of the emit is Postgres'
		found[name+e.value]++
		r.note(e)
	}
	r.must(rows.Err())
	for _, parent := range r.of(label) {
		for _, name := range emission.Handlers {
			if n := found[name+parent.value]; n != 1 {
				r.failf("event %s (%s) has %d children for %s, want 1", parent.id, label, n, name)
				return
			}
		}
	}
	if want := len(r.of(label)) * len(emission.Handlers); len(r.of(label+"_children")) != want {
		r.failf("%d children of %d events %s, want %d", len(r.of(label+"_children")), len(r.of(label)), label, want)
	}
	r.awaitDone(ctx, label+"_children", 60*time.Second)
	r.figure("children=%d", len(r.of(label+"_children")))
}
