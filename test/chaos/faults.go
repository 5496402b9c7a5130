package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"time"

	"eventsv2/test/oracle"
	"eventsv2/test/services"
)

// fault is one thing that went wrong, on purpose or not, as the judge needs it.
type fault struct {
	what string
	as   oracle.FaultKind
	// target is a slot, one process of it, or everything ("").
	target   string
	from, to time.Time
}

// String is the fault in a report.
func (f fault) String() string {
	target := f.target
	if target == "" {
		target = "all"
	}
	return fmt.Sprintf("%s: %s from %s to %s", target, f.what, f.from.UTC().Format(clockFormat), f.to.UTC().Format(clockFormat))
}

const clockFormat = "15:04:05.000"

// concerns tells whether a fault is one of a process, or of all.
func (f fault) concerns(process string) bool {
	return f.target == "" || f.target == process || f.target == slotPostgres
}

// unplanned tells whether a fault is one that a holder of a lock does not see
// coming. An orderly stop is none, and the broker has no say in locks.
func (f fault) unplanned() bool { return f.as != oracle.Stopped && f.as != oracle.Broker }

// forOracle is the fault in the terms of the oracle.
func (f fault) forOracle() oracle.Fault {
	actor := f.target
	if actor == slotPostgres || actor == slotEmulator {
		actor = ""
	}
	return oracle.Fault{Kind: f.as, Actor: actor, From: f.from, To: f.to}
}

// life is the time of one process in its slot.
type life struct {
	process, slot string
	from, to      time.Time
}

// faults is the record of what went wrong. It is safe for concurrent use.
type faults struct {
	mu     sync.Mutex
	all    []fault
	lives  []life
	counts map[kind]int
}

func newFaults() *faults { return &faults{counts: map[kind]int{}} }

// add records a fault.
func (f *faults) add(what string, as oracle.FaultKind, target string, from, to time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all = append(f.all, fault{what, as, target, from, to})
}

// count counts a fault of the plan that was carried out.
func (f *faults) count(k kind) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.counts[k]++
}

// born records the beginning of a process.
func (f *faults) born(process, slot string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lives = append(f.lives, life{process: process, slot: slot, from: time.Now()})
}

// processEnded is the end of a process, for whatever reason.
const processEnded = "the process ended"

// died records the end of a process.
func (f *faults) died(process string) {
	f.mu.Lock()
	for i := range f.lives {
		if f.lives[i].process == process {
			f.lives[i].to = time.Now()
		}
	}
	f.mu.Unlock()
	now := time.Now()
	f.add(processEnded, oracle.Stopped, process, now, now.Add(mourning))
}

// mourning is how long the end of a process has consequences: its locks expire,
// and a successor starts.
const mourning = lockTimeout + 10*time.Second

// list returns the faults; those of the connections of a slot as faults of the
// processes that used them.
func (f *faults) list() []fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []fault
	for _, one := range f.all {
		slot, bell := strings.CutSuffix(one.target, bellSuffix)
		known := false
		for _, l := range f.lives {
			if l.slot != slot {
				continue
			}
			known = true
			if !l.from.After(one.to) && (l.to.IsZero() || !l.to.Before(one.from)) {
				split := one
				split.target = l.process
				if bell {
					split.target += bellSuffix
				}
				all = append(all, split)
			}
		}
		if !known {
			all = append(all, one)
		}
	}
	return all
}

// kills counts what was killed.
func (f *faults) kills() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for k, count := range f.counts {
		if k.kills() {
			n += count
		}
	}
	return n
}

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
	postgresOf, bellOf map[string]*proxy
	faults             *faults
	say                func(string)
	broken             context.CancelCauseFunc
}

// run attacks until the plan is done or ctx ends; then it has mended everything.
func (a *attacker) run(ctx context.Context, plan []planned, began time.Time) {
	var attacks sync.WaitGroup
	defer attacks.Wait()
	for _, p := range plan {
		sleep(ctx, time.Until(began.Add(p.at)))
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
	case bellDown, bellSlow, bellMute:
		return a.attackConnections(ctx, p, a.bellOf[p.target])
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
		a.faults.add(string(p.kind), oracle.Stopped, process.name, from, from.Add(stopLimit))
		if !terminate(process) {
			a.fleet.remark(process.name + " did not end in time after SIGTERM")
		}
	default:
		process := s.process()
		if process == nil {
			return
		}
		process.signal(syscall.SIGSTOP)
		sleep(ctx, p.lasts)
		process.signal(syscall.SIGCONT)
		a.faults.add(string(p.kind), oracle.Frozen, process.name, from, time.Now())
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
	killTree(s.PID)
	sleep(ctx, p.lasts)
	// The end of the load must not keep the server down.
	if err := s.Restart(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	as := oracle.LostDatabase
	if p.kind == killEmulator {
		as = oracle.Broker
	}
	a.faults.add(string(p.kind), as, p.target, from, time.Now())
	a.done(p)
	return nil
}

func (a *attacker) attackConnections(ctx context.Context, p planned, through *proxy) error {
	through.attacked.Lock()
	defer through.attacked.Unlock()
	if ctx.Err() != nil {
		return nil
	}
	from := time.Now()
	var err error
	switch p.kind {
	case postgresDown, bellDown:
		err = through.down(ctx, p.lasts)
	case postgresCutUp:
		err = through.poison(ctx, cutAfter(requests, p.bytes), p.lasts)
	case postgresCut:
		err = through.poison(ctx, cutAfter(answers, p.bytes), p.lasts)
	case postgresSlow, bellSlow:
		err = through.poison(ctx, latency(slowBy(p)), p.lasts)
	default:
		err = through.poison(ctx, mute(muted(p)), p.lasts)
	}
	what := string(p.kind)
	target, as := p.target, oracle.LostDatabase
	if p.kind == bellDown || p.kind == bellSlow || p.kind == bellMute {
		target, as = target+bellSuffix, oracle.Broker // which excuses nothing but delays
	}
	a.faults.add(what, as, target, from, time.Now())
	a.done(p)
	return err
}

// bellSuffix marks faults of a slot's connection to Pub/Sub.
const bellSuffix = "/bell"

// slowBy is the latency of a fault, from 20 ms to 1 s.
func slowBy(p planned) time.Duration { return time.Duration(20+p.bytes/6) * time.Millisecond }

// muted is the direction in which nothing passes.
func muted(p planned) string {
	if p.bytes%2 == 0 {
		return requests
	}
	return answers
}

func (a *attacker) done(p planned) {
	a.faults.count(p.kind)
	a.say(p.String())
}
