package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"eventsv2/bench/contest"
	"eventsv2/bench/ours"
	"eventsv2/eventqueue"
	"eventsv2/pubsubnotify"
)

// pullers are as many pulls in flight as a worker has.
const pullers = 2

// bare is a publisher and a puller without a queue.
type bare struct {
	notifier *pubsubnotify.Notifier
	started  chan contest.Start
	stop     context.CancelFunc
	pulling  chan error
}

// bareNotifier has a topic and a subscription of this round's own.
func (b *bench) bareNotifier(ctx context.Context, name string) (*pubsubnotify.Notifier, error) {
	host, err := b.lab.EmulatorHost(ctx)
	if err != nil {
		return nil, err
	}
	return pubsubnotify.New(ctx, ours.PubSub(host, fmt.Sprintf("%s-%d", name, b.round)))
}

// openBare starts the pulling.
func (b *bench) openBare(ctx context.Context, name string) (*bare, error) {
	notifier, err := b.bareNotifier(ctx, name)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	r := &bare{notifier: notifier, started: make(chan contest.Start, 1<<16), stop: stop, pulling: make(chan error, pullers)}
	for range pullers {
		go func() { r.pulling <- r.pull(ctx) }()
	}
	return r, nil
}

func (r *bare) publish(ctx context.Context, number int) error {
	return r.notifier.Publish(ctx, []eventqueue.Notification{{Event: eventqueue.EventID(number + 1), Canvas: ours.Canvas}})
}

func (r *bare) pull(ctx context.Context) error {
	for ctx.Err() == nil {
		deliveries, err := r.notifier.Pull(ctx, eventqueue.MaxPublish)
		at := time.Now()
		for _, d := range deliveries {
			r.started <- contest.Start{Number: int(d.Event - 1), At: at}
		}
		if err == nil && len(deliveries) > 0 {
			err = r.notifier.Ack(ctx, deliveries)
		}
		if err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

func (r *bare) close() error {
	r.stop()
	var errs []error
	for range pullers {
		errs = append(errs, <-r.pulling)
	}
	return errors.Join(append(errs, r.notifier.Close())...)
}

// bareDrain measures how fast the emulator delivers the notifications of a drain and
// accepts their acknowledgements, without a worker and a database. No worker can be
// faster through the emulator. The emulator is warm afterwards.
func (b *bench) bareDrain(ctx context.Context) error {
	notifier, err := b.bareNotifier(ctx, "bare-drain")
	if err != nil {
		return err
	}
	for from := 0; from < b.events; from += eventqueue.MaxPublish {
		batch := make([]eventqueue.Notification, min(eventqueue.MaxPublish, b.events-from))
		for i := range batch {
			batch[i] = eventqueue.Notification{Event: eventqueue.EventID(from + i + 1), Canvas: ours.Canvas}
		}
		if err := notifier.Publish(ctx, batch); err != nil {
			return errors.Join(err, notifier.Close())
		}
	}
	took, usage, err := b.timed("drain.emulator-bare", func() error { return pullAll(ctx, notifier, b.events) })
	if err := errors.Join(err, notifier.Close()); err != nil {
		return err
	}
	b.record("drain.emulator-bare", float64(b.events)/took.Seconds(), "events/s", usage)
	return nil
}

// pullAll pulls and acknowledges n notifications.
func pullAll(ctx context.Context, notifier *pubsubnotify.Notifier, n int) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var pulled atomic.Int64
	group, pulling := errgroup.WithContext(ctx)
	for range pullers {
		group.Go(func() error {
			for pulled.Load() < int64(n) {
				deliveries, err := notifier.Pull(pulling, eventqueue.MaxPublish)
				if err == nil && len(deliveries) > 0 {
					err = notifier.Ack(pulling, deliveries)
				}
				if err != nil {
					if pulled.Load() >= int64(n) {
						return nil // another puller got the last one
					}
					return err
				}
				if pulled.Add(int64(len(deliveries))); pulled.Load() >= int64(n) {
					stop()
				}
			}
			return nil
		})
	}
	return group.Wait()
}
