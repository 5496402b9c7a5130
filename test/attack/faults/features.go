package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/test/attack/faults/emission"
	"eventsv2/test/oracle"
)

// The canvases of the features.
const (
	plainCanvas byte = 10 + iota
	limitedCanvas
	groupCanvas
	ratedCanvas
	uniqueCanvas
	chainCanvas
	approximateCanvas
)

// The limits of the features.
const (
	runningMax = 3
	perMinute  = 40
	// aboutPerMinute is so much less than what is emitted that each worker can exhaust it by itself.
	aboutPerMinute = 20
)

// featuresWith is features of programs with some settings. lifts has the exact rate limit be removed at
// the end, so that nothing waits for its next minute.
func featuresWith(settings map[string]string, lifts bool, fault func(ctx context.Context, r *rig, workers []*program)) func(context.Context, *rig) {
	return func(ctx context.Context, r *rig) {
		r.cron(ctx, settings)
		running := []*program{r.worker(ctx, "worker-1", settings), r.worker(ctx, "worker-2", settings)}
		approximate := aboutPerMinute * (len(running) - 1) // what their counts may miss of each other
		workers := running
		for _, name := range []string{"typed-1", "typed-2"} {
			workers = append(workers, r.typed(ctx, name, settings["LOCK_TIMEOUT"]))
		}
		r.target.behave("work", takes(100*time.Millisecond))
		ctl := func(args ...string) {
			if text, status := r.ctl(ctx, args...); status != 0 {
				r.fatalf("eventctl %v: %s", args, text)
			}
		}
		rated, about := []string{"--canvas", canvas(ratedCanvas).String()}, []string{"--canvas", canvas(approximateCanvas).String()}
		unlimit := func(of []string) { ctl(append([]string{"limit", "rate", "remove"}, of...)...) }
		ctl("limit", "concurrency", "set", "--canvas", canvas(limitedCanvas).String(), "--max", strconv.Itoa(runningMax))
		ctl(append([]string{"limit", "rate", "set", "--per-minute", strconv.Itoa(perMinute)}, rated...)...)
		ctl(append([]string{"limit", "rate", "set", "--mode", "approximate", "--per-minute", strconv.Itoa(aboutPerMinute)}, about...)...)
		r.emit(ctx, batch{label: "rated", n: 60, canvas: ratedCanvas})
		r.emit(ctx, batch{label: "about", n: 100, canvas: approximateCanvas})
		r.emitLimited(ctx, 200, 100, 200)
		r.emit(ctx, batch{label: "plain", n: 300, canvas: plainCanvas})
		if !r.eventually(ctx, startLimit, func() bool { return r.begun("") >= 50 }) {
			r.fatalf("%d events have begun, want 50", r.begun(""))
		}
		emitUniqueAgain := r.emitUnique(ctx, "unique")
		fault(ctx, r, workers)
		emitUniqueAgain()
		r.emitTyped(ctx, "chains", 20)
		r.emit(ctx, batch{label: "after", n: 50, canvas: plainCanvas})
		for _, label := range []string{"plain", "after", "unique", "lines", "limited", "chains"} {
			r.awaitDone(ctx, label, 60*time.Second)
		}
		if !lifts {
			r.awaitDone(ctx, "rated", untilWindow(4))
		}
		r.perMinute("rated", perMinute, 0)
		r.perMinute("about", aboutPerMinute, approximate)
		if lifts {
			unlimit(rated)
			r.awaitDone(ctx, "rated", startLimit)
		}
		unlimit(about) // the rest would take minutes
		r.awaitDone(ctx, "about", startLimit)
		r.inOrder("lines")
		r.atMost("limited", runningMax)
	}
}

// emitLimited emits events of ordering groups, events under the concurrency limit, and typed events.
func (r *rig) emitLimited(ctx context.Context, lines, limited, chains int) {
	r.emit(ctx, batch{label: "lines", n: lines, canvas: groupCanvas, key: func(i int) string { return strconv.Itoa(i % 10) }})
	r.emit(ctx, batch{label: "limited", n: limited, canvas: limitedCanvas})
	r.emitTyped(ctx, "chains", chains)
}

// emitUnique emits a batch with unique keys. again emits it once more, and has each key name the
// event that it named before, whatever has become of it: the oracle judges that.
func (r *rig) emitUnique(ctx context.Context, label string) (again func()) {
	emit := func(ctx context.Context, events []eventqueue.NewEvent) ([]eventqueue.EventID, error) {
		for i := range events {
			events[i].UniqueKey, events[i].UniqueFor = fmt.Sprint(label, " ", i), time.Hour
		}
		emitted, err := r.emitter.EmitUnique(ctx, events...)
		ids := make([]eventqueue.EventID, len(emitted))
		for i, e := range emitted {
			ids[i] = e.ID
		}
		return ids, err
	}
	b := batch{label: label, n: 50, canvas: uniqueCanvas}
	r.emitBy(ctx, b, emit)
	return func() {
		events := make([]eventqueue.NewEvent, b.n)
		for i := range events {
			events[i] = b.event(i)
		}
		began := time.Now()
		repeated, err := emit(ctx, events)
		r.must(err)
		for i, id := range repeated {
			r.repeats = append(r.repeats, oracle.Record{Kind: oracle.Repeated, At: began, Event: id, Canvas: events[i].Canvas, UniqueKey: events[i].UniqueKey})
		}
	}
}

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
		r.note(&entry{id: id, label: label, value: string(events[i].Value), key: events[i].OrderingKey, typed: true, emitted: time.Now(), due: began})
	}
}
