package eventqueue

import (
	"context"
	"maps"
	"slices"
	"time"

	"go.uber.org/zap"

	"eventsv2/eventqueue/machine"
)

// answer is what becomes of a delivery: dropped, or given back after a while.
type answer struct {
	delivery Delivery
	requeue  bool
	after    time.Duration
}

// answerTo turns an outcome into an answer. A wait beyond MaxRequeue is the
// relay's: this notification is dropped, and the relay rings for the row, because
// it is owed a notification or, later, because it has been silent for long.
func answerTo(d Delivery, out Outcome) answer {
	if out.To != machine.Queue || out.Delay > MaxRequeue {
		return answer{delivery: d}
	}
	return answer{delivery: d, requeue: true, after: out.Delay}
}

// How many answers go into one request, and how long one may take.
const (
	answerBatch   = 1000
	answerTimeout = 10 * time.Second
)

// answer sends answers to the notifier until w.answers is closed: whatever has
// come together while the last requests were out goes into the next ones. An
// answer that fails costs a look-up later and nothing else.
func (w *Worker) answer(ctx context.Context) {
	for first := range w.answers {
		batch := append(make([]answer, 0, len(w.answers)+1), first)
		for len(batch) < answerBatch && len(w.answers) > 0 {
			batch = append(batch, <-w.answers)
		}
		w.sendAnswers(ctx, batch)
	}
}

func (w *Worker) sendAnswers(ctx context.Context, batch []answer) {
	var acks []Delivery
	var unrung []Notification
	requeues := map[time.Duration][]Delivery{}
	for _, a := range batch {
		switch {
		case !a.delivery.rung():
			unrung = append(unrung, a.delivery.Notification)
		case a.requeue:
			after := roundUp(a.after)
			requeues[after] = append(requeues[after], a.delivery)
		default:
			acks = append(acks, a.delivery)
		}
	}
	w.queue.publisher.publish(ctx, unrung) // early: their next look waits for the rest of the delay
	if len(acks) > 0 {
		if err := within(ctx, func(ctx context.Context) error { return w.receiver.Ack(ctx, acks) }); err != nil {
			w.log.Warn("could not acknowledge notifications; they come again", zap.Int(logCount, len(acks)), zap.Error(err))
		}
	}
	for _, after := range slices.Sorted(maps.Keys(requeues)) { // who waits least comes first
		deliveries := requeues[after]
		if err := within(ctx, func(ctx context.Context) error { return w.receiver.Requeue(ctx, deliveries, after) }); err != nil {
			w.log.Warn("could not requeue notifications; they come again when their lease ends",
				zap.Int(logCount, len(deliveries)), zap.Duration(logDelay, after), zap.Error(err))
		}
	}
}

// within bounds one request.
func within(ctx context.Context, request func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	return request(ctx)
}

// roundUp groups delays by tenths of a second below ten seconds and by seconds
// above, always upwards.
func roundUp(d time.Duration) time.Duration {
	unit := time.Second
	if d < 10*time.Second {
		unit = 100 * time.Millisecond
	}
	return min((d+unit-1)/unit*unit, MaxRequeue)
}
