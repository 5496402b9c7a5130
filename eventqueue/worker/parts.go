package worker

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/minutes"
)

// means are what the parts of a worker need.
type means struct {
	part
	queue    *eventqueue.Queue
	handlers *eventqueue.Handlers
	number   eventqueue.WorkerNumber
	known    eventqueue.HandlerSet
	receiver eventqueue.Receiver
	renewer  renewer
	runs     *runs
	bound    *budget // nil when the worker may take any number of events
	// answering is for what the notifier does not take.
	answering *answering
}

// parts run concurrently. An event goes from the puller through the decider and the executor to the
// completer, and its notification to the answers.
type parts struct {
	config     *Config
	puller     *puller
	fairness   *fairness
	advancer   *advancer
	executor   *executor
	rates      *rateStage
	unanswered *unansweredClaims
	completer  *completer
	answers    *answers
	heart      *heart
	// stopsSince is when the worker began to stop: when it is called first.
	stopsSince func() time.Time
}

func newParts(m means) *parts {
	known := &unknown{}
	runs := m.runs
	completions, advanced := newBatcher[*completedRun](), newBatcher[eventqueue.Event]()
	reporter := &reporter{part: m.part, unknown: known}
	releaser, fairnessSlots := newReleaser(m)
	p := &parts{config: m.config, answers: releaser.answers, stopsSince: sync.OnceValue(time.Now)}
	p.unanswered = &unansweredClaims{m.part, m.queue, newBatcher[unanswered]()}
	p.executor = &executor{part: m.part, queue: m.queue, handlers: m.handlers, reporter: reporter, runs: runs, completions: completions,
		values: newValueReader(m.part)}
	suspects := newSuspects(m.part, p.executor)
	p.executor.ended = suspects.ended
	p.rates = &rateStage{m.part, newRates(m.config.ClaimBatch), p.executor}
	p.advancer = &advancer{part: m.part, queue: m.queue, receiver: m.receiver, handlers: m.handlers,
		releaser: releaser, advanced: advanced, fairnessSlots: fairnessSlots}
	decider := &decider{part: m.part, reporter: reporter, releaser: releaser,
		rechecks: &rechecks{m.part, known},
		claimer:  &claimer{part: m.part, number: m.number, known: m.known, unanswered: p.unanswered},
		suspects: suspects,
		rates:    p.rates, executor: p.executor, advancer: p.advancer, forwards: newForwarder(m), stopsSince: p.stopsSince}
	p.advancer.decider = decider
	pulledAll := new(atomic.Bool)
	p.puller = &puller{m.part, m.receiver, releaser, decider, pulledAll}
	p.fairness = &fairness{part: m.part, handlers: m.handlers, runs: runs, reserved: releaser.reserved, decider: decider, pulledAll: pulledAll}
	p.completer = &completer{part: m.part, reporter: reporter, releaser: releaser, runs: runs, completions: completions, advanced: advanced,
		minutes: minutes.Of(m.queue), large: make(chan struct{}, 1)}
	store, _ := m.renewer.(slotStore)
	p.heart = &heart{m.part, m.renewer, m.receiver, runs, &slotReports{part: m.part, number: m.number, store: store, runs: runs},
		&hungWatch{m.part, runs, releaser, map[eventqueue.HandlerKey]time.Time{}}}
	return p
}

func newForwarder(m means) *forwarder {
	peers, _ := m.store.(Peers)
	return &forwarder{part: m.part, number: m.number, peers: peers}
}

// newReleaser makes the slots; fairnessSlots of the reserved ones are for fairness alone.
func newReleaser(m means) (r *releaser, fairnessSlots int) {
	reserved := m.config.Concurrency / reservedFraction
	r = &releaser{slots: newSlots(m.config.Concurrency - reserved), answers: newAnswers(m.queue, m.receiver, m.answering, m.log)}
	r.reserved = r.slots
	if reserved > 0 {
		r.reserved, fairnessSlots = newSlots(reserved), (reserved+1)/2
	}
	r.slots.bound, r.reserved.bound = m.bound, m.bound
	return r, fairnessSlots
}

// How many pulls are in flight: while one batch is claimed, the next one is
// already on its way.
const pullsInFlight = 2

// run works until ctx ends, and stops. base never ends.
func (p *parts) run(ctx, base context.Context) {
	// ctx stops the pulling, runs.stop the handlers, write the statements that complete their
	// events, and notifyCtx the requests to the notifier.
	defer p.executor.runs.stop(eventqueue.ErrStopping)
	write, stopWrite := context.WithCancel(base)
	defer stopWrite()
	notifyCtx, stopNotifying := context.WithCancel(base)
	defer stopNotifying()
	beat, stopBeat := context.WithCancel(base)
	defer stopBeat()

	var receivers, writers, answerer, beside sync.WaitGroup
	for range pullsInFlight {
		receivers.Go(func() { p.puller.receive(ctx, base) })
	}
	receivers.Go(func() { p.fairness.run(ctx, base) })
	receivers.Go(func() { p.advancer.dispatchAdvanced(ctx, base) })
	receivers.Go(func() { p.puller.decider.suspects.run(ctx, p.puller.decider.claimContext) })
	writers.Go(func() { p.completer.complete(write) })
	writers.Go(func() { p.unanswered.giveBackUnanswered(write) })
	beside.Go(func() { p.rates.reportRates(write) })
	answerer.Go(func() { p.answers.send(notifyCtx) })
	beside.Go(func() { p.heart.heartbeat(beat) })
	beside.Go(func() {
		p.executor.reporter.sumUp(beat, func() Slots { return p.executor.runs.slots(time.Now(), p.config.Concurrency) })
	})

	<-ctx.Done()
	p.stopsSince()
	end := time.Now().Add(max(p.config.GracePeriod, 0))
	grace, endGrace := context.WithDeadline(base, end)
	defer endGrace()
	receivers.Wait()
	p.unanswered.box.close()
	p.rates.rates.close()
	p.executor.stop(grace)
	// Even if something hangs, the last writes and answers have a bounded time. It is counted from
	// the end of the grace period, though all handlers may have returned before: completions can
	// still be written to a database that comes back within it.
	if end = end.Add(abandonAfter); end.Before(time.Now()) { // a claim under way took long
		end = time.Now()
	}
	defer time.AfterFunc(time.Until(end.Add(lastWritesTake)), stopWrite).Stop()
	defer time.AfterFunc(time.Until(end.Add(lastWritesTake+lastAnswersTake)), stopNotifying).Stop()
	p.completer.completions.close()
	writers.Wait()
	beside.Go(func() { p.handIn(base) })
	p.advancer.notifyRest()
	p.answers.close()
	answerer.Wait()
	stopBeat()
	beside.Wait()
}

// handIn hands in the last counts, beside the last answers.
func (p *parts) handIn(base context.Context) {
	ctx, cancel := context.WithTimeout(base, lastAnswersTake)
	defer cancel()
	_ = p.completer.minutes.HandIn(ctx) // which logs it
}
