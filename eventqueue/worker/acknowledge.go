package worker

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/internal/logkey"
)

// answer says what becomes of a delivery: it is acknowledged, or requeued with a delay.
type answer struct {
	delivery delivery
	requeue  bool
	after    time.Duration
	// hold is how long the worker holds the delivery back before it requeues it: a delay shorter
	// than the notifier's unit.
	hold time.Duration
	// declined: this worker cannot run the event, but another one may.
	declined bool
}

// answerTo turns an outcome into an answer. For a wait beyond MaxRequeue this notification is
// acknowledged, and the relay publishes another: because one is pending or, later, because the last
// one was published so long ago that it counts as lost.
func answerTo(d delivery, out Outcome) answer {
	switch {
	case out.To != machine.Queue || out.Delay > eventqueue.MaxRequeue:
		return answer{delivery: d}
	case out.Label == machine.HandlerUnknown && out.Delay <= maxHold:
		return answer{delivery: d, requeue: true, hold: out.Delay, declined: true}
	case out.Label == machine.HandlerUnknown:
		return answer{delivery: d, requeue: true, after: out.Delay, declined: true}
	default:
		return answer{delivery: d, requeue: true, after: out.Delay}
	}
}

const (
	// answerBatch is how many answers go into one request.
	answerBatch = 1000
	// answerTimeout is how long one may take, which is usually some milliseconds.
	answerTimeout = 3 * time.Second
	// acksInFlight and requeuesInFlight are how many requests may be under way at once. Each kind
	// has its own: a notifier that lets one hang may answer the other.
	acksInFlight     = 2
	requeuesInFlight = 4
	// maxAnswers is how many answers of a kind wait for a request at most, some megabytes. Older
	// ones are dropped: their notifications come again when their leases end, and cost one claim
	// each.
	maxAnswers = 10 * answerBatch
	// fewDelays is how many requests one batch is worth with exact delays.
	fewDelays = 16
)

// answers sends answers to the notifier. Adding one never blocks, whatever the notifier does:
// neither claims nor completions nor slots wait for it. An answer that fails, or is dropped, costs
// one more claim later and nothing else.
type answers struct {
	acks, requeues *batcher[answer]
	// notifies are for events that were run without a notification, and get one.
	notifies *batcher[answer]
	queue    *eventqueue.Queue
	receiver eventqueue.Receiver
	taken    *answering
	log      *zap.Logger

	mu      sync.Mutex
	held    map[string]heldAnswer // by AckID
	closing bool
}

// heldAnswer is one that is put when its timer fires.
type heldAnswer struct {
	answer
	timer *time.Timer
}

func newAnswers(queue *eventqueue.Queue, receiver eventqueue.Receiver, taken *answering, log *zap.Logger) *answers {
	return &answers{acks: newBatcher[answer](), requeues: newBatcher[answer](), notifies: newBatcher[answer](),
		queue: queue, receiver: receiver, taken: taken, log: log, held: map[string]heldAnswer{}}
}

// put hands an answer in. It never blocks.
func (as *answers) put(a answer) {
	switch {
	case !a.delivery.notified():
		as.putIn(as.notifies, a)
	case !a.requeue:
		as.putIn(as.acks, a)
	case a.hold > 0 && as.hold(a):
	default:
		as.putIn(as.requeues, a)
	}
}

// putRequeues is put for several that requeue and are not held: they go into one request.
func (as *answers) putRequeues(all []answer) {
	var requeues, notifies []answer
	for _, a := range all {
		if a.delivery.notified() {
			requeues = append(requeues, a)
		} else {
			notifies = append(notifies, a)
		}
	}
	as.putIn(as.requeues, requeues...)
	as.putIn(as.notifies, notifies...)
}

// putIn makes room by dropping the older half, whose leases end first.
func (as *answers) putIn(box *batcher[answer], a ...answer) {
	if dropped := box.putNewest(maxAnswers, a...); dropped > 0 {
		as.log.Warn("acknowledgements and requeues cannot be sent; the oldest are dropped, and their notifications come again when their leases end", zap.Int(logkey.Count, dropped))
	}
}

// hold delays an answer for a while; false means that it is too late for that.
func (as *answers) hold(a answer) bool {
	as.mu.Lock()
	defer as.mu.Unlock()
	if as.closing {
		return false
	}
	id := a.delivery.AckID
	as.held[id] = heldAnswer{a, time.AfterFunc(a.hold, func() { as.release(id) })}
	return true
}

func (as *answers) release(id string) {
	as.mu.Lock()
	defer as.mu.Unlock()
	if h, held := as.held[id]; held {
		delete(as.held, id)
		as.putIn(as.requeues, h.answer)
	}
}

// close says that no more answers are added. Held ones are requeued now.
func (as *answers) close() {
	as.mu.Lock()
	as.closing = true
	requeues := make([]answer, 0, len(as.held))
	for id, h := range as.held {
		h.timer.Stop()
		requeues = append(requeues, h.answer)
		delete(as.held, id)
	}
	as.mu.Unlock()
	as.putRequeues(requeues)
	for _, box := range []*batcher[answer]{as.acks, as.requeues, as.notifies} {
		box.close()
	}
}

// send sends answers to the notifier until all are closed and sent.
func (as *answers) send(ctx context.Context) {
	var lanes sync.WaitGroup
	lanes.Go(func() {
		sendAll(as.acks, acksInFlight, func(batch []answer) []func() { return as.ackRequests(ctx, batch) })
	})
	lanes.Go(func() {
		sendAll(as.requeues, requeuesInFlight, func(batch []answer) []func() { return as.requeueRequests(ctx, batch) })
	})
	lanes.Go(func() {
		sendAll(as.notifies, 1, func(batch []answer) []func() { return as.notifyRequests(ctx, batch) })
	})
	lanes.Wait()
}

// sendAll sends batches of the answers that have arrived, with at most inFlight requests at once,
// until the batcher is closed and empty.
func sendAll(box *batcher[answer], inFlight int, requestsFor func([]answer) []func()) {
	var requests sync.WaitGroup
	defer requests.Wait()
	free := make(chan struct{}, inFlight)
	for {
		free <- struct{}{} // first: answers that arrive until one is free go into the same request
		batch := box.takeNow(nil, answerBatch)
		if len(batch) == 0 {
			<-free
			if !box.wait(nil, nil) {
				return
			}
			continue
		}
		for i, request := range requestsFor(batch) {
			if i > 0 {
				free <- struct{}{}
			}
			requests.Go(func() {
				defer func() { <-free }()
				request()
			})
		}
	}
}

func (as *answers) ackRequests(ctx context.Context, batch []answer) []func() {
	acks := deliveriesOf(batch)
	return []func(){func() {
		if err := as.within(ctx, &as.taken.acks, func(ctx context.Context) error { return as.receiver.Ack(ctx, acks) }); err != nil {
			as.log.Warn("could not acknowledge notifications; they come again", zap.Int(logkey.Count, len(acks)), zap.Error(err))
		}
	}}
}

func (as *answers) requeueRequests(ctx context.Context, batch []answer) (requests []func()) {
	declined, others := splitDeclined(batch)
	return append(as.requeuesByDelay(ctx, others, as.receiver.Requeue), as.requeuesByDelay(ctx, declined, as.decline)...)
}

// decliner is a Receiver with deliveries that only this process knows of.
type decliner interface {
	// Decline is Requeue for events that this process cannot run.
	Decline(ctx context.Context, deliveries []eventqueue.Delivery, after time.Duration) error
}

// decline requeues events that another worker may be able to run.
func (as *answers) decline(ctx context.Context, deliveries []eventqueue.Delivery, after time.Duration) error {
	if d, ok := as.receiver.(decliner); ok {
		return d.Decline(ctx, deliveries, after)
	}
	return as.receiver.Requeue(ctx, deliveries, after)
}

func splitDeclined(batch []answer) (declined, others []answer) {
	for _, a := range batch {
		if a.declined {
			declined = append(declined, a)
		} else {
			others = append(others, a)
		}
	}
	return declined, others
}

func (as *answers) requeuesByDelay(ctx context.Context, batch []answer, requeue func(context.Context, []eventqueue.Delivery, time.Duration) error) (requests []func()) {
	requeues := byDelay(batch, roundUp)
	if len(requeues) > fewDelays {
		requeues = byDelay(batch, roundRoughly)
	}
	for _, after := range slices.Sorted(maps.Keys(requeues)) { // the shortest delay comes first
		deliveries := deliveriesOf(requeues[after])
		requests = append(requests, func() {
			if err := as.within(ctx, &as.taken.requeues, func(ctx context.Context) error { return requeue(ctx, deliveries, after) }); err != nil {
				as.log.Warn("could not requeue notifications; they come again when their lease ends",
					zap.Int(logkey.Count, len(deliveries)), zap.Duration(logkey.Delay, after), zap.Error(err))
			}
		})
	}
	return requests
}

// notifyRequests publishes these notifications early: a worker that pulls one requeues it for the
// rest of its event's delay.
func (as *answers) notifyRequests(ctx context.Context, batch []answer) []func() {
	slices.SortFunc(batch, func(a, b answer) int { return cmp.Compare(a.delivery.Event, b.delivery.Event) })
	unpublished := make([]eventqueue.Notification, len(batch))
	for i, a := range batch {
		unpublished[i] = a.delivery.Notification
	}
	return []func(){func() { as.queue.Notify(ctx, unpublished) }}
}

func deliveriesOf(batch []answer) []eventqueue.Delivery {
	deliveries := make([]eventqueue.Delivery, len(batch))
	for i, a := range batch {
		deliveries[i] = a.delivery.Delivery
	}
	return deliveries
}

func byDelay(batch []answer, round func(time.Duration) time.Duration) map[time.Duration][]answer {
	groups := map[time.Duration][]answer{}
	for _, a := range batch {
		after := round(a.after)
		groups[after] = append(groups[after], a)
	}
	return groups
}

// within bounds one request, and records its result. A receiver that is known to be down has a
// failure of its own.
func (as *answers) within(ctx context.Context, taken *refusals, request func(context.Context) error) error {
	began := time.Now()
	limited, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	err := request(limited)
	if ctx.Err() != nil {
		return err // the worker stops, which is no fault of the notifier
	}
	if down, ok := as.receiver.(ailing); ok && down.Failure() != nil {
		taken.record(began, nil)
	} else {
		taken.record(began, err)
	}
	return err
}

// roundUp groups delays by tenths of a second below ten seconds and by seconds
// above, always upwards.
func roundUp(d time.Duration) time.Duration {
	unit := time.Second
	if d < 10*time.Second {
		unit = 100 * time.Millisecond
	}
	return min((d+unit-1)/unit*unit, eventqueue.MaxRequeue)
}

// roundRoughly makes few groups of any delays: 0, half a second, and four in each doubling above a
// second, where it leaves out less than a fifth of a delay. An event that is tried too early by
// that is requeued for the rest of its delay.
func roundRoughly(d time.Duration) time.Duration {
	if d <= time.Second {
		return (d + time.Second/2 - 1) / (time.Second / 2) * (time.Second / 2)
	}
	unit := time.Second / 4
	for 8*unit <= d {
		unit *= 2
	}
	return min(d/unit*unit, eventqueue.MaxRequeue)
}
