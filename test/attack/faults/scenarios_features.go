package main

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"syscall"
	"time"

	"google.golang.org/grpc/codes"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/internal/backoff"
	"eventsv2/test/attack/faults/emission"
	"eventsv2/test/attack/harness"
	"eventsv2/test/pubsubproxy"
)

func featureScenarios() []scenario {
	return []scenario{
		{"snooze-without-end", "a target that always puts an event off is asked less and less, or fails it", 80 * time.Second, snoozes},
		{"features-paused", "limits, ordering groups, chains and unique keys keep their promises beside a pause", 90 * time.Second, features(pausedForAWhile)},
		{"features-frozen", "so they do beside a worker that stands still for longer than its locks", 90 * time.Second, features(frozenForAWhile)},
		{"features-kill-9-paused", "so they do beside kill -9 of a worker whose handlers are paused", 90 * time.Second, features(killedAndPaused)},
		{"features-kill-9", "so they do beside kill -9 of a worker", 90 * time.Second, features(killedInTheMiddle)},
		publishFails.features("features-publish-fails", "so they do while publishing fails and pulling works"),
		pullHangs.features("features-pull-hangs", "so they do while pulling is never answered and publishing works"),
		silent.features("features-pubsub-silent", "so they do beside a Pub/Sub that accepts connections and never answers"),
		topicDeleted.features("features-topic-deleted", "so they do while the topic is gone"),
		{"features-pubsub-outage", "so they do beside an outage of Pub/Sub", 90 * time.Second, features(withoutPubSub)},
		{"features-postgres-outage", "so they do beside an outage of Postgres", 90 * time.Second, features(withoutPostgres)},
		{"features-answers-lost", "so they do beside lost answers of Postgres", 90 * time.Second, features(withoutAnswers)},
	}
}

// snoozes has targets that answer 503 for ever, as it seems, with Retry-After.
func snoozes(ctx context.Context, r *rig) {
	r.handlers = append(r.handlers, handler("zero"), handler("one"))
	r.worker(ctx, "worker", nil)
	r.cron(ctx, nil)
	enough := make(chan struct{})
	for name, after := range map[string]string{"zero": "0", "one": "1"} {
		r.target.behave(name, func(context.Context, visit) answer {
			select {
			case <-enough:
				return completed
			default:
				return answer{http.StatusServiceUnavailable, after}
			}
		})
		r.canFail[name] = true
		r.emit(ctx, batch{label: name, n: 5, name: name})
	}
	backoff.Sleep(ctx, 45*time.Second)
	close(enough)
	for _, name := range []string{"zero", "one"} {
		most := 0
		for _, e := range r.of(name) {
			most = max(most, len(r.target.of(e.id)))
		}
		r.figure("retry_after_%s_runs=%d", name, most)
		if most > 20 { // it was once a second
			r.failf("an event with Retry-After %s ran %d times in 45 s", name, most)
		}
	}
}

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

// features has each feature at work on a canvas of its own, and a fault in the
// middle.
func features(fault func(ctx context.Context, r *rig, workers []*program)) func(context.Context, *rig) {
	return featuresWith(impatient("3s"), false, fault)
}

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
		r.children(ctx, "chains")
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
// event that it named before, whatever has become of it.
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
	ids := r.emitBy(ctx, b, emit)
	return func() {
		events := make([]eventqueue.NewEvent, b.n)
		for i := range events {
			events[i] = b.event(i)
		}
		repeated, err := emit(ctx, events)
		r.must(err)
		for i := range repeated {
			if repeated[i] != ids[i] {
				r.failf("a unique key made event %s and then %s", ids[i], repeated[i])
			}
		}
	}
}

// runs are all runs of a label's events, by their beginning.
func (r *rig) runs(label string) (all []visit) {
	for _, e := range r.of(label) {
		all = append(all, r.target.of(e.id)...)
	}
	slices.SortFunc(all, func(a, b visit) int { return a.began.Compare(b.began) })
	return all
}

// inOrder looks at the runs of each ordering key: none begins before the ones that
// were emitted before it have ended.
func (r *rig) inOrder(label string) { r.inOrderOf(label, every) }

// every run counts.
func every(visit) bool { return true }

// inOrderOf is inOrder of some of the runs.
func (r *rig) inOrderOf(label string, counts func(visit) bool) {
	lines := map[string][]*entry{}
	for _, e := range r.of(label) {
		lines[e.key] = append(lines[e.key], e)
	}
	for key, line := range lines {
		slices.SortFunc(line, func(a, b *entry) int { return cmp.Compare(a.id, b.id) })
		for i := 1; i < len(line); i++ {
			before, after := r.visitsOf(line[i-1], counts), r.visitsOf(line[i], counts)
			if len(before) == 0 || len(after) == 0 {
				continue // which awaitDone has said
			}
			if last := before[len(before)-1]; after[0].began.Before(last.ended) {
				r.failf("in line %s event %s began at %s, before event %s had ended at %s", key, line[i].id,
					after[0].began.Format(clockFormat), line[i-1].id, last.ended.Format(clockFormat))
				return
			}
		}
	}
}

// visitsOf are those runs of an event that count.
func (r *rig) visitsOf(e *entry, counts func(visit) bool) []visit {
	return slices.DeleteFunc(r.target.of(e.id), func(v visit) bool { return !counts(v) })
}

// atMost looks at how many runs of a label went on at once.
func (r *rig) atMost(label string, limit int) { r.atMostOf(label, limit, every) }

// atMostOf is atMost of some of the runs.
func (r *rig) atMostOf(label string, limit int, counts func(visit) bool) {
	runs := slices.DeleteFunc(r.runs(label), func(v visit) bool { return !counts(v) })
	most := 0
	for _, v := range runs {
		at := 0
		for _, other := range runs {
			// A run whose worker died goes on for the target until it notices.
			if !other.began.After(v.began) && other.ended.After(v.began) && (other.status != 0 || other == v) {
				at++
			}
		}
		most = max(most, at)
	}
	r.figure("%s_at_once=%d", label, most)
	if most > limit {
		r.failf("%d runs of events %s at once, and the limit is %d", most, label, limit)
	}
}

// untilWindow is how long it takes to the end of the n-th window of a rate limit per minute, this one
// counted. What is granted to a run that is lost stays counted, in this window and in the next,
// and what is granted begins any time within the window: a scenario that begins with a minute waits
// longer than one that begins at its end.
func untilWindow(n int) time.Duration {
	return time.Until(time.Now().Truncate(time.Minute).Add(time.Duration(n) * time.Minute))
}

// perMinute looks at how many runs of a label have begun by the end of each minute since
// the first event was emitted: what is granted in one may begin later, but never before. Over is
// what an approximate limit may be exceeded by, once: later windows have so much less.
func (r *rig) perMinute(label string, limit, over int) {
	runs := r.runs(label)
	if len(runs) == 0 {
		return // which awaitDone has said
	}
	// A run may begin in the minute after the one in which it was granted, also the first.
	first := r.of(label)[0].due.Unix() / 60
	for i, v := range runs {
		if windows := int(v.began.Unix()/60-first) + 1; i+1 > windows*limit+over {
			r.failf("%d runs of events %s had begun in the %d. minute, and the limit is %d per minute", i+1, label, windows, limit)
			return
		}
	}
}

func pausedForAWhile(ctx context.Context, r *rig, _ []*program) {
	rules, err := operate.NewRules(pgstore.New(r.db), r.emitter)
	r.must(err)
	each := func(do func(scope eventqueue.Scope) error) {
		for _, c := range []byte{plainCanvas, limitedCanvas, groupCanvas, ratedCanvas, approximateCanvas} {
			r.must(do(eventqueue.Scope{Canvas: canvas(c), Module: "WORKER", Name: "work"}))
		}
		for _, name := range []string{"CREATE", "mail", "index"} {
			r.must(do(eventqueue.Scope{Canvas: canvas(chainCanvas), Module: emission.Module, Name: name}))
		}
	}
	each(func(scope eventqueue.Scope) error {
		_, err := rules.Add(ctx, operate.PauseRule, scope)
		return err
	})
	backoff.Sleep(ctx, 3*time.Second) // what was claimed before may begin
	begun := r.begun("")
	backoff.Sleep(ctx, 4*time.Second)
	if now := r.begun(""); now != begun {
		r.failf("%d events began while everything was paused", now-begun)
	}
	each(func(scope eventqueue.Scope) error {
		_, _, err := rules.Lift(ctx, operate.PauseRule, scope)
		return err
	})
}

// killedInTheMiddle kills one of each kind of workers.
func killedInTheMiddle(_ context.Context, r *rig, workers []*program) {
	r.kill(workers[0])
	r.kill(workers[2])
	r.unknown = true // what it had claimed and not begun, only it knew
}

func killedAndPaused(ctx context.Context, r *rig, workers []*program) {
	killedInTheMiddle(ctx, r, workers)
	pausedForAWhile(ctx, r, workers)
}

// frozenForAWhile has one of each kind of workers stand still until others have taken over.
func frozenForAWhile(ctx context.Context, r *rig, workers []*program) {
	from := time.Now()
	for _, w := range []*program{workers[0], workers[2]} {
		w.Signal(syscall.SIGSTOP)
	}
	backoff.Sleep(ctx, 8*time.Second) // a lock lasts 3 s
	for _, w := range []*program{workers[0], workers[2]} {
		w.Signal(syscall.SIGCONT)
		r.allowance(w.Name, from.Add(-time.Second), time.Now().Add(time.Second))
	}
	r.unknown = true // what they had claimed and not begun, only they knew
}

func withoutPubSub(ctx context.Context, r *rig, _ []*program) {
	r.pubsubServer.Set(pubsubproxy.EveryMethod, pubsubproxy.Refuse(codes.Unavailable, "down"))
	r.emit(ctx, batch{label: "plain", n: 50, canvas: plainCanvas, every: 200 * time.Millisecond})
	r.pubsubServer.Heal()
}

func withoutPostgres(ctx context.Context, r *rig, workers []*program) {
	from := time.Now()
	for _, w := range workers {
		w.database.Close()
	}
	backoff.Sleep(ctx, 8*time.Second)
	for _, w := range workers {
		r.must(w.database.Reopen())
	}
	r.allowance("", from, time.Now().Add(time.Second))
	r.unknown = true
}

func withoutAnswers(ctx context.Context, r *rig, workers []*program) {
	from := time.Now()
	var cures []func(context.Context) error
	for _, w := range workers {
		cure, err := w.database.Infect(harness.Mute(harness.Answers))
		r.must(err)
		cures = append(cures, cure)
	}
	backoff.Sleep(ctx, 5*time.Second)
	for _, cure := range cures {
		r.must(cure(ctx))
	}
	r.allowance("", from, time.Now().Add(time.Second))
}
