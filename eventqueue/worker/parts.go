package worker

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/minutes"
)

// deps are shared by the parts of a worker.
type deps struct {
	part
	queue    *eventqueue.Queue
	handlers *eventqueue.Handlers
	number   eventqueue.WorkerNumber
	breakers *breakers
	receiver eventqueue.Receiver
	renewer  renewer
	runs     *runs
	bound    *budget // nil when the worker may take any number of events
	// answering tracks acknowledgements and requeues that the notifier has not taken.
	answering *answering
	cancels   cancelHints
}

// parts run concurrently. An event goes from the puller through the decider and the executor to the
// completer, and its notification to the answers.
type parts struct {
	config     *Config
	puller     *puller
	fairness   *fairness
	urgency    *urgency
	advancer   *advancer
	executor   *executor
	rates      *rateStage
	unanswered *unansweredClaims
	completer  *completer
	answers    *answers
	heart      *heart
	progress   *progressWriter
	// stopsSince is when the worker began to stop: when it is called first.
	stopsSince func() time.Time
}

func newParts(d deps) *parts {
	known := &unknown{}
	runs := d.runs
	completions, advanced := newBatcher[*completedRun](), newBatcher[eventqueue.Event]()
	reporter := &reporter{part: d.part, unknown: known}
	releaser, fairnessSlots := newReleaser(d)
	p := &parts{config: d.config, answers: releaser.answers, stopsSince: sync.OnceValue(time.Now)}
	p.unanswered = &unansweredClaims{d.part, d.queue, newBatcher[unanswered]()}
	p.executor = &executor{part: d.part, queue: d.queue, handlers: d.handlers, reporter: reporter, runs: runs, completions: completions, reported: newBatcher[*execution](),
		values: newValueReader(d.part), hook: newErrorHook(d.part)}
	suspects := newSuspects(d.part, p.executor)
	p.executor.ended = suspects.ended
	p.rates = &rateStage{d.part, newRates(d.config.ClaimBatch), p.executor}
	p.advancer = &advancer{part: d.part, queue: d.queue, receiver: d.receiver, handlers: d.handlers,
		releaser: releaser, advanced: advanced, fairnessSlots: fairnessSlots}
	decider := &decider{part: d.part, reporter: reporter, releaser: releaser,
		rechecks: &rechecks{part: d.part, unknown: known},
		breakers: d.breakers,
		claimer:  &claimer{part: d.part, number: d.number, breakers: d.breakers, unanswered: p.unanswered},
		suspects: suspects,
		rates:    p.rates, executor: p.executor, advancer: p.advancer, forwards: newForwarder(d), stopsSince: p.stopsSince}
	p.advancer.decider = decider
	pulledAll := new(atomic.Bool)
	p.puller = &puller{d.part, d.receiver, releaser, decider, pulledAll}
	p.fairness = &fairness{part: d.part, handlers: d.handlers, runs: runs, reserved: releaser.reserved, decider: decider, pulledAll: pulledAll}
	p.urgency = &urgency{part: d.part, fairness: p.fairness, behind: new(atomic.Bool), after: map[string]eventqueue.Scope{}}
	decider.sawClaimed = p.urgency.sawClaimed
	p.completer = &completer{part: d.part, reporter: reporter, releaser: releaser, runs: runs, completions: completions, advanced: advanced,
		minutes: minutes.Of(d.queue), large: make(chan struct{}, 1), hook: p.executor.hook}
	store, _ := d.renewer.(slotStore)
	p.heart = &heart{d.part, d.renewer, d.receiver, runs, d.cancels, &slotReports{part: d.part, number: d.number, store: store, runs: runs, breakers: d.breakers},
		&hungWatch{d.part, runs, releaser, map[eventqueue.HandlerKey]time.Time{}}}
	reports, _ := d.store.(ProgressStore)
	p.progress = &progressWriter{part: d.part, store: reports, runs: runs, reported: p.executor.reported}
	return p
}

func newForwarder(d deps) *forwarder {
	peers, _ := d.store.(Peers)
	return &forwarder{part: d.part, number: d.number, peers: peers}
}

// newReleaser makes the slots; fairnessSlots of the reserved ones are for fairness alone.
func newReleaser(d deps) (r *releaser, fairnessSlots int) {
	reserved := d.config.Concurrency / reservedFraction
	r = &releaser{slots: newSlots(d.config.Concurrency - reserved), answers: newAnswers(d.queue, d.receiver, d.answering, d.log)}
	r.reserved = r.slots
	if reserved > 0 {
		r.reserved, fairnessSlots = newSlots(reserved), (reserved+1)/2
	}
	r.slots.bound, r.reserved.bound = d.bound, d.bound
	return r, fairnessSlots
}

// How many pulls are in flight: while one batch is claimed, the next one is
// already on its way.
const pullsInFlight = 2

// run works until ctx ends, and stops. base never ends. The stop goes along the way of an event, and each step has its
// context:
//
//  1. ctx: no more is pulled, searched for or taken over from groups.
//  2. grace: handlers may return; those that have not are told by runs.stop.
//  3. write: the ends of events are written, and events that were not begun are released.
//  4. notifyCtx: notifications are acknowledged or requeued, beside the last counts and calls of OnError.
//  5. beat: heartbeats end last, since claims are held until their ends are written.
func (p *parts) run(ctx, base context.Context) {
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
	receivers.Go(func() { p.urgency.run(ctx, base) })
	receivers.Go(func() { p.advancer.dispatchAdvanced(ctx, base) })
	receivers.Go(func() { p.puller.decider.suspects.run(ctx, p.puller.decider.claimContext) })
	writers.Go(func() { p.completer.complete(write) })
	beside.Go(func() { p.unanswered.giveBackUnanswered(write) })
	beside.Go(func() { p.rates.reportRates(write) })
	beside.Go(func() { p.progress.run(ctx) })
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
	beside.Go(func() { _ = p.completer.minutes.HandIn(notifyCtx) }) // which logs it
	beside.Go(func() { p.executor.hook.stop(notifyCtx) })
	p.advancer.notifyRest()
	p.answers.close()
	answerer.Wait()
	stopBeat()
	beside.Wait()
}
