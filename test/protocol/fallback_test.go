package protocol

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/fallback"
)

// deaf is a bell that has nothing to tell and may be down. Its other methods
// panic.
type deaf struct {
	eventqueue.Receiver

	mu      sync.Mutex
	down    bool
	changed chan struct{}
}

func (d *deaf) set(down bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.down = down
	close(d.changed)
	d.changed = make(chan struct{})
}

func (d *deaf) state() (<-chan struct{}, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.down {
		return d.changed, errors.New("down")
	}
	return d.changed, nil
}

// Pull finds nothing after some seconds, as Pub/Sub does, or that the bell is
// down.
func (d *deaf) Pull(ctx context.Context, _ int) ([]eventqueue.Delivery, error) {
	changed, err := d.state()
	if err != nil {
		return nil, err
	}
	select {
	case <-changed:
		_, err = d.state()
		return nil, err
	case <-time.After(5 * time.Second):
		return nil, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Ack needs a bell that is not down.
func (d *deaf) Ack(context.Context, []eventqueue.Delivery) error { _, err := d.state(); return err }

// Check tells whether the bell is down.
func (d *deaf) Check(context.Context) error { _, err := d.state(); return err }

// TestTheDatabaseStandsInForTheBell (I2, I12, I13) while it is down, and not
// before and not after.
func TestTheDatabaseStandsInForTheBell(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(s *script) {
		const page = eventqueue.MaxPublish
		l, bell := newLedger(1, 1), &deaf{changed: make(chan struct{})}
		receiver, err := fallback.New(bell, l, fallback.Config{})
		if err != nil {
			s.t.Fatal(err)
		}
		var delivered sync.Map
		deliveries := func() (n int) {
			delivered.Range(func(any, any) bool { n++; return true })
			return n
		}
		ctx, stop := context.WithCancel(s.t.Context())
		var pulling sync.WaitGroup
		for range 2 { // as a worker does
			pulling.Go(func() {
				for ctx.Err() == nil {
					deliveries, err := receiver.Pull(ctx, page)
					for _, d := range deliveries {
						delivered.Store(d.Event, true)
					}
					if err != nil {
						<-time.After(100 * time.Millisecond)
					}
				}
			})
		}
		asked := func() int {
			l.mu.Lock()
			defer l.mu.Unlock()
			return l.asked
		}
		defer func() { stop(); pulling.Wait() }()

		pass(time.Minute)
		bell.set(true)
		pass(time.Second) // a hiccup
		bell.set(false)
		pass(time.Minute)
		if asked() != 0 || deliveries() != 0 {
			s.t.Errorf("while the bell rings: %d statements, %d deliveries", asked(), deliveries())
		}
		bell.set(true)
		pass(time.Minute)
		if n := deliveries(); n != 2*page {
			s.t.Errorf("while the bell is down: %d deliveries, want the %d that are due or lost", n, 2*page)
		}
		bell.set(false)
		pass(time.Minute)
		before := asked()
		pass(time.Minute)
		if more := asked() - before; more != 0 {
			s.t.Errorf("the bell is back and the database was asked %d times more", more)
		}
		if err := receiver.Ack(ctx, []eventqueue.Delivery{{AckID: "the bell's own"}}); err != nil {
			s.t.Errorf("the bell is back and is not told: %v", err)
		}
	})
}
