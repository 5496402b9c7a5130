package sim

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"eventsv2/cronchecker"
	"eventsv2/eventqueue"
	"eventsv2/eventqueue/operate"
	"eventsv2/test/oracle"
	"eventsv2/test/testenv"
)

// Result is what became of one seed.
type Result struct {
	Seed       uint64
	Events     int // that were emitted
	Steps      int
	Took       time.Duration // virtual
	Violations []oracle.Violation
	// Trace is what happened, one line for each step.
	Trace []string
	// Faults counts what was done to the queue, by kind, and Outcomes what the
	// workers reported, by label.
	Faults, Outcomes map[string]int
}

// Run simulates one seed in a bubble of its own and judges it. It blocks until
// every goroutine of the simulation has ended. t lends its bubble and a database; no violation
// is reported to it.
func Run(t *testing.T, seed uint64) Result {
	var result Result
	url := testenv.DatabaseURL(t)
	synctest.Test(t, func(*testing.T) { result = simulate(seed, url) })
	return result
}

func simulate(seed uint64, url string) Result {
	w := &world{
		ramps:     map[operate.Lift]bool{},
		seed:      seed,
		start:     time.Now(),
		dice:      newDice(seed, "controller"),
		poked:     make(chan struct{}, 1),
		tables:    openTables(context.Background(), url, newDice(seed, "pool").chance(0.3)),
		attacking: true,
		faults:    map[string]int{},
		outcomes:  map[string]int{},
		parents:   map[int]eventqueue.EventID{},
		audited:   map[eventqueue.EventID]int32{},
		refusals:  map[eventqueue.EventID]rowRefusal{},
		published: outsideStore{senders: map[string]eventqueue.EventID{}},
		broken:    partial{failing: map[way]bool{}, hanging: map[way]bool{}},
	}
	if _, err := w.tables.store.AgreeOnLockTimeout(context.Background(), lockTimeout); err != nil {
		panic(err)
	}
	w.intensity = w.drawIntensity()
	w.notifier = &notifier{w: w}
	w.attackTime = w.dice.between(30*time.Second, 4*time.Minute)
	w.emitsEach = 5 + w.dice.IntN(25)
	w.poisonLeft = w.dice.IntN(3)
	if w.dice.chance(0.15) {
		w.holidays, w.attackTime = 1, w.attackTime+6*time.Minute
	}
	w.leastRetries, w.mostRetries = 1, 3
	if w.dice.chance(0.5) {
		w.leastRetries = w.dice.IntN(4)
		w.mostRetries = w.leastRetries
	}
	w.ruleGap = w.dice.between(2*time.Second, 2*time.Minute)
	if w.dice.chance(0.3) { // claims and rules meet often
		w.ruleGap = w.dice.between(50*time.Millisecond, time.Second)
	}
	w.drawFeatures()
	if w.falls && !w.lastSilence {
		w.attackTime += silent + 3*time.Minute
		w.plan.later(w.dice.between(0, w.attackTime-silent-3*time.Minute), "", nemesis{w}.silence)
	}
	w.cronStop = w.start.Add(w.attackTime + 5*time.Minute + 30*time.Second).Truncate(time.Minute).Add(30 * time.Second)
	w.limitAtFirst()
	w.lingers = w.limits > 0 && w.dice.chance(0.5)
	w.begin()

	ended := make(chan struct{})
	w.plan.later(w.attackTime, "the attack is over", nemesis{w}.heal)
	w.plan.later(w.attackTime+time.Second, quiescence, func() { w.awaitRest(ended) })
	w.serve(ended)
	for _, p := range w.all { // what a deaf handler left behind ends with its process
		p.kill()
	}
	defer w.tables.close()
	return w.result()
}

// begin starts everybody.
func (w *world) begin() {
	w.defineCrons()
	for slot := range w.workers {
		w.startWorker(slot, slot == 0)
	}
	for slot := range w.relays {
		w.startRelay(slot)
	}
	for slot := range w.emitters {
		w.left[slot] = w.emitsEach
		w.startEmitter(slot, w.emitsEach)
	}
	w.startOperator()
	w.plan.later(w.dice.between(0, w.intensity.gap), "", nemesis{w}.attack)
}

// maxWait is how long after the attack the queue may take to come to rest: an
// event may be delayed by eleven minutes and then snoozed by as much, a few times.
const maxWait = 2 * time.Hour

// lastRuns is for runs that begin just before that: what a rate limit puts off may.
const lastRuns = 2 * lockTimeout

// maxSteps ends a queue that runs hot; a usual seed takes one or two thousand, and one with a crowd and
// long outages a hundred thousand.
const maxSteps = 300_000

// awaitRest looks now and then whether nothing is left to do, and stops everybody
// when that is so, or after patience.
func (w *world) awaitRest(ended chan struct{}) {
	late := time.Since(w.start) - w.attackTime - maxWait
	over := late > 0 && (late > lastRuns || !w.anyLocked()) || len(w.trace) > maxSteps
	atRest := !w.hasWork() && time.Now().After(w.cronStop)
	for _, p := range append(w.emitters[:], w.operator) {
		select {
		case <-p.stopped:
		default:
			atRest = false
		}
	}
	if atRest && w.publishes && !w.swept {
		w.swept, atRest = true, false
		w.sweepOutside()
	}
	if !atRest && !over {
		w.plan.later(5*time.Second, quiescence, func() { w.awaitRest(ended) })
		return
	}
	w.rest = w.final()
	for _, p := range w.everybody() {
		p.cancel()
	}
	go func() {
		w.alive.Wait()
		close(ended)
	}()
}

func (w *world) anyLocked() bool {
	return slices.ContainsFunc(w.tables.rows(), func(r row) bool { return r.Locked })
}

func (w *world) final() *oracle.Final {
	f := &oracle.Final{At: now()}
	for _, row := range w.tables.rows() {
		f.Rows = append(f.Rows, oracle.Row{Event: row.ID, Due: row.DelayUntil, Retries: int(row.Retries), Attempt: row.Attempts, Locked: row.Locked})
	}
	for _, row := range w.tables.log() {
		f.Log = append(f.Log, oracle.LogRow{Event: row.ID, Status: row.Status, Value: row.Value})
	}
	for _, o := range w.tables.gridOutputs() {
		f.Outputs = append(f.Outputs, o.Event)
	}
	for _, rule := range w.tables.rules() {
		f.Rules = append(f.Rules, oracle.RuleRow{Type: rule.Type, Scope: rule.Scope, Width: oracle.Width{Prefix: rule.Prefix, Modifier: rule.Modifier}})
	}
	return f
}

func (w *world) result() Result {
	h := &w.history
	h.Final = *w.rest
	h.Bounds = oracle.Bounds{
		LockTimeout: lockTimeout, RetainHistory: true, AsksKnown: true, LostAfter: lostAfter, Progress: progress,
		MaxRetries: func(eventqueue.HandlerKey) (int, int) { return w.leastRetries, w.mostRetries },
		Untold:     mostBatch,
		Beside:     beside,
		Alone:      w.falls,
		Snoozes:    func(eventqueue.HandlerKey) (int, int) { return 0, mostSnoozes },
	}
	w.addCrons(h)
	r := Result{Seed: w.seed, Took: time.Since(w.start), Steps: len(w.trace), Trace: w.trace, Faults: w.faults, Outcomes: w.outcomes, Violations: oracle.Check(h)}
	for _, record := range h.Records {
		if record.Kind == oracle.Emitted {
			r.Events++
		}
	}
	r.Trace = append(r.Trace, fmt.Sprintf("end: %d events, %d rows left, %d in event_log", r.Events, len(h.Final.Rows), len(h.Final.Log)))
	return r
}

// addCrons adds what cron_records holds, and what was due.
func (w *world) addCrons(h *oracle.History) {
	emitted := map[eventqueue.EventID]time.Time{}
	for _, r := range h.Records {
		if r.Kind == oracle.Emitted {
			emitted[r.Event] = r.At
		}
	}
	for _, r := range w.tables.records() {
		h.Add(oracle.Record{Kind: oracle.SlotEmitted, At: emitted[r.Event], Event: r.Event, Cron: r.Cron, Slot: r.Slot})
	}
	definitions, err := cronchecker.NewDefinitions(w.tables.pool).List(context.Background(), nil)
	must(err)
	for _, d := range definitions {
		c := oracle.Cron{ID: int64(d.ID), Policy: oracle.Policy(d.Missed)}
		for at := d.StartsAt.Truncate(time.Minute).Add(time.Minute); at.Before(w.cronStop.Add(-2 * time.Minute)); at = at.Add(time.Minute) {
			c.Slots = append(c.Slots, at)
		}
		h.Crons = append(h.Crons, c)
	}
}
