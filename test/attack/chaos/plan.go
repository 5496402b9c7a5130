package main

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"eventsv2/test/attack/chaos/check"
)

// kind is a kind of fault.
type kind string

// The kinds.
const (
	killWorker     kind = "kill -9 of a worker"
	killCron       kind = "kill -9 of a cron process"
	killPostgres   kind = "kill -9 of Postgres"
	killEmulator   kind = "kill -9 of the emulator (loses everything)"
	freezeWorker   kind = "SIGSTOP of a worker past its locks, SIGCONT"
	freezeCron     kind = "SIGSTOP of a cron process, SIGCONT"
	restart        kind = "SIGTERM and restart"
	postgresDown   kind = "Postgres connections cut and refused"
	postgresCutUp  kind = "Postgres connections cut within a request"
	postgresCut    kind = "Postgres connections cut within an answer"
	postgresSlow   kind = "Postgres connections slow"
	postgresMute   kind = "Postgres connections silent"
	notifierDown   kind = "Pub/Sub connections cut and refused"
	notifierSlow   kind = "Pub/Sub connections slow"
	notifierMute   kind = "Pub/Sub connections silent"
	publishFails   kind = "publishing to Pub/Sub fails, pulling works"
	pullFails      kind = "pulling from Pub/Sub fails, publishing works"
	notifierSilent kind = "Pub/Sub does what it is asked, and its answers are lost"
	topicGone      kind = "the topic is deleted"
	bothRebuilt    kind = "topic and subscription are deleted, and made again"
	mayNotPublish  kind = "the publisher role is revoked, and given back"
	mayNotPull     kind = "the subscriber role is revoked, and given back"
	quotaUsedUp    kind = "the quota of Pub/Sub is used up for a while"
	otherDefaults  kind = "another program sets a default of the database or the role"
)

// kills reports whether a fault of this kind is a kill -9.
func (k kind) kills() bool {
	return k == killWorker || k == killCron || k == killPostgres || k == killEmulator
}

// ends reports whether a fault of this kind ends a program.
func (k kind) ends() bool { return k == killWorker || k == killCron || k == restart }

// In runs of at least longRun, one fault in outageShare of a kind that may be an outage
// lasts from outageMin to outageMax. Shorter runs would have no time left for the rest.
const (
	longRun     = 10 * time.Minute
	outageShare = 5
	outageMin   = 60 * time.Second
	outageMax   = 90 * time.Second
)

// mayBeOutage reports whether a fault of this kind may last for long: Pub/Sub that is not
// there, or refuses, and answers of Postgres that are lost.
func (k kind) mayBeOutage() bool {
	switch k {
	case notifierDown, notifierMute, publishFails, pullFails, notifierSilent, mayNotPublish, mayNotPull, quotaUsedUp,
		postgresMute, postgresCut:
		return true
	default:
		return false
	}
}

func workerSlots() []string { return []string{"w1", "w2", "w3", "w4"} }
func cronSlots() []string   { return []string{"c1", "c2"} }

// planned is one fault of the plan.
type planned struct {
	at     time.Duration // from the beginning of the load
	kind   kind
	target string // a slot
	lasts  time.Duration
	bytes  int // that pass before a cut
}

// String is the fault in the log of the run.
func (p planned) String() string {
	return fmt.Sprintf("%s: %s for %s", p.target, p.kind, p.lasts.Round(10*time.Millisecond))
}

// frequency is how often a kind of fault happens, to whom and for how long.
type frequency struct {
	kind      kind
	perMinute float64
	targets   []string
	min, max  time.Duration
}

// frequencies make 5.3 kills a minute.
func frequencies() []frequency {
	workers, crons := workerSlots(), cronSlots()
	programs := slices.Concat(workers, crons)
	connected := slices.Concat(programs, []string{check.SlotEmitter})
	const ms = time.Millisecond
	return []frequency{
		{killWorker, 3, workers, 0, 1500 * ms},
		{killCron, 1, crons, 0, 3000 * ms},
		{killPostgres, 0.7, []string{check.SlotPostgres}, 0, 2000 * ms},
		{killEmulator, 0.6, []string{check.SlotEmulator}, 0, 3000 * ms},
		{freezeWorker, 1, workers, check.LockTimeout + 500*ms, check.LockTimeout + 4000*ms},
		{freezeCron, 0.3, crons, check.LockTimeout, check.LockTimeout + 4000*ms},
		{restart, 1, programs, 0, 0},
		{postgresDown, 1, connected, 100 * ms, check.LockTimeout + 1000*ms},
		{postgresCutUp, 1, connected, 500 * ms, 2000 * ms},
		{postgresCut, 1.5, connected, 500 * ms, 2000 * ms},
		{postgresSlow, 0.7, connected, 1000 * ms, 4000 * ms},
		{postgresMute, 0.7, connected, 1000 * ms, check.LockTimeout + 2000*ms},
		{notifierDown, 0.7, connected, 500 * ms, 5000 * ms},
		{notifierSlow, 0.3, connected, 1000 * ms, 4000 * ms},
		{notifierMute, 0.5, connected, 1000 * ms, 8000 * ms},
		{publishFails, 0.7, connected, 1000 * ms, 8000 * ms},
		{pullFails, 0.7, workers, 1000 * ms, 8000 * ms},
		{notifierSilent, 0.5, connected, 1000 * ms, 8000 * ms},
		{topicGone, 0.3, []string{check.SlotEmulator}, 0, 0},
		{bothRebuilt, 0.3, []string{check.SlotEmulator}, 0, 3000 * ms},
		{mayNotPublish, 0.4, []string{check.SlotEmulator}, 2000 * ms, 10000 * ms},
		{mayNotPull, 0.4, []string{check.SlotEmulator}, 2000 * ms, 10000 * ms},
		{quotaUsedUp, 0.4, []string{check.SlotEmulator}, 2000 * ms, 10000 * ms},
		{otherDefaults, 2, []string{check.SlotPostgres}, 0, 0},
	}
}

// longLived are the slots whose process lives through a steady run, so that what grows in it can
// be seen: it is frozen and cut off, and never ended.
func longLived() []string { return []string{"w1", "w4", "c1"} }

// steadyEvery is the time between two faults of a steady run.
const steadyEvery = time.Minute

// steadyPlan draws the faults of a steady run: one at a time, each kind in turn.
func steadyPlan(seed int64, length time.Duration) []planned {
	random := rand.New(rand.NewPCG(uint64(seed), 0x57ead))
	var plan []planned
	kinds := frequencies()
	for at := steadyEvery / 2; at < length; at += steadyEvery {
		f := kinds[len(plan)%len(kinds)]
		if f.kind.ends() {
			f.targets = slices.DeleteFunc(slices.Clone(f.targets), func(slot string) bool { return slices.Contains(longLived(), slot) })
		}
		plan = append(plan, f.draw(random, at))
	}
	return plan
}

// draw draws a fault of a kind.
func (f frequency) draw(random *rand.Rand, at time.Duration) planned {
	p := planned{at: at, kind: f.kind, target: f.targets[random.IntN(len(f.targets))], lasts: f.min, bytes: random.IntN(6000)}
	if f.max > f.min {
		p.lasts += time.Duration(random.Int64N(int64(f.max - f.min)))
	}
	return p
}

// warmUp is how long nothing is attacked.
const warmUp = 3 * time.Second

// makePlan draws the faults of a run. The same seed and length give the same
// plan. Every kind happens at least once, spread over the whole time.
func makePlan(seed int64, length time.Duration) []planned {
	random := rand.New(rand.NewPCG(uint64(seed), 0xfa017))
	var plan []planned
	span := max(length-warmUp, 0)
	for _, f := range frequencies() {
		n := max(1, int(f.perMinute*length.Minutes()+0.5))
		for i := range n {
			share := (float64(i) + random.Float64()) / float64(n)
			p := f.draw(random, warmUp+time.Duration(share*float64(span)))
			if f.kind.mayBeOutage() && length >= longRun && i%outageShare == 0 {
				p.lasts = outageMin + time.Duration(random.Int64N(int64(outageMax-outageMin)))
			}
			plan = append(plan, p)
		}
	}
	slices.SortStableFunc(plan, func(a, b planned) int { return cmp.Compare(a.at, b.at) })
	return plan
}
