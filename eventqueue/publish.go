package eventqueue

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"
)

// publisher rings the doorbell for rows that are committed. Concurrent callers
// share requests: while one request is out, what arrives waits and goes out
// together in the next one.
//
// A failure is never the emitter's: the rows become owed and the relay
// publishes them. After a failure nobody waits for the broker until it has
// answered a probe, so that emit keeps its latency while Pub/Sub is down.
type publisher struct {
	notifier Publisher
	owe      func(ctx context.Context, ids []EventID) error
	timeout  time.Duration // of one request
	rest     time.Duration // between two probes
	log      *zap.Logger

	mu      sync.Mutex
	waiting []Notification
	done    chan struct{} // closed when the waiting batch has been dealt with
	idle    chan struct{} // closed when the goroutine in flush ends; nil when there is none
	down    bool          // the last request failed
	probeAt time.Time     // when down: not before then
}

// up tells whether the broker is believed to be reachable.
func (p *publisher) up() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.down
}

// probe finds out, without making anybody wait, whether a broker that was down
// answers again. The notification's row is owed and stays so: it may be
// published twice.
func (p *publisher) probe(ctx context.Context, n Notification) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.down || p.idle != nil || time.Now().Before(p.probeAt) {
		return
	}
	p.idle = make(chan struct{})
	ctx = context.WithoutCancel(ctx)
	go func() {
		_ = p.request(ctx, []Notification{n}) // it has noted the result
		p.flush(ctx)
	}()
}

// publish hands the notifications to the next requests and waits until they
// are out or owed, for the timeout at most, or until ctx ends; they are dealt
// with all the same then.
func (p *publisher) publish(ctx context.Context, notifications []Notification) {
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

// flush sends what waits until nothing does. wait waits for it.
func (p *publisher) flush(ctx context.Context) {
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

func (p *publisher) send(ctx context.Context, batch []Notification) {
	for len(batch) > 0 {
		n := min(len(batch), MaxPublish)
		if !p.up() {
			p.oweAll(ctx, batch)
			return
		}
		if err := p.sendOne(ctx, batch[:n]); err != nil {
			p.log.Warn("could not publish notifications; the relay will", zap.Int(logCount, n), zap.Error(err))
		}
		batch = batch[n:]
	}
}

// sendOne publishes at most MaxPublish notifications, or marks them as owed and
// returns why.
func (p *publisher) sendOne(ctx context.Context, batch []Notification) error {
	err := p.request(ctx, batch)
	if err != nil {
		p.oweAll(ctx, batch)
	}
	return err
}

// request publishes and notes whether the broker is up.
func (p *publisher) request(ctx context.Context, batch []Notification) error {
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	err := p.notifier.Publish(ctx, batch)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = err != nil
	if p.down {
		p.probeAt = time.Now().Add(p.rest)
	}
	return err
}

// oweAll marks rows as owed. When that fails too, the relay finds them later by
// the age of notified_at.
func (p *publisher) oweAll(ctx context.Context, batch []Notification) {
	ids := make([]EventID, len(batch))
	for i, n := range batch {
		ids[i] = n.Event
	}
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	if err := p.owe(ctx, ids); err != nil {
		p.log.Warn("could not mark notifications as owed; the relay finds them by their age",
			zap.Int(logCount, len(ids)), zap.Error(err))
	}
}

// wait returns when nothing is being sent, or when ctx ends.
func (p *publisher) wait(ctx context.Context) error {
	p.mu.Lock()
	idle := p.idle
	p.mu.Unlock()
	return waitFor(ctx, idle)
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
