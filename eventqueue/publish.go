package eventqueue

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"

	"eventsv2/internal/cause"
	"eventsv2/internal/logkey"
	"eventsv2/internal/refusal"
)

// Sender publishes the notifications of rows that are committed. Concurrent callers share requests:
// notifications that arrive while one request is under way are sent together in the next one. It is
// safe for concurrent use.
//
// A failure is never reported to the emitter. The notifications are marked as pending, which wakes
// the relay, and workers that fall back to the database. After a failure no caller waits for the
// notifier until it has answered a probe, so that emit keeps its latency while Pub/Sub is down.
//
// A sender that is down needs no help to recover: once rest has passed, the next publish of any
// caller is a probe as well. So no user of a sender can silence itself by never asking.
type Sender struct {
	notifier    Publisher
	markPending func(ctx context.Context, ids []EventID) error
	timeout     time.Duration // of one request
	rest        time.Duration // from a failure to the next probe
	log         *zap.Logger

	mu      sync.Mutex
	waiting []Notification
	done    chan struct{} // closed when the waiting batch is published or pending
	idle    chan struct{} // closed when the goroutine in flush ends; nil when there is none
	probing chan struct{} // closed when the probe under way ends; nil when there is none
	down    bool          // the last request failed
	failure error         // of the last request; nil unless down
	causes  cause.Log     // of failures
	probeAt time.Time     // when down: not before then
}

// NewSender makes a Sender. timeout bounds one request. rest is the time from a failure to the next
// probe; with 0 the next publish is one.
func NewSender(notifier Publisher, pending PendingStore, timeout, rest time.Duration, log *zap.Logger) *Sender {
	return &Sender{notifier: notifier, markPending: pending.MarkPending, timeout: timeout, rest: rest, log: log}
}

// defaultRest bounds both how long a notifier that works again goes unused and how often one that
// is down is asked.
const defaultRest = time.Second

// failureHolds is how long a failure counts after the next probe was due: where nothing is emitted,
// nothing is tried.
const failureHolds = 10 * time.Second

// LastError returns why the notifier is believed to be down; nil means up, or not known.
func (p *Sender) LastError() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.probeAt) > failureHolds {
		return nil
	}
	return p.failure
}

// Up reports whether the notifier is believed to be reachable.
func (p *Sender) Up() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.down
}

// probe finds out, without making a caller wait, whether a notifier that was down answers again.
// The notification that it sends stays pending: it may be published twice.
func (p *Sender) probe(ctx context.Context, n Notification) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.down || p.probing != nil || time.Now().Before(p.probeAt) {
		return
	}
	ended := make(chan struct{})
	p.probing = ended
	ctx = context.WithoutCancel(ctx)
	go func() {
		defer close(ended)
		_ = p.Send(ctx, []Notification{n}) // which has recorded the result
		p.mu.Lock()
		defer p.mu.Unlock()
		p.probing = nil
	}()
}

// publish adds the notifications to the next requests and waits until they are published or
// pending, for the timeout at most, or until ctx ends; they are published all the same then.
func (p *Sender) publish(ctx context.Context, notifications []Notification) {
	if len(notifications) == 0 {
		return
	}
	p.mu.Lock()
	if p.done == nil {
		p.done = make(chan struct{})
	}
	p.waiting = append(p.waiting, notifications...)
	done := p.done
	if p.idle == nil {
		p.idle = make(chan struct{})
		go p.flush(context.WithoutCancel(ctx))
	}
	p.mu.Unlock()

	timer := time.NewTimer(p.timeout)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// flush sends the waiting notifications until there are none. wait waits for it.
func (p *Sender) flush(ctx context.Context) {
	for {
		p.mu.Lock()
		batch, done := p.waiting, p.done
		p.waiting, p.done = nil, nil
		if len(batch) == 0 {
			close(p.idle)
			p.idle = nil
			p.mu.Unlock()
			return
		}
		p.mu.Unlock()
		p.send(ctx, batch)
		close(done)
	}
}

func (p *Sender) send(ctx context.Context, batch []Notification) {
	for len(batch) > 0 {
		n := min(len(batch), MaxPublish)
		if !p.Up() {
			p.MarkPending(ctx, batch)
			p.probe(ctx, batch[0])
			return
		}
		if p.Send(ctx, batch[:n]) != nil { // which has recorded the error
			p.MarkPending(ctx, batch[:n])
		}
		batch = batch[n:]
	}
}

// Send publishes at most MaxPublish notifications, within the sender's timeout, and records whether
// the notifier is up. If it returns an error, the caller marks them as pending. It logs each change
// of state and each other cause, and not each failure, of which there may be many.
func (p *Sender) Send(ctx context.Context, batch []Notification) error {
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	err := p.notifier.Publish(ctx, batch)
	p.mu.Lock()
	defer p.mu.Unlock()
	wasDown := p.down
	p.failure = err
	p.down = err != nil
	if p.down {
		p.probeAt = time.Now().Add(p.rest)
	}
	switch {
	case p.down && p.causes.Worth(err, !wasDown):
		p.log.Warn("could not publish notifications; until that is possible again their events are found in the database", zap.Error(err))
	case !p.down && wasDown:
		p.log.Info("notifications are published again")
	}
	return err
}

// MarkPending marks notifications as pending, which wakes the relay, and workers that find due
// events in the database. When that fails too, the relay finds the events later by the age of
// notified_at.
func (p *Sender) MarkPending(ctx context.Context, batch []Notification) {
	ids := make([]EventID, len(batch))
	for i, n := range batch {
		ids[i] = n.Event
	}
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	if err := refusal.Report(p.log, p.markPending(ctx, ids)); err != nil {
		p.log.Warn("could not mark notifications as pending; the relay finds them by their age",
			zap.Int(logkey.Count, len(ids)), zap.Error(err))
	}
}

// wait returns when nothing is being sent, or when ctx ends.
func (p *Sender) wait(ctx context.Context) error {
	p.mu.Lock()
	idle := p.idle
	p.mu.Unlock()
	if err := waitFor(ctx, idle); err != nil {
		return err
	}
	p.mu.Lock()
	probing := p.probing
	p.mu.Unlock()
	return waitFor(ctx, probing)
}

// waitFor waits for a channel to be closed, or for ctx to end; nil is closed.
func waitFor(ctx context.Context, closed <-chan struct{}) error {
	if closed == nil {
		return nil
	}
	select {
	case <-closed:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
