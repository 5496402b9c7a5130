package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"syscall"
	"time"

	"google.golang.org/grpc/codes"

	"eventsv2/internal/backoff"
	"eventsv2/pubsubnotify"
	"eventsv2/test/attack/harness"
	"eventsv2/test/oracle"
	"eventsv2/test/pubsubproxy"
	"eventsv2/test/services"
)

// server is a service that can be killed and restarted.
type server struct {
	*services.Service
	attacked sync.Mutex
}

// attacker carries out the plan.
type attacker struct {
	fleet    *fleet
	postgres *server
	emulator *server
	// postgresOf and bellOf are the proxies of all slots, the emitter's too.
	postgresOf, notifierOf map[string]*harness.Proxy
	proxyOf                map[string]*pubsubproxy.Server
	faults                 *faults
	say                    func(string)
	broken                 context.CancelCauseFunc
}

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
				a.broken(fmt.Errorf("%s: %w", p, err))
			}
		})
	}
}

// attack carries out one fault and records it from before its beginning until
// after its end. Two faults never hit the same thing at once: the later waits.
func (a *attacker) attack(ctx context.Context, p planned) error {
	switch p.kind {
	case killPostgres:
		return a.killServer(ctx, p, a.postgres)
	case killEmulator:
		return a.killServer(ctx, p, a.emulator)
	case killWorker, killCron, freezeWorker, freezeCron, restart:
		s := a.fleet.slots[p.target]
		s.attacked.Lock()
		defer s.attacked.Unlock()
		if ctx.Err() != nil {
			return nil
		}
		a.attackProcess(ctx, p, s)
		return nil
	case publishFails, pullFails, notifierSilent:
		a.attackMethods(ctx, p, a.proxyOf[p.target])
		return nil
	case topicGone, bothRebuilt:
		return a.deleteTopic(ctx, p)
	case mayNotPublish, mayNotPull, quotaUsedUp:
		a.refuseAll(ctx, p)
		return nil
	case notifierDown, notifierSlow, notifierMute:
		return a.attackConnections(ctx, p, a.notifierOf[p.target])
	default:
		return a.attackConnections(ctx, p, a.postgresOf[p.target])
	}
}

func (a *attacker) attackProcess(ctx context.Context, p planned, s *slot) {
	from := time.Now()
	switch p.kind {
	case killWorker, killCron:
		name := s.kill(p.lasts)
		if name == "" {
			return // it was down already
		}
		a.faults.add(string(p.kind), oracle.Killed, name, from, from.Add(mourning))
	case restart:
		process := s.process()
		if process == nil {
			return
		}
		a.faults.add(string(p.kind), oracle.Stopped, process.Name, from, from.Add(stopLimit))
		if !process.Terminate(stopLimit) {
			a.fleet.remark(process.Name + " did not end in time after SIGTERM")
		}
	default:
		process := s.process()
		if process == nil {
			return
		}
		process.Signal(syscall.SIGSTOP)
		backoff.Sleep(ctx, p.lasts)
		process.Signal(syscall.SIGCONT)
		a.faults.add(string(p.kind), oracle.Frozen, process.Name, from, time.Now())
	}
	a.done(p)
}

func (a *attacker) killServer(ctx context.Context, p planned, s *server) error {
	s.attacked.Lock()
	defer s.attacked.Unlock()
	if ctx.Err() != nil {
		return nil
	}
	from := time.Now()
	harness.KillTree(s.PID)
	backoff.Sleep(ctx, p.lasts)
	// The end of the load must not keep the server down.
	if err := s.Restart(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	as := oracle.LostDatabase
	if p.kind == killEmulator {
		as = oracle.NotifierFault
	}
	a.faults.add(string(p.kind), as, p.target, from, time.Now())
	a.done(p)
	return nil
}

// attackMethods has one half of Pub/Sub fail, or its answers get lost. Two faults
// of this kind at one slot overlap: the end of the first ends both.
func (a *attacker) attackMethods(ctx context.Context, p planned, broker *pubsubproxy.Server) {
	from := time.Now()
	switch fails := pubsubproxy.Refuse(codes.Unavailable, "a fault on purpose"); p.kind {
	case publishFails:
		broker.Set("Publish", fails)
	case pullFails:
		broker.Set("Pull", fails)
	default:
		broker.Set(pubsubproxy.EveryMethod, pubsubproxy.LoseAnswer)
	}
	backoff.Sleep(ctx, p.lasts)
	broker.Heal()
	a.faults.add(string(p.kind), oracle.NotifierFault, p.target+notifierSuffix, from, time.Now())
	a.done(p)
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

// refuseAll has Pub/Sub refuse some calls, whoever makes them. Another fault of methods
// may end this one early.
func (a *attacker) refuseAll(ctx context.Context, p planned) {
	from := time.Now()
	methods, code := refused(p.kind)
	set := func(behaviour pubsubproxy.Behaviour) {
		for _, broker := range a.proxyOf {
			for _, method := range methods {
				broker.Set(method, behaviour)
			}
		}
	}
	set(pubsubproxy.Refuse(code, "a fault on purpose: "+string(p.kind)))
	backoff.Sleep(ctx, p.lasts)
	set(nil)
	a.faults.add(string(p.kind), oracle.NotifierFault, p.target, from, time.Now())
	a.done(p)
}

// deleteTopic has somebody delete the topic, which the programs may make again; or the
// subscription as well, and make both again after a while.
func (a *attacker) deleteTopic(ctx context.Context, p planned) error {
	a.emulator.attacked.Lock()
	defer a.emulator.attacked.Unlock()
	if ctx.Err() != nil {
		return nil
	}
	from := time.Now()
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second+p.lasts)
	defer cancel()
	err := pubsubproxy.DeleteTopic(limited, a.emulator.URL, "projects/"+projectID+"/topics/"+topicID)
	if p.kind == bothRebuilt {
		err = errors.Join(err, pubsubproxy.DeleteSubscription(limited, a.emulator.URL, "projects/"+projectID+"/subscriptions/"+subscription))
		backoff.Sleep(ctx, p.lasts)
		err = errors.Join(err, a.makeBoth(limited))
	}
	a.faults.add(string(p.kind), oracle.NotifierFault, p.target, from, time.Now())
	a.done(p)
	return err
}

// makeBoth makes the topic and the subscription as the queue needs them, unless the
// programs have.
func (a *attacker) makeBoth(ctx context.Context) error {
	notifier, err := pubsubnotify.New(ctx, pubsub(a.emulator.URL))
	if err != nil {
		return err
	}
	return notifier.Close()
}

func (a *attacker) attackConnections(ctx context.Context, p planned, through *harness.Proxy) error {
	through.Attacked.Lock()
	defer through.Attacked.Unlock()
	if ctx.Err() != nil {
		return nil
	}
	from := time.Now()
	var err error
	switch p.kind {
	case postgresDown, notifierDown:
		err = through.Down(ctx, p.lasts)
	case postgresCutUp:
		err = through.Poison(ctx, harness.CutAfter(harness.Requests, p.bytes), p.lasts)
	case postgresCut:
		err = through.Poison(ctx, harness.CutAfter(harness.Answers, p.bytes), p.lasts)
	case postgresSlow, notifierSlow:
		err = through.Poison(ctx, harness.Latency(slowBy(p)), p.lasts)
	default:
		err = through.Poison(ctx, harness.Mute(muted(p)), p.lasts)
	}
	what := string(p.kind)
	target, as := p.target, oracle.LostDatabase
	if p.kind == notifierDown || p.kind == notifierSlow || p.kind == notifierMute {
		target, as = target+notifierSuffix, oracle.NotifierFault // which excuses nothing but delays
	}
	a.faults.add(what, as, target, from, time.Now())
	a.done(p)
	return err
}

// notifierSuffix marks faults of a slot's connection to Pub/Sub.
const notifierSuffix = "/bell"

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
	a.faults.count(p.kind)
	a.say(p.String())
}
