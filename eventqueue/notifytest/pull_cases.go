package notifytest

import (
	"context"
	"errors"
	"sync"

	"eventsv2/eventqueue"
)

func twoPullers(s *session, ids *lastID) {
	want := ids.notifications(200)
	s.publish(want...)
	ctx, stop := context.WithCancel(s.ctx)
	defer stop()

	var mu sync.Mutex
	var all []eventqueue.Delivery
	var pullers sync.WaitGroup
	for range 2 {
		pullers.Go(func() {
			for ctx.Err() == nil {
				deliveries, err := s.Notifier.Pull(ctx, 7)
				if err != nil && ctx.Err() == nil {
					s.t.Errorf("Pull = %v, want deliveries", err)
					stop()
				}
				mu.Lock()
				all = append(all, deliveries...)
				if len(all) >= len(want) {
					stop()
				}
				mu.Unlock()
			}
		})
	}
	pullers.Wait()
	wantSame(s.t, all, want) // also reports a notification that came twice
}

// waitingPull starts to wait before anything is published. A test cannot know whether
// a Pull has begun to wait; both orders must work.
func waitingPull(s *session, ids *lastID) {
	want := ids.notifications(1)[0]
	pulled := make(chan eventqueue.Delivery, 1)
	var puller sync.WaitGroup
	puller.Go(func() {
		for s.ctx.Err() == nil {
			deliveries, err := s.Notifier.Pull(s.ctx, 10)
			if err != nil {
				s.t.Errorf("Pull = %v, want a delivery", err)
				return
			}
			if len(deliveries) > 0 {
				pulled <- deliveries[0]
				return
			}
		}
	})
	s.publish(want)
	puller.Wait()
	select {
	case got := <-pulled:
		if got.Notification != want {
			s.t.Errorf("pulled %+v, want %+v", got.Notification, want)
		}
		s.ack(got)
	default:
		s.t.Error("the waiting Pull returned nothing")
	}
}

func cancelledPull(s *session, _ *lastID) {
	ctx, cancel := context.WithCancel(s.ctx)
	ended := make(chan error, 1)
	var puller sync.WaitGroup
	puller.Go(func() {
		for {
			deliveries, err := s.Notifier.Pull(ctx, 1)
			if err != nil || len(deliveries) > 0 {
				ended <- err
				return
			}
		}
	})
	cancel()
	puller.Wait()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		s.t.Errorf("Pull = %v after its ctx was cancelled, want context.Canceled", err)
	}
	if _, err := s.Notifier.Pull(ctx, 1); !errors.Is(err, context.Canceled) {
		s.t.Errorf("Pull with a ctx that has ended = %v, want context.Canceled", err)
	}
}

// cancelledPullLosesNothing cancels pulls while notifications are published. A
// notification that was leased to a cancelled pull is delivered again when that
// lease ends.
func cancelledPullLosesNothing(s *session, ids *lastID) {
	const rounds = 5
	if s.ShortLeased != nil {
		s.Notifier = s.ShortLeased(s.t)
	}
	missing := make(map[eventqueue.EventID]bool)
	for range rounds {
		ctx, cancel := context.WithCancel(s.ctx)
		pulled := make(chan []eventqueue.Delivery, 1)
		var puller sync.WaitGroup
		puller.Go(func() {
			deliveries, _ := s.Notifier.Pull(ctx, 10)
			pulled <- deliveries
		})
		published := ids.notifications(2)
		for _, n := range published {
			missing[n.Event] = true
		}
		s.publish(published...)
		cancel()
		puller.Wait()
		for _, d := range <-pulled {
			delete(missing, d.Event)
		}
	}
	for len(missing) > 0 {
		for _, d := range s.pull(10) {
			delete(missing, d.Event)
			s.ack(d)
		}
	}
}
