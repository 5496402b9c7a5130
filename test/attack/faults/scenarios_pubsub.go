package main

import (
	"context"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"eventsv2/internal/backoff"
	"eventsv2/test/pubsubproxy"
)

func pubsubScenarios() []scenario {
	return []scenario{
		{"one-failed-publish-worker", "after one failed publish of a worker no event in an ordering group waits", 15 * time.Second, oneFailedPublishOfAWorker(false)},
		{"one-failed-publish-emitter", "after one failed publish of an emitter its next events are on time", 15 * time.Second, oneFailedPublishOfAnEmitter},
		{"one-failed-publish-cron", "after one failed publish of cron its next notifications are on time", 30 * time.Second, oneFailedPublishOfCron},
		{"one-failed-publish-embedding", "after one failed publish of an embedding program no event in an ordering group waits", 15 * time.Second, oneFailedPublishOfAWorker(true)},
		silent.scenario("pubsub-accepts-never-answers", "work goes on beside a Pub/Sub that accepts connections and never answers"),
		silent.embedded().scenario("pubsub-silent-embedding", "so it does in a program that embeds the library"),
		topicDeleted.scenario("topic-deleted", "work goes on without the topic, and readiness says so"),
		outage{begin: deleteTopic, end: awaitAttached, settings: map[string]string{"PUBSUB_CREATE": "true"}, says: remade}.scenario("topic-deleted-create", "with PUBSUB_CREATE a deleted topic comes back, with its subscription"),
		outage{begin: deleteSubscription, end: remake, pulling: true, says: goneSubscription}.scenario("subscription-deleted", "work goes on without the subscription"),
		outage{begin: refused("Publish", revoked), end: heal, publishing: true, says: lacks("roles/pubsub.publisher")}.scenario("publisher-role-revoked", "work goes on while nobody may publish"),
		outage{begin: refused("Publish", quota), end: heal, publishing: true, says: exhausted}.scenario("publish-quota", "work goes on while the quota for publishing is used up"),
		publishFails.scenario("publish-fails-pull-works", "work goes on while publishing fails and pulling works"),
		outage{begin: refused("Publish", pubsubproxy.Hang), end: heal, publishing: true, says: unreached}.scenario("publish-hangs-pull-works", "so it does while publishing is never answered"),
		publishFails.embedded().scenario("publish-fails-embedding", "so it does in a program that embeds the library"),
		outage{begin: refused("Pull", refuseAll), end: heal, pulling: true, says: unreached}.scenario("pull-fails-publish-works", "work goes on while pulling fails and publishing works"),
		pullHangs.scenario("pull-hangs-publish-works", "so it does while pulling is never answered"),
		outage{begin: refused("Pull", revoked), end: heal, pulling: true, says: lacks("roles/pubsub.subscriber")}.scenario("subscriber-role-revoked", "work goes on while nobody may pull"),
		outage{begin: refused("Pull", pubsubproxy.LoseAnswer), end: heal, vanish: true, pulling: true, says: unreached}.scenario("pulled-and-lost", "work goes on while what was pulled never arrives"),
		outage{begin: refused(pubsubproxy.EveryMethod, refuseAll), end: heal, publishing: true, pulling: true, says: unreached}.scenario("pubsub-down", "work goes on while Pub/Sub is down"),
		{"hung-acknowledgements", "runs and their ends never wait for answers to Pub/Sub", 60 * time.Second, hungAcknowledgements},
		{"starts-without-pubsub", "worker and cron start and work while Pub/Sub is down, and use it when it comes", 50 * time.Second, startsWithoutPubSub(false)},
		{"starts-without-pubsub-embedding", "so does a program that embeds the library", 50 * time.Second, startsWithoutPubSub(true)},
		{"emit-only-without-subscription", "a program that only emits needs no subscription and no right to look", 15 * time.Second, emitOnly},
	}
}

// oneFailedPublishOfAWorker fails the publish with which a worker tells of the
// next events of lines.
func oneFailedPublishOfAWorker(embedding bool) func(context.Context, *rig) {
	return func(ctx context.Context, r *rig) {
		r.cron(ctx, nil)
		if embedding {
			r.embed(ctx, "app", nil)
		} else {
			r.worker(ctx, "worker", nil)
		}
		open := r.gate("work")
		r.emit(ctx, batch{label: "lines", n: 1000, key: func(i int) string { return strconv.Itoa(i % 100) }})
		if !r.eventually(ctx, startLimit, func() bool { return r.begun("lines") >= 100 }) {
			r.fatalf("the first events of %d lines have begun, want 100", r.begun("lines"))
		}
		r.pubsubServer.Set("Publish", pubsubproxy.First(1, pubsubproxy.Refuse(codes.Unavailable, "try again")))
		began := time.Now()
		open()
		// Without a fault it takes one to two seconds; before, minutes.
		r.awaitDone(ctx, "lines", 30*time.Second)
		r.figure("lines_took=%.1fs", time.Since(began).Seconds())
	}
}

// publishesAgain waits until a program has said that a publish of its own failed, and that the next
// one did not; emit has it publish. Others may do its work meanwhile, so that no event waits.
func (r *rig) publishesAgain(ctx context.Context, p *program, emit func()) {
	const failed, again = "could not publish notifications", "notifications are published again"
	if !strings.Contains(p.LogText(), failed) {
		r.fatalf("no publish of %s has failed: the scenario shows nothing", p.Name)
	}
	began := time.Now()
	if !r.eventually(ctx, startLimit, func() bool {
		emit()
		return strings.Contains(p.LogText(), again)
	}) {
		r.failf("%s after one failed publish %s does not publish by itself", startLimit, p.Name)
	}
	r.figure("publishes_again=%.1fs", time.Since(began).Seconds())
}

func oneFailedPublishOfAnEmitter(ctx context.Context, r *rig) {
	r.cron(ctx, nil)
	r.worker(ctx, "worker", nil)
	emitter := r.embed(ctx, "emitter", map[string]string{"FAULTS_ROLE": "emit"})
	r.emitVia(ctx, emitter, batch{label: "before", n: 20, every: 50 * time.Millisecond})
	r.pubsubServer.Set("Publish", pubsubproxy.First(1, pubsubproxy.Refuse(codes.Unavailable, "try again")))
	r.emitVia(ctx, emitter, batch{label: "after", n: 100, every: 50 * time.Millisecond})
	r.awaitDone(ctx, "after", 40*time.Second)
	r.punctual("after", 1, 12*time.Second) // 2 s are promised; it was 20 to 25
	r.publishesAgain(ctx, emitter, func() { r.emitVia(ctx, emitter, batch{label: "more", n: 1}) })
}

// oneFailedPublishOfCron fails one of the publishes with which the relay tells of what was
// inserted by SQL. The worker that was told of the failure covers for cron for a while, so what
// cron publishes is judged, and not only what runs.
func oneFailedPublishOfCron(ctx context.Context, r *rig) {
	r.worker(ctx, "worker", nil)
	cron := r.cron(ctx, nil)
	backoff.Sleep(ctx, workerLooks) // a worker that looks by itself would do the relay's work
	published := r.pubsubServer.Answered("Publish")
	r.emitSQL(ctx, batch{label: "before", n: 20, every: 50 * time.Millisecond})
	r.awaitDone(ctx, "before", startLimit)
	if r.pubsubServer.Answered("Publish") == published {
		r.failf("cron has published nothing: the scenario shows nothing")
	}
	var failed atomic.Bool
	r.pubsubServer.Set("Publish", pubsubproxy.First(1, func(context.Context, func() error) error {
		failed.Store(true)
		return status.Error(codes.Unavailable, "try again")
	}))
	if !r.eventually(ctx, startLimit, func() bool {
		r.emitSQL(ctx, batch{label: "after", n: 1, every: 50 * time.Millisecond})
		return failed.Load()
	}) {
		r.fatalf("no publish has failed: the scenario shows nothing")
	}
	began := time.Now()
	published = r.pubsubServer.Answered("Publish")
	again := r.eventually(ctx, startLimit, func() bool {
		r.emitSQL(ctx, batch{label: "after", n: 1, every: 50 * time.Millisecond})
		return r.pubsubServer.Answered("Publish") > published
	})
	took := time.Since(began)
	r.figure("published_again=%.1fs", took.Seconds())
	switch {
	case !again:
		r.failf("%s after one failed publish cron publishes nothing", startLimit)
	case took > cronAgain:
		r.latef("cron publishes again %s after one failed publish, at most %s are allowed here", took.Round(time.Millisecond), cronAgain)
	}
	r.emitSQL(ctx, batch{label: "after", n: 100, every: 50 * time.Millisecond})
	r.awaitDone(ctx, "after", 40*time.Second)
	r.punctual("after", 1, 6*time.Second) // 2 s are promised
	if !cron.Running() {
		r.failf("cron ended: %s", cron.LastWords())
	}
}

// cronAgain is a multiple of the second after which a program publishes again that could not.
const cronAgain = 6 * time.Second

// hungAcknowledgements compares a crowd whose answers hang with those before and after it,
// whose do not.
func hungAcknowledgements(ctx context.Context, r *rig) {
	r.cron(ctx, nil)
	r.worker(ctx, "worker", nil)
	later := 0
	crowd := func(label string) time.Duration {
		began := time.Now()
		for i := range 40 {
			// Each of these asks for a delay of its own. They are no part of what is
			// judged, and are taken away before they are due.
			for j := range 5 {
				later++
				_, err := r.emitter.Emit(ctx, batch{label: "later", canvas: 1, delay: time.Duration(200+later) * time.Second}.event(i*5+j))
				r.must(err)
			}
			r.emit(ctx, batch{label: label, n: 200})
		}
		r.awaitDone(ctx, label, 50*time.Second)
		took := time.Since(began)
		r.figure("%s=%.1fs", label, took.Seconds())
		return took
	}
	before := crowd("before")
	r.pubsubServer.Set("Acknowledge", pubsubproxy.Hang)
	r.pubsubServer.Set("ModifyAckDeadline", pubsubproxy.Hang)
	hung := crowd("hung")
	r.pubsubServer.Heal()
	after := crowd("after")
	// Half of the throughput is promised, and the machine may be twice as busy.
	if hung > 4*max(before, after) {
		r.latef("8000 events took %s while no answer came, %s before and %s after it", hung.Round(time.Millisecond),
			before.Round(time.Millisecond), after.Round(time.Millisecond))
	}
	r.exec(ctx, `DELETE FROM events_v2 WHERE canvas_id = $1`, [16]byte(canvas(1)))
}

func startsWithoutPubSub(embedding bool) func(context.Context, *rig) {
	return func(ctx context.Context, r *rig) {
		r.wire.Close()
		var programs []*program
		settings := map[string]string{"PUBSUB_CREATE": "true"}
		if embedding {
			programs = append(programs, r.embed(ctx, "app", settings))
		} else {
			programs = append(programs, r.worker(ctx, "worker", settings), r.cron(ctx, settings))
		}
		r.insert(ctx, batch{label: "inserted", n: 50})
		r.emit(ctx, batch{label: "emitted", n: 50})
		r.awaitDone(ctx, "emitted", time.Minute)
		r.awaitDone(ctx, "inserted", time.Minute)
		for _, p := range programs {
			if !p.Running() {
				r.failf("%s ended with status %d: %s", p.Name, p.Status, p.LastWords())
			}
		}
		r.must(r.wire.Reopen())
		r.awaitPubSub(ctx)
	}
}

func emitOnly(ctx context.Context, r *rig) {
	// The worker has all rights, and a way of its own.
	r.worker(ctx, "worker", map[string]string{"PUBSUB_EMULATOR_HOST": r.stage.emulator.URL})
	for _, method := range []string{"GetTopic", "GetSubscription", "Pull"} {
		r.pubsubServer.Set(method, pubsubproxy.Refuse(codes.PermissionDenied, "User not authorized to perform this action."))
	}
	emitter := r.embed(ctx, "emitter", map[string]string{"FAULTS_ROLE": "emit"})
	published := r.pubsubServer.Answered("Publish")
	r.emitVia(ctx, emitter, batch{label: "emitted", n: 50, every: 10 * time.Millisecond})
	r.awaitDone(ctx, "emitted", startLimit)
	if r.pubsubServer.Answered("Publish") == published {
		r.failf("nothing was published")
	}
}
