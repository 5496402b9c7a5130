package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/codes"

	"eventsv2/internal/backoff"
	"eventsv2/pubsubnotify"
	"eventsv2/test/attack/chaos/check"
	"eventsv2/test/attack/harness"
	"eventsv2/test/oracle"
	"eventsv2/test/pubsubproxy"
)

// attacker carries out the plan.
type attacker struct{ *stage }

// run attacks until the plan is done or ctx ends; then it has repaired everything.
func (a *attacker) run(ctx context.Context, plan []planned, began time.Time) {
	var attacks sync.WaitGroup
	defer attacks.Wait()
	for _, p := range plan {
		backoff.Sleep(ctx, time.Until(began.Add(p.at)))
		if ctx.Err() != nil {
			return
		}
		attacks.Go(func() {
			if err := a.attack(ctx, p); err != nil {
				a.fleet.broken(fmt.Errorf("%s: %w", p, err))
			}
		})
	}
}

// attack carries out one fault.
func (a *attacker) attack(ctx context.Context, p planned) error {
	switch p.kind {
	case killPostgres:
		return a.during(ctx, p, &a.Postgres.Attacked, oracle.LostDatabase, p.target, func() error { return a.Postgres.Crash(ctx, p.lasts) })
	case killEmulator:
		return a.during(ctx, p, &a.Emulator.Attacked, oracle.NotifierFault, p.target, func() error { return a.Emulator.Crash(ctx, p.lasts) })
	case killWorker, killCron, freezeWorker, freezeCron, restart:
		s := a.fleet.slots[p.target]
		s.attacked.Lock()
		defer s.attacked.Unlock()
		if ctx.Err() == nil {
			a.attackProcess(ctx, p, s)
		}
		return nil
	case publishFails, pullFails, notifierSilent:
		// Two of these at one slot overlap: the end of the first ends both.
		return a.during(ctx, p, new(sync.Mutex), oracle.NotifierFault, p.target+check.NotifierSuffix, func() error {
			a.attackMethods(ctx, p, a.proxyOf[p.target])
			return nil
		})
	case otherDefaults:
		return a.changeDefault(ctx, p)
	case topicGone, bothRebuilt:
		return a.during(ctx, p, &a.Emulator.Attacked, oracle.NotifierFault, p.target, func() error { return a.deleteTopic(ctx, p) })
	case mayNotPublish, mayNotPull, quotaUsedUp:
		// Another fault of methods may end this one early.
		return a.during(ctx, p, new(sync.Mutex), oracle.NotifierFault, p.target, func() error { a.refuseAll(ctx, p); return nil })
	case notifierDown, notifierSlow, notifierMute:
		// It explains nothing but delays.
		return a.attackConnections(ctx, p, a.notifierOf[p.target], oracle.NotifierFault, p.target+check.NotifierSuffix)
	default:
		return a.attackConnections(ctx, p, a.postgresOf[p.target], oracle.LostDatabase, p.target)
	}
}

// during does something to a target, and records it from before its beginning until after its end.
// Two faults never hit the same thing at once: the later waits.
func (a *attacker) during(ctx context.Context, p planned, attacked *sync.Mutex, as oracle.FaultKind, target string, do func() error) error {
	attacked.Lock()
	defer attacked.Unlock()
	if ctx.Err() != nil {
		return nil
	}
	from := time.Now()
	err := do()
	a.faults.Add(string(p.kind), as, target, from, time.Now())
	a.done(p)
	return err
}

func (a *attacker) attackProcess(ctx context.Context, p planned, s *slot) {
	from := time.Now()
	switch p.kind {
	case killWorker, killCron:
		name := s.kill(p.lasts)
		if name == "" {
			return // it was down already
		}
		a.faults.Add(string(p.kind), oracle.Killed, name, from, from.Add(check.Mourning))
	case restart:
		process := s.process()
		if process == nil {
			return
		}
		a.faults.Add(string(p.kind), oracle.Stopped, process.Name, from, from.Add(stopLimit))
		if !process.Terminate(stopLimit) {
			a.fleet.remark(process.Name + " did not end in time after SIGTERM")
		}
	default:
		process := s.process()
		if process == nil {
			return
		}
		harness.Freeze(ctx, process, p.lasts)
		a.faults.Add(string(p.kind), oracle.Frozen, process.Name, from, time.Now())
	}
	a.done(p)
}

// attackMethods has one half of Pub/Sub fail, or its answers get lost.
func (a *attacker) attackMethods(ctx context.Context, p planned, pubsub *pubsubproxy.Server) {
	switch fails := pubsubproxy.Refuse(codes.Unavailable, "a fault on purpose"); p.kind {
	case publishFails:
		pubsub.Set("Publish", fails)
	case pullFails:
		pubsub.Set("Pull", fails)
	default:
		pubsub.Set(pubsubproxy.EveryMethod, pubsubproxy.LoseAnswer)
	}
	backoff.Sleep(ctx, p.lasts)
	pubsub.Heal()
}

// refused are the calls that Pub/Sub refuses to everybody under a fault, and the code
// with which it does.
func refused(k kind) (methods []string, code codes.Code) {
	publish, subscribe := []string{"Publish"}, []string{"Pull", "Acknowledge", "ModifyAckDeadline", "GetSubscription"}
	switch k {
	case mayNotPublish:
		return publish, codes.PermissionDenied
	case mayNotPull:
		return subscribe, codes.PermissionDenied
	default:
		return slices.Concat(publish, subscribe), codes.ResourceExhausted
	}
}

// refuseAll has Pub/Sub refuse some calls, whoever makes them.
func (a *attacker) refuseAll(ctx context.Context, p planned) {
	methods, code := refused(p.kind)
	set := func(behaviour pubsubproxy.Behaviour) {
		for _, pubsub := range a.proxyOf {
			for _, method := range methods {
				pubsub.Set(method, behaviour)
			}
		}
	}
	set(pubsubproxy.Refuse(code, "a fault on purpose: "+string(p.kind)))
	backoff.Sleep(ctx, p.lasts)
	set(nil)
}

// changeDefault has another program change a default. It is no fault: it explains nothing.
func (a *attacker) changeDefault(ctx context.Context, p planned) error {
	a.Postgres.Attacked.Lock() // so that Postgres is there
	defer a.Postgres.Attacked.Unlock()
	if ctx.Err() != nil {
		return nil
	}
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	random := func() *rand.Rand { return rand.New(rand.NewPCG(uint64(a.opts.seed), uint64(p.at))) }
	err := a.others.draw(limited, a.control, random())
	if err != nil { // the connection may be one that an earlier kill has cut
		err = a.others.draw(limited, a.control, random())
	}
	a.done(p)
	return err
}

// deleteTopic has somebody delete the topic, which the programs may make again; or the
// subscription as well, and make both again after a while.
func (a *attacker) deleteTopic(ctx context.Context, p planned) error {
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second+p.lasts)
	defer cancel()
	err := pubsubproxy.DeleteTopic(limited, a.Emulator.URL, "projects/"+a.Name+"/topics/"+harness.Topic)
	if p.kind == bothRebuilt {
		err = errors.Join(err, pubsubproxy.DeleteSubscription(limited, a.Emulator.URL, "projects/"+a.Name+"/subscriptions/"+harness.Subscription))
		backoff.Sleep(ctx, p.lasts)
		err = errors.Join(err, a.makeBoth(limited))
	}
	return err
}

// makeBoth makes the topic and the subscription as the queue needs them, unless the
// programs have.
func (a *attacker) makeBoth(ctx context.Context) error {
	notifier, err := pubsubnotify.New(ctx, a.PubSub(a.Emulator.URL))
	if err != nil {
		return err
	}
	return notifier.Close()
}

func (a *attacker) attackConnections(ctx context.Context, p planned, through *harness.Proxy, as oracle.FaultKind, target string) error {
	return a.during(ctx, p, &through.Attacked, as, target, func() error {
		switch p.kind {
		case postgresDown, notifierDown:
			return through.Down(ctx, p.lasts)
		case postgresCutUp:
			return through.Poison(ctx, harness.CutAfter(harness.Requests, p.bytes), p.lasts)
		case postgresCut:
			return through.Poison(ctx, harness.CutAfter(harness.Answers, p.bytes), p.lasts)
		case postgresSlow, notifierSlow:
			return through.Poison(ctx, harness.Latency(slowBy(p)), p.lasts)
		default:
			return through.Poison(ctx, harness.Mute(muted(p)), p.lasts)
		}
	})
}

// slowBy is the latency of a fault, from 20 ms to 1 s.
func slowBy(p planned) time.Duration { return time.Duration(20+p.bytes/6) * time.Millisecond }

// muted is the direction in which nothing passes.
func muted(p planned) string {
	if p.bytes%2 == 0 {
		return harness.Requests
	}
	return harness.Answers
}

func (a *attacker) done(p planned) {
	a.attacks.count(p.kind)
	a.Progress.Report("%s", p)
}
