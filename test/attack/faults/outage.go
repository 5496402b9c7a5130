package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"

	"eventsv2/test/pubsubproxy"
)

// outage is a time in which Pub/Sub fails in some way.
type outage struct {
	begin, end func(context.Context, *rig)
	settings   map[string]string
	// embedding has a program that embeds the library in place of cmd/worker. It emits, too.
	embedding bool
	// vanish has what was pulled be lost on its way, and loses what was published.
	vanish, loses bool
	// Programs that publish, and those that pull, have to name the fault; with neither it is in
	// the log of some program.
	publishing, pulling bool
	says                naming
}

// naming is how a program names a fault: on /readyz what is wrong and what to do, in a few words,
// and in its log the remedy itself.
type naming struct{ ready, log string }

// What Pub/Sub answers.
var (
	refuseAll = pubsubproxy.Refuse(codes.Unavailable, "The service was unable to fulfill your request.")
	revoked   = pubsubproxy.Refuse(codes.PermissionDenied, "User not authorized to perform this action.")
	quota     = pubsubproxy.Refuse(codes.ResourceExhausted, "Quota exceeded.")
)

// What programs say of it.
var (
	unreached        = naming{"it does not answer: check that it runs and can be reached", "does not answer; check that it runs"}
	exhausted        = naming{"a quota is exhausted: raise it", "a quota of project " + projectID + " is exhausted; raise it"}
	goneTopic        = naming{"made again", "gcloud pubsub topics create"}
	goneSubscription = naming{"the topic or the subscription is gone: have them made again", "gcloud pubsub subscriptions create"}
	remade           = naming{"", "was gone and has been made again"}
)

func lacks(role string) naming {
	return naming{"a right is missing: grant " + role, "grant it " + role + " in project " + projectID}
}

// The outages in which one half of Pub/Sub is dead, or all of it without saying so.
var (
	publishFails = outage{begin: refused("Publish", refuseAll), end: heal, publishing: true, says: unreached}
	pullHangs    = outage{begin: refused("Pull", pubsubproxy.Hang), end: heal, pulling: true, says: unreached}
	silent       = outage{begin: silence, end: sound, publishing: true, pulling: true, says: unreached}
	topicDeleted = outage{begin: deleteTopic, end: remake, loses: true, publishing: true, pulling: true, says: goneTopic}
)

func (o outage) embedded() outage {
	o.embedding = true
	return o
}

func (o outage) scenario(name, acknowledgement string) scenario {
	return scenario{name, acknowledgement, 20 * time.Second, func(ctx context.Context, r *rig) { o.play(ctx, r) }}
}

func (o outage) play(ctx context.Context, r *rig) {
	cron := r.cron(ctx, o.settings)
	var worker *program
	emit := func(b batch) { r.emit(ctx, b) }
	if o.embedding {
		worker = r.embed(ctx, "app", o.settings)
		emit = func(b batch) { r.emitVia(ctx, worker, b) }
	} else {
		worker = r.worker(ctx, "worker", o.settings)
	}
	r.emit(ctx, batch{label: "before", n: 20})
	r.awaitDone(ctx, "before", startLimit)

	o.begin(ctx, r)
	emit(batch{label: "during", n: 100, every: 50 * time.Millisecond})
	if !r.awaitDone(ctx, "during", time.Minute) {
		o.end(ctx, r)
		return
	}
	limit := outageStart
	if o.vanish {
		limit = vanishedStart
	}
	r.punctual("during", 1, limit)
	r.emit(ctx, batch{label: "crowd", n: 2000})
	r.awaitDone(ctx, "crowd", time.Minute)
	r.punctual("crowd", 0.99, 2*noticedStart) // on a machine whose processors others use as well
	r.swift("crowd", 100)
	if o.embedding {
		o.named(ctx, r, []*program{cron, worker}, []*program{worker}, emit)
	} else {
		o.named(ctx, r, []*program{cron}, []*program{worker}, emit)
	}
	o.end(ctx, r)
	r.awaitPubSub(ctx)
	for _, p := range []*program{worker, cron} {
		if !r.eventually(ctx, startLimit, func() bool {
			r.emitSQL(ctx, batch{label: "after", n: 1}) // cron learns of it when it publishes
			return strings.HasPrefix(r.readiness(ctx, p)+"\n", "ready\n")
		}) {
			r.failf("%s says, long after Pub/Sub is well: %s", p.Name, r.readiness(ctx, p))
		}
	}
}

// named waits until the programs that the outage concerns have named it; emit has programs that emit
// publish. What others emit cron publishes when they could not.
func (o outage) named(ctx context.Context, r *rig, publishers, pullers []*program, emit func(batch)) {
	var concerned []*program
	if o.publishing {
		concerned = append(concerned, publishers...)
	}
	if o.pulling {
		concerned = append(concerned, pullers...)
	}
	for _, p := range concerned {
		var ready string
		if !r.eventually(ctx, startLimit, func() bool {
			r.emitSQL(ctx, batch{label: "named", n: 1})
			emit(batch{label: "named", n: 1})
			ready = r.readiness(ctx, p)
			return strings.HasPrefix(ready, "ready, but Pub/Sub cannot be used") && strings.Contains(ready, o.says.ready) && strings.Contains(p.LogText(), o.says.log)
		}) {
			r.failf("%s does not name what is wrong with Pub/Sub: want %q on /readyz, which says %q, and %q in its log: %s", p.Name, o.says.ready, ready, o.says.log, p.LastWords())
		}
		if strings.Contains(ready, "127.0.0.1") || strings.Contains(ready, r.topic()) {
			r.failf("/readyz of %s tells everybody where Pub/Sub is: %s", p.Name, ready)
		}
	}
	if len(concerned) == 0 && !r.eventually(ctx, startLimit, func() bool {
		emit(batch{label: "named", n: 1})
		return r.anyLog(o.says.log)
	}) {
		r.failf("no log has %q", o.says.log)
	}
	r.awaitDone(ctx, "named", startLimit)
}

// programNamed is the first program of a name.
func (r *rig) programNamed(name string) *program {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.programs[slices.IndexFunc(r.programs, func(p *program) bool { return p.Name == name })]
}

// anyLog reports whether some program has written a text.
func (r *rig) anyLog(text string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.programs {
		if strings.Contains(p.LogText(), text) {
			return true
		}
	}
	return false
}

// amid is the outage in the middle of features, all of which are used once more. What is emitted has run
// before it ends.
func (o outage) amid(ctx context.Context, r *rig, workers []*program) {
	o.begin(ctx, r)
	r.emitLimited(ctx, 100, 30, 20)
	uniqueAgain := r.emitUnique(ctx, "unique_during")
	r.emit(ctx, batch{label: "during", n: 60, canvas: plainCanvas, every: 100 * time.Millisecond})
	for _, label := range []string{"during", "lines", "limited", "chains", "unique_during"} {
		r.awaitDone(ctx, label, time.Minute)
	}
	r.punctual("during", 1, outageStart)
	o.named(ctx, r, []*program{r.programNamed("cron")}, workers[:1], func(b batch) { r.emit(ctx, b) })
	o.end(ctx, r)
	uniqueAgain()
	r.awaitPubSub(ctx)
}

func (o outage) features(name, acknowledgement string) scenario {
	settings := impatient("3s")
	if !o.loses { // then the relay is as it is by default, which makes up for nothing
		settings = map[string]string{"LOCK_TIMEOUT": settings["LOCK_TIMEOUT"]}
	}
	return scenario{name, acknowledgement, 50 * time.Second, featuresWith(settings, true, o.amid)}
}
