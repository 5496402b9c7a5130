package pgstore

import (
	"context"
	"sync"

	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/eventqueue"
)

// Some statements wait for transactions of strangers: an emit for whoever has its unique key, a change
// by an operator for whoever has locked a row. Others must not: claims, completions, heartbeats and
// plain emits (I13, I15). They use one pool, so those that may wait get a share of its connections,
// and what exceeds that waits in memory, without a connection and with its context.

const (
	// waitingPart is the part of a pool that may wait for strangers at once, and the part that always is
	// left to what must not.
	waitingPart = 3
	// keyTurns is how many emits of one key may wait for it at once.
	keyTurns = 2
)

// share bounds the waiting statements of one pool. It is safe for concurrent use.
type share struct {
	waiters, held chan struct{} // a token for each that runs; nil has no bound
	keys          keyQueues
}

func newShare(pool *pgxpool.Pool) *share {
	conns := int(pool.Stat().MaxConns())
	s := &share{waiters: make(chan struct{}, (conns+waitingPart-1)/waitingPart)}
	if spared := conns / waitingPart; spared > 0 { // a smaller pool has none to spare
		s.held = make(chan struct{}, conns-spared)
	}
	return s
}

// wait runs f, one statement or transaction that may wait for strangers, once there is room for it.
func (s *share) wait(ctx context.Context, f func() error) error {
	if err := enter(ctx, s.waiters); err != nil {
		return err
	}
	defer leave(s.waiters)
	if ctx.Value(heldKey{}) != nil {
		return f()
	}
	return s.hold(ctx, f)
}

// heldKey marks the context of a transaction in which the caller writes too. What the caller does beside it with that
// context takes no second place of those: as many as there are would wait for each other.
type heldKey struct{}

// waitForKeys is wait for an emit with unique keys. Most emits of one key wait for each other in memory, so
// that a key that is taken holds up few connections, and others' keys find the rest of the share. The keys
// are in the order in which the database takes them.
func (s *share) waitForKeys(ctx context.Context, keys []eventqueue.UniqueKey, f func() error) error {
	for _, key := range keys {
		free, err := s.keys.take(ctx, key)
		if err != nil {
			return err
		}
		defer free()
	}
	return s.wait(ctx, f)
}

// hold runs f, a transaction in which the caller writes too: it takes as long as the caller does, and may wait for
// strangers.
func (s *share) hold(ctx context.Context, f func() error) error {
	if err := enter(ctx, s.held); err != nil {
		return err
	}
	defer leave(s.held)
	return f()
}

func enter(ctx context.Context, room chan struct{}) error {
	if room == nil {
		return nil
	}
	select {
	case room <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func leave(room chan struct{}) {
	if room != nil {
		<-room
	}
}

// keyQueues has a queue for each key that is in use. It is safe for concurrent use.
type keyQueues struct {
	mu sync.Mutex
	of map[eventqueue.UniqueKey]*keyQueue
}

type keyQueue struct {
	turn  chan struct{} // a token for each whose turn it is
	users int           // who has it or waits, of keyQueues.mu
}

// take waits for the turn of an emit with the key, and returns what ends it.
func (q *keyQueues) take(ctx context.Context, key eventqueue.UniqueKey) (free func(), err error) {
	q.mu.Lock()
	if q.of == nil {
		q.of = map[eventqueue.UniqueKey]*keyQueue{}
	}
	queue := q.of[key]
	if queue == nil {
		queue = &keyQueue{turn: make(chan struct{}, keyTurns)}
		q.of[key] = queue
	}
	queue.users++
	q.mu.Unlock()
	drop := func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		if queue.users--; queue.users == 0 {
			delete(q.of, key)
		}
	}
	if err := enter(ctx, queue.turn); err != nil {
		drop()
		return nil, err
	}
	return func() {
		leave(queue.turn)
		drop()
	}, nil
}
