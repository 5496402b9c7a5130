package pgstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/zap"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/fallback"
	"eventsv2/eventqueue/pgsession"
	"eventsv2/eventqueue/worker"
	"eventsv2/internal/wakeups"
)

// Reserve implements worker.Standby. The connection is configured like those of
// the store's pool.
func (s *Store) Reserve(self worker.Registration, log *zap.Logger) worker.Reserve {
	return &reserve{store: s, self: self, log: log, free: make(chan struct{}, 1)}
}

// reserve is one connection that claims are renewed on, and that in between waits for
// notifications, which costs no statement. Whoever wants to send something interrupts
// the wait.
type reserve struct {
	store *Store
	self  worker.Registration
	log   *zap.Logger
	// forwarded has events tried that another worker has forwarded; nil: this worker does not hear them.
	forwarded func([]eventqueue.EventID)
	// cancelled has the claims of events renewed whose cancellation may be wanted; nil: the next heartbeat finds it.
	cancelled func([]eventqueue.EventID)

	mu        sync.Mutex
	pool      *pgxpool.Pool // of one connection; nil before the first use
	renews    *Store        // on it
	users     int           // that want the connection, or have it
	interrupt context.CancelFunc
	free      chan struct{}        // holds a token when the last of the users has left
	listening *pgsession.Listening // on the connection
	fresh     bool                 // it has begun to listen, unreported yet
	shown     bool                 // the worker is registered
	wakeups   wakeups.State
}

// open makes the pool, which connects when it is used.
func (r *reserve) open(ctx context.Context) (*pgxpool.Pool, *Store, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pool != nil {
		return r.pool, r.renews, nil
	}
	config := r.store.pool.Shared.Config()
	config.MaxConns, config.MinConns, config.MinIdleConns = 1, 0, 0
	afterConnect := config.AfterConnect
	config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		ctx, cancel := context.WithTimeout(ctx, 2*connectTimeout)
		defer cancel()
		if afterConnect != nil {
			if err := afterConnect(ctx, conn); err != nil {
				return err
			}
		}
		to := pgsession.ListenTo{Schema: r.store.Schema(), Channel: unpublishedChannel, State: &r.wakeups}
		if r.forwarded != nil || r.cancelled != nil {
			to.Beside = directChannel(r.self.Number)
		}
		listening, err := pgsession.ListenOn(ctx, conn, to)
		if err != nil {
			return err
		}
		err = registerWorker(ctx, r.store.pool.Schema.On(conn), r.self)
		if err != nil {
			if conn.IsClosed() || ctx.Err() != nil { // the worker stops before it was registered
				return err
			}
			// Heartbeats are worth more than what operators are shown.
			r.log.Warn("the worker is not shown as live", zap.Error(err))
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.listening, r.fresh = listening, true
		r.shown = r.shown || err == nil
		return nil
	}
	if name := config.ConnConfig.RuntimeParams["application_name"]; name != "" {
		config.ConnConfig.RuntimeParams["application_name"] = name + "-heartbeat"
	}
	pool, err := pgxpool.NewWithConfig(context.WithoutCancel(ctx), config)
	if err != nil {
		return nil, nil, fmt.Errorf("open the connection for heartbeats: %w", err)
	}
	r.pool, r.renews = pool, NewIn(r.store.Schema(), pool)
	return r.pool, r.renews, nil
}

// OnForwarded has what other workers forward to this one tried.
func (r *reserve) OnForwarded(try func([]eventqueue.EventID)) { r.forwarded = try }

// OnCancelled has the claims of events renewed at once that operators cancel, and those of all, nil, when it begins to listen.
func (r *reserve) OnCancelled(renew func([]eventqueue.EventID)) { r.cancelled = renew }

// Renew implements worker.Reserve.
func (r *reserve) Renew(ctx context.Context, claims []worker.Claim) (written worker.WriteResult, err error) {
	err = r.send(ctx, func(store *Store) (err error) {
		written, err = store.Renew(ctx, claims)
		return err
	})
	return written, err
}

// ReportSlots is like ReportSlots of Store, on this connection.
func (r *reserve) ReportSlots(ctx context.Context, self eventqueue.WorkerNumber, now worker.Slots, open []worker.OpenBreaker) error {
	return r.send(ctx, func(store *Store) error { return store.ReportSlots(ctx, self, now, open) })
}

// send interrupts the wait for notifications and has a statement sent on the connection.
func (r *reserve) send(ctx context.Context, statement func(*Store) error) error {
	_, store, err := r.open(ctx)
	if err != nil {
		return err
	}
	r.mu.Lock()
	r.users++
	if r.interrupt != nil {
		r.interrupt()
	}
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.users--; r.users == 0 {
			select {
			case r.free <- struct{}{}:
			default:
			}
		}
	}()
	return statement(store)
}

// Behind implements worker.Reserve.
func (r *reserve) Behind(primary eventqueue.RemoteReceiver, log *zap.Logger) (eventqueue.Receiver, error) {
	return fallback.New(primary, r.store.searching(r.self.Handlers), fallback.Config{Listen: r.listen, Logger: log})
}

// Hold implements worker.Reserve.
func (r *reserve) Hold(ctx context.Context) error { return r.listen(ctx, func(bool) {}) }

// listen calls wake once it listens, and whenever a program could not publish, or the
// relay has found lost what was published, until ctx ends or the connection breaks.
func (r *reserve) listen(ctx context.Context, wake func(lost bool)) error {
	pool, _, err := r.open(ctx)
	if err != nil {
		return err
	}
	for {
		woken, lost, err := r.waitOnce(ctx, pool)
		if err != nil {
			r.wakeups.Is(err)
			pgsession.ResetAfter(r.store.pool.Shared, err)
			return err
		}
		if woken {
			wake(lost)
		}
	}
}

// waitOnce waits for a notification, or lets a statement have the connection. There is one connection, and who waits on it
// holds it. A heartbeat, for example, counts itself in users and interrupts the wait (send); waitOnce releases the connection,
// on which the heartbeat is sent, and returns when the last user has put a token into free. listen then waits anew.
func (r *reserve) waitOnce(ctx context.Context, pool *pgxpool.Pool) (woken, lost bool, err error) {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return false, false, fmt.Errorf("connect to listen: %w", err)
	}
	defer conn.Release()
	waiting, interrupt := context.WithCancel(ctx)
	defer interrupt()
	listening, fresh, users := r.beginWait(interrupt)
	if fresh {
		r.wakeups.Ends()
		if r.cancelled != nil {
			r.cancelled(nil)
		}
		return true, false, nil // for what was notified before
	}
	if users == 0 {
		payload, err := listening.Hear(waiting)
		users = r.endWait()
		switch {
		case err == nil:
			woken, lost = r.received(payload)
			return woken, lost, nil
		case errors.Is(err, pgsession.ErrSilent):
			return false, false, listening.Prove(ctx)
		case conn.Conn().IsClosed(), waiting.Err() == nil:
			return false, false, err
		case ctx.Err() != nil:
			return false, false, ctx.Err()
		}
	}
	if users == 0 {
		return false, false, nil
	}
	conn.Release() // may be called again
	select {
	case <-r.free:
		return false, false, nil
	case <-ctx.Done():
		return false, false, ctx.Err()
	}
}

// beginWait has statements interrupt the wait that follows. There is none if the connection has only just begun to
// listen, or has users.
func (r *reserve) beginWait(interrupt func()) (listening *pgsession.Listening, fresh bool, users int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fresh, r.fresh = r.fresh, false
	if r.users == 0 && !fresh {
		r.interrupt = interrupt
	}
	return r.listening, fresh, r.users
}

// endWait returns how many statements want the connection after a wait.
func (r *reserve) endWait() (users int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.interrupt = nil
	return r.users
}

// received has what concerns this worker's events done, and reports whether another notification wakes the worker. Anybody may notify.
func (r *reserve) received(payload string) (woken, lost bool) {
	if ids, forwarded := strings.CutPrefix(payload, forwardPayload); forwarded {
		if r.forwarded != nil {
			r.forwarded(eventIDs(ids))
		}
		return false, false
	}
	if ids, cancelled := strings.CutPrefix(payload, cancelPayload); cancelled {
		if of := eventIDs(ids); r.cancelled != nil && len(of) > 0 {
			r.cancelled(of)
		}
		return false, false
	}
	return true, payload == lostPayload
}

// Failure implements worker.Reserve.
func (r *reserve) Failure() error { return r.wakeups.Failure() }

// Close implements worker.Reserve.
func (r *reserve) Close() {
	r.mu.Lock()
	pool, store, shown := r.pool, r.renews, r.shown
	r.mu.Unlock()
	if pool == nil {
		return
	}
	defer pgsession.Close(pool)
	if shown {
		ctx, cancel := context.WithTimeout(context.Background(), stopWorkerTakes)
		defer cancel()
		if _, err := store.pool.Exec(ctx, stopWorkerSQL, r.self.Number); err != nil {
			r.log.Warn("could not record that the worker has stopped; it is shown as dead", zap.Error(err))
		}
	}
}

// stopWorkerTakes bounds what a stop takes for the record of it.
const stopWorkerTakes = 200 * time.Millisecond
