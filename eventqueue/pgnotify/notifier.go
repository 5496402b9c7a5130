package pgnotify

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/zap"

	"eventsv2/eventqueue"
)

// Config configures a Notifier. The zero value is ready to use.
type Config struct {
	// Lease is how long a pulled notification is kept from others. Default (0): 1
	// minute, which is what workers expect; at most eventqueue.MaxRequeue.
	Lease time.Duration

	// Unit is what the delay of Requeue is rounded up to. Default (0): 1 ms.
	Unit time.Duration

	// Logger is told of failures that no caller sees. Default (nil): nobody is.
	Logger *zap.Logger
}

func (c Config) withDefaults() Config {
	if c.Lease == 0 {
		c.Lease = time.Minute
	}
	if c.Unit == 0 {
		c.Unit = time.Millisecond
	}
	if c.Logger == nil {
		c.Logger = zap.NewNop()
	}
	return c
}

// Validate names the first field that makes no sense.
func (c Config) Validate() error {
	if c.Lease < 0 || c.Lease > eventqueue.MaxRequeue {
		return fmt.Errorf("Lease is %s: it must be from 0 to %s", c.Lease, eventqueue.MaxRequeue)
	}
	if c.Unit < 0 {
		return fmt.Errorf("Unit is %s: it must not be negative", c.Unit)
	}
	return nil
}

const (
	// callTimeout bounds a statement.
	callTimeout = 10 * time.Second
	// closeTimeout bounds what Close sends.
	closeTimeout = 2 * time.Second
)

// Notifier is an eventqueue.Notifier on one database. All methods are safe for
// concurrent use. Close ends it.
//
// One that only publishes holds no connection and runs no goroutine. The first
// Pull makes the connection that listens and starts two: the listener, and the
// keeper of the leases.
type Notifier struct {
	pool   *pgxpool.Pool
	config Config
	log    *zap.Logger

	bell   bell
	marks  marks
	pace   pace
	leases *leases
	// later rings for what a look may have passed over.
	later *time.Timer

	startOnce sync.Once
	stop      context.CancelFunc // of the listener and the keeper; nil before the first Pull
	running   sync.WaitGroup     // those two
	pulls     sync.WaitGroup     // statements of Pull under way
	closing   chan struct{}      // closed by Close
	closeOnce sync.Once
	// unreturned is what the keeper was inserting when it was stopped; Close reads
	// it when the keeper has ended.
	unreturned []eventqueue.Notification
}

// The interface that this package exists for.
var _ eventqueue.Notifier = (*Notifier)(nil)

// New makes a Notifier on a pool, which stays the caller's to close, after the
// Notifier. Open the pool with pgstore.Open: its time-outs are what notices a
// server that vanished, also for the connection that listens. New sends nothing.
func New(pool *pgxpool.Pool, config Config) (*Notifier, error) {
	if pool == nil {
		return nil, errors.New("pgnotify.New: pool must not be nil")
	}
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("pgnotify.New: %w", err)
	}
	config = config.withDefaults()
	n := &Notifier{pool: pool, config: config, log: config.Logger, bell: newBell(), leases: newLeases(),
		closing: make(chan struct{})}
	n.later = time.AfterFunc(time.Hour, n.bell.ring)
	n.later.Stop()
	return n, nil
}

// start starts what a Notifier that pulls needs.
func (n *Notifier) start() {
	n.startOnce.Do(func() {
		ctx, stop := context.WithCancel(context.Background())
		n.stop = stop
		l := &listener{config: n.pool.Config().ConnConfig, notify: n.notify, ring: n.bell.ring, hearWithin: hearTimeout, log: n.log}
		n.running.Go(func() { l.run(ctx) })
		n.running.Go(func() { n.keep(ctx) })
	})
}

// Close gives everything that is leased or delayed back to the table, for other
// processes, and ends the connection that listens. It blocks for two seconds at
// most. What it could not give back is left to the relay; the error says how much
// that is. Call it when no other method is running; calling it again does
// nothing.
func (n *Notifier) Close() error {
	var err error
	n.closeOnce.Do(func() { err = n.close() })
	return err
}

func (n *Notifier) close() error {
	n.startOnce.Do(func() {}) // nothing starts from now on
	close(n.closing)
	n.later.Stop()
	if n.stop == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	pulled := make(chan struct{})
	go func() {
		n.pulls.Wait()
		close(pulled)
	}()
	select {
	case <-pulled:
	case <-ctx.Done(): // they end by callTimeout
	}
	n.stop()
	n.running.Wait()
	return n.giveBackAll(ctx)
}

// giveBackAll inserts what is in memory into the table.
func (n *Notifier) giveBackAll(ctx context.Context) error {
	left := slices.Concat(n.unreturned, n.leases.takeAll())
	for len(left) > 0 {
		batch := left[:min(len(left), closeBatch)]
		if err := n.insert(ctx, batch); err != nil {
			return fmt.Errorf("give back %d notifications, which are left to the relay now: %w", len(left), err)
		}
		left = left[len(batch):]
	}
	return nil
}

// closeBatch is how many notifications one statement of Close takes: a process
// may hold very many that are delayed.
const closeBatch = 10_000
