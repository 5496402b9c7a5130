package main

import (
	"context"
	"net/http"
	"syscall"
	"time"

	"google.golang.org/grpc/codes"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/internal/backoff"
	"eventsv2/test/attack/faults/emission"
	"eventsv2/test/attack/harness"
	"eventsv2/test/oracle"
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

// features has each feature at work on a canvas of its own, and a fault in the
// middle.
func features(fault func(ctx context.Context, r *rig, workers []*program)) func(context.Context, *rig) {
	return featuresWith(impatient("3s"), false, fault)
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
		r.fault(oracle.Frozen, w.Name, from.Add(-time.Second), time.Now().Add(time.Second))
	}
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
	r.fault(oracle.LostDatabase, "", from, time.Now().Add(time.Second))
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
	r.fault(oracle.LostDatabase, "", from, time.Now().Add(time.Second))
}
