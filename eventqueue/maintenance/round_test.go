package maintenance_test

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/maintenance"
)

// behind is a store in which a canvas has lost the notifications of many ordering groups and
// of one handler, again and again, so that a relay at 500 per second publishes those of one
// round for half a minute. One event of another canvas is lost as well, since lostAt.
type behind struct {
	lostAt time.Time
	taken  bool

	mu      sync.Mutex
	pending map[eventqueue.CanvasID][]eventqueue.Notification
}

var (
	crowded = eventqueue.CanvasID{1}
	beside  = eventqueue.CanvasID{2}
)

const (
	crowdPages  = 40
	crowdGroups = 256
	crowdEvents = 4000
)

func crowd(n int) []eventqueue.Notification {
	return slices.Repeat([]eventqueue.Notification{{Event: 2, Canvas: crowded}}, n)
}

func (s *behind) TakeRound(_ context.Context, after maintenance.RoundPlace, _ time.Duration) (lost []eventqueue.Notification, next maintenance.RoundPlace, err error) {
	switch after.Stage {
	case maintenance.RoundOfHandlers:
		lost = crowd(crowdEvents)
		if !s.taken && !time.Now().Before(s.lostAt) {
			s.taken = true
			lost = append(lost, eventqueue.Notification{Event: 1, Canvas: beside})
		}
		return lost, maintenance.RoundPlace{Stage: maintenance.RoundOfGroups}, nil
	case maintenance.RoundOfGroups:
		if after.Run == crowdPages {
			return crowd(crowdGroups), maintenance.RoundPlace{Stage: maintenance.RoundOfRuns}, nil
		}
		after.Run++
		return crowd(crowdGroups), after, nil
	default:
		return nil, maintenance.RoundPlace{}, nil
	}
}

func (s *behind) LeavePending(_ context.Context, ids []eventqueue.EventID) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pending == nil {
		s.pending = map[eventqueue.CanvasID][]eventqueue.Notification{}
	}
	for _, id := range ids {
		of := crowded
		if id == 1 {
			of = beside
		}
		s.pending[of] = append(s.pending[of], eventqueue.Notification{Event: id, Canvas: of})
	}
	return nil
}

// TakeDue takes from the canvas beside first, of which there is one event.
func (s *behind) TakeDue(_ context.Context, _ time.Duration, limit int, _ maintenance.AwaitTake) (taken []eventqueue.Notification, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for of, most := range map[eventqueue.CanvasID]int{beside: 1, crowded: limit} {
		if n := min(len(s.pending[of]), most); n > 0 {
			taken = append(taken, s.pending[of][:n]...)
			s.pending[of] = s.pending[of][n:]
		}
	}
	return taken, nil
}

func (s *behind) MarkPending(context.Context, []eventqueue.EventID) error { return nil }
func (s *behind) TakePending(context.Context, []eventqueue.EventID) ([]eventqueue.Notification, error) {
	return nil, nil
}

func (s *behind) Sweep(context.Context, eventqueue.EventID, int, time.Duration) (maintenance.Swept, error) {
	return maintenance.Swept{Read: 1}, nil
}

func (s *behind) Listen(ctx context.Context, _ func()) error {
	<-ctx.Done()
	return nil
}

// publishedAt sends when an event of the canvas beside is published.
type publishedAt chan time.Time

func (p publishedAt) Publish(_ context.Context, notifications []eventqueue.Notification) error {
	for _, n := range notifications {
		if n.Canvas == beside {
			p <- time.Now()
		}
	}
	return nil
}

// TestLostGroupsDelayNoOtherEvent (I20): while a slow relay publishes the lost
// notifications of another canvas' ordering groups and handlers, which takes half a minute
// each time, an event is found by the next round, 5.5 s after the last one at most, and
// notified at once.
func TestLostGroupsDelayNoOtherEvent(t *testing.T) {
	t.Parallel()
	for _, into := range []time.Duration{0, 7, 11, 16, 23, 31} { // seconds into the rounds
		synctest.Test(t, func(t *testing.T) {
			store := &behind{lostAt: time.Now().Add(into * time.Second)}
			published := make(publishedAt, 1)
			relay, err := maintenance.NewRelay(store, published, maintenance.RelayConfig{PerSecond: 500})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- relay.Run(ctx) }()
			select {
			case at := <-published:
				if after := at.Sub(store.lostAt); after > 6*time.Second {
					t.Errorf("lost %d s into the rounds, it was notified after %s", into, after)
				}
			case <-time.After(10 * time.Minute):
				t.Errorf("lost %d s into the rounds, it was never notified", into)
			}
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
}

// empty is a store without events until emittedAt. One is emitted then, whose notification is
// lost, and seems lost from lostAt on.
type empty struct {
	behind
	wakeAt            time.Time // unless it is zero: of a wake-up, when something else is pending
	emittedAt, lostAt time.Time
	countedAt         time.Time // unless it is zero: from then on programs hand in counts
	asked             atomic.Int64
	published         bool
}

func (s *empty) TakeRound(_ context.Context, after maintenance.RoundPlace, _ time.Duration) (lost []eventqueue.Notification, next maintenance.RoundPlace, err error) {
	s.asked.Add(2) // the settings are a statement of their own
	if after.Stage == maintenance.RoundOfHandlers && !s.published && !time.Now().Before(s.lostAt) {
		s.published = true
		lost = []eventqueue.Notification{{Event: 1, Canvas: beside}}
	}
	return lost, maintenance.RoundPlace{}, nil
}

func (s *empty) Listen(ctx context.Context, wake func()) error {
	if !s.wakeAt.IsZero() {
		timer := time.AfterFunc(time.Until(s.wakeAt), wake)
		defer timer.Stop()
	}
	<-ctx.Done()
	return nil
}

func (s *empty) Sweep(context.Context, eventqueue.EventID, int, time.Duration) (swept maintenance.Swept, err error) {
	s.asked.Add(1)
	swept.LockTimeout = time.Minute
	if !time.Now().Before(s.emittedAt) {
		swept.Read = 1
	}
	swept.Counted = !s.countedAt.IsZero() && !time.Now().Before(s.countedAt)
	return swept, nil
}

func (s *empty) TakeDue(context.Context, time.Duration, int, maintenance.AwaitTake) ([]eventqueue.Notification, error) {
	s.asked.Add(1)
	return nil, nil
}

// TestRelayWithoutEventsSendsFewStatements (I12), and yet notices what is lost as soon as one
// beside many events does.
func TestRelayWithoutEventsSendsFewStatements(t *testing.T) {
	t.Parallel()
	const idle = 20                                                  // minutes
	for _, into := range []time.Duration{1, 4, 11, 20, 26, 31, 47} { // seconds after that
		synctest.Test(t, func(t *testing.T) {
			emittedAt := time.Now().Add(idle*time.Minute + into*time.Second)
			store := &counted{empty: empty{emittedAt: emittedAt, lostAt: emittedAt.Add(time.Minute)}, pages: make([]maintenance.Waiting, 1)}
			published := make(publishedAt, 1)
			relay, err := maintenance.NewRelay(store, published, maintenance.RelayConfig{})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- relay.Run(ctx) }()
			<-time.After(time.Minute)
			atStart := store.asked.Load()
			<-time.After((idle - 1) * time.Minute)
			if perMinute := float64(store.asked.Load()-atStart) / (idle - 1); perMinute > 2 {
				t.Errorf("without an event the relay sends %.1f statements a minute, want at most 2", perMinute)
			}
			select {
			case at := <-published:
				if after := at.Sub(store.lostAt); after > 6*time.Second {
					t.Errorf("emitted %d s after idle minutes and lost, the event was notified %s late", into, after)
				}
			case <-time.After(10 * time.Minute):
				t.Errorf("emitted %d s after idle minutes and lost, the event was never notified", into)
			}
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
}

// counter counts what is published.
type counter struct{ published atomic.Int64 }

func (c *counter) Publish(_ context.Context, notifications []eventqueue.Notification) error {
	c.published.Add(int64(len(notifications)))
	return nil
}

// TestLostNotificationsArePublishedAtTheRate (I11, I12): however much is lost, the relay publishes what its
// rate allows, and never less.
func TestLostNotificationsArePublishedAtTheRate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const perSecond, seconds = 500, 60
		published := &counter{}
		relay, err := maintenance.NewRelay(&behind{}, published, maintenance.RelayConfig{PerSecond: perSecond})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), seconds*time.Second)
		defer cancel()
		if err := relay.Run(ctx); err != nil {
			t.Error(err)
		}
		// The first second's worth, or a request's if that is more, may go out at once.
		if n := published.published.Load(); n > perSecond*seconds+eventqueue.MaxPublish || n < perSecond*seconds*9/10 {
			t.Errorf("in %d s at %d per second the relay publishes %d notifications", seconds, perSecond, n)
		}
	})
}

// once is a store in which a canvas has lost much, once, and an event of another one is
// lost a moment later.
type once struct {
	behind
	rounds  int
	foundAt time.Time // of the event of the other canvas
}

const lostOnce = 6000

func (s *once) TakeRound(_ context.Context, after maintenance.RoundPlace, _ time.Duration) (lost []eventqueue.Notification, next maintenance.RoundPlace, err error) {
	if after.Stage == maintenance.RoundOfHandlers {
		s.rounds++
		switch s.rounds {
		case 1:
			lost = crowd(lostOnce)
		case 2:
			s.foundAt = time.Now()
			lost = []eventqueue.Notification{{Event: 1, Canvas: beside}}
		}
	}
	return lost, maintenance.RoundPlace{}, nil
}

// times counts what is published of one canvas, and records when the other's event is, and
// the last of all.
type times struct {
	crowd        int
	beside, last time.Time
}

func (p *times) Publish(_ context.Context, notifications []eventqueue.Notification) error {
	p.last = time.Now()
	for _, n := range notifications {
		if n.Canvas == beside {
			p.beside = p.last
		} else {
			p.crowd++
		}
	}
	return nil
}

// TestLostNotificationsBeyondTheRateAreNext (I1, I20): all of what is lost is published as soon as the
// rate allows, and an event of another canvas that is found meanwhile waits for a portion only.
func TestLostNotificationsBeyondTheRateAreNext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const perSecond = 500
		store, published, began := &once{}, &times{}, time.Now()
		relay, err := maintenance.NewRelay(store, published, maintenance.RelayConfig{PerSecond: perSecond,
			Jitter: func(time.Duration) time.Duration { return 0 }})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := relay.Run(ctx); err != nil {
			t.Error(err)
		}
		if took := published.last.Sub(began); published.crowd != lostOnce || took > lostOnce/perSecond*time.Second {
			t.Errorf("%d of %d lost notifications are published, the last after %s", published.crowd, lostOnce, took)
		}
		if waits := published.beside.Sub(store.foundAt); waits < 0 || waits > time.Second/2 {
			t.Errorf("the event of another canvas is notified %s after it is found", waits)
		}
	})
}

// TestCommitBringsForwardTheNextSearch (I13): an event that is older than its commit, as one of a transaction that
// took long, may count as lost at once. It is found as soon as one beside many events, if anything
// that was committed with it is pending.
func TestCommitBringsForwardTheNextSearch(t *testing.T) {
	t.Parallel()
	for _, into := range []time.Duration{1, 4, 11, 20, 26, 31, 47} { // seconds after idle minutes
		synctest.Test(t, func(t *testing.T) {
			committed := time.Now().Add(5*time.Minute + into*time.Second)
			store := &empty{emittedAt: committed, lostAt: committed, wakeAt: committed}
			published := make(publishedAt, 1)
			running(t, store, published, maintenance.RelayConfig{})
			if after := (<-published).Sub(committed); after > 6*time.Second {
				t.Errorf("committed %d s after idle minutes, the event was notified %s late", into, after)
			}
		})
	}
}
