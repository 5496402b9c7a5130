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
	"eventsv2/eventqueue/pgsession"
	"eventsv2/internal/wakeups"
)

// Config configures a Notifier. The zero value is ready to use.
type Config struct {
	// Lease is how long a pulled notification is hidden from other pulls. Default
	// (0): 1 minute, which is what workers expect; at most eventqueue.MaxRequeue.
	Lease time.Duration

	// Unit is the duration to a multiple of which the delay of Requeue is rounded
	// up. Default (0): 1 ms.
	Unit time.Duration

	// Schema is the schema of the queue. Default (""): public.
	Schema pgsession.Schema

	// PublishOnly says that the Notifier only publishes: Check asks for no right to pull.
	PublishOnly bool

	// Logger receives the failures that no caller sees. Default (nil): they are not
	// logged.
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

// Validate returns an error that names the first field with an invalid value.
func (c Config) Validate() error {
	if c.Lease < 0 || c.Lease > eventqueue.MaxRequeue {
		return fmt.Errorf("Lease is %s: it must be from 0 to %s", c.Lease, eventqueue.MaxRequeue)
	}
	if c.Unit < 0 {
		return fmt.Errorf("Unit is %s: it must not be negative", c.Unit)
	}
	if err := c.Schema.Validate(); err != nil {
		return fmt.Errorf("Schema: %w", err)
	}
	return nil
}

const (
	// callTimeout bounds a statement.
	callTimeout = 10 * time.Second
	// closeTimeout bounds the statements of Close.
	closeTimeout = 2 * time.Second
)

// Notifier is an eventqueue.Notifier on one database. All methods are safe for
// concurrent use. Close ends it.
//
// A Notifier that only publishes holds no connection and runs no goroutine. The
// first Pull starts two goroutines: the listener, which has a connection of its
// own, and the returner, which inserts notifications whose leases have ended.
type Notifier struct {
	pool   *pgxpool.Pool
	db     pgsession.DB // the pool, for statements of the queue
	config Config
	log    *zap.Logger

	wakeup       wakeup
	marks        marks
	pace         pace
	backpressure *backpressure
	leases       *leases
	wakeups      wakeups.State // the listener
	// later wakes a pull for the rows that a poll may have passed over.
	later *time.Timer

	startOnce sync.Once
	stop      context.CancelFunc // of the listener and the returner; nil before the first Pull
	running   sync.WaitGroup     // those two
	pulls     sync.WaitGroup     // statements of Pull under way
	closing   chan struct{}      // closed by Close
	closeOnce sync.Once
	// unreturned are the notifications that the returner was inserting when it was
	// stopped. Close reads them after the returner has ended.
	unreturned []eventqueue.Notification
}

var _ eventqueue.Notifier = (*Notifier)(nil)

// New makes a Notifier on a pool. The caller closes the pool, after the Notifier.
// Open the pool with pgstore.Open: its timeouts detect a server that vanished,
// also for the listening connection. New sends nothing.
func New(pool *pgxpool.Pool, config Config) (*Notifier, error) {
	if pool == nil {
		return nil, errors.New("pgnotify.New: pool must not be nil")
	}
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("pgnotify.New: %w", err)
	}
	config = config.withDefaults()
	n := &Notifier{pool: pool, db: pgsession.On(pool, config.Schema).In(pool), config: config, log: config.Logger, wakeup: newWakeup(), backpressure: newBackpressure(), leases: newLeases(),
		closing: make(chan struct{})}
	n.later = time.AfterFunc(time.Hour, n.wakeup.signal)
	n.later.Stop()
	return n, nil
}

// start starts the listener and the returner, once.
func (n *Notifier) start() {
	n.startOnce.Do(func() {
		ctx, stop := context.WithCancel(context.Background())
		n.stop = stop
		l := &listener{config: n.pool.Config(), schema: n.config.Schema, notify: n.notify, wake: n.wakeup.signal, probeWithin: probeTimeout,
			log: n.log, state: &n.wakeups, failed: n.notHeard}
		n.running.Go(func() { l.run(ctx) })
		n.running.Go(func() { n.returnExpired(ctx) })
	})
}

// Failure returns a [wakeups.Error] while nothing wakes pulls, so that they query the table about once a second, and
// nil otherwise. It sends nothing, and may be called at any time.
func (n *Notifier) Failure() error { return n.wakeups.Failure() }

func (n *Notifier) notHeard(err error) {
	n.wakeups.Is(err)
	pgsession.ResetAfter(n.pool, err)
}

// Close inserts all leased and delayed notifications into the table again, for
// other processes, and ends the listening connection. It blocks for at most two
// seconds. Notifications that it could not insert are left to the relay; the error
// gives their number. Call Close when no other method is running; a second call
// does nothing.
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
	case <-ctx.Done(): // callTimeout ends them
	}
	n.stop()
	n.running.Wait()
	return n.returnAll(ctx)
}

// returnAll inserts the notifications in memory into the table.
func (n *Notifier) returnAll(ctx context.Context) error {
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

// closeBatch is the most notifications that one statement of Close inserts: a
// process may hold very many delayed ones.
const closeBatch = 10_000
