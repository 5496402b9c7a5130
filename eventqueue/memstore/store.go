package memstore

import (
	"cmp"
	"context"
	"sync"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/maintenance"
	"eventsv2/eventqueue/minutes"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/worker"
)

// Store is a database as one program sees it. It is safe for concurrent use.
type Store struct {
	db *database

	mu     sync.Mutex
	faults Faults

	// Guarded by the database's lock, of TakeDue:
	behind bool                // the last call found more than its limit
	canvas eventqueue.CanvasID // after which the next call continues
}

var (
	_ eventqueue.EmitStore     = (*Store)(nil)
	_ worker.Store             = (*Store)(nil)
	_ maintenance.RelayStore   = (*Store)(nil)
	_ operate.RuleStore        = (*Store)(nil)
	_ maintenance.UniqueStore  = (*Store)(nil)
	_ maintenance.AttemptStore = (*Store)(nil)
	_ operate.RateStore        = (*Store)(nil)

	_ operate.ConcurrencyLimitStore = (*Store)(nil)
	_ minutes.Store                 = (*Store)(nil)
	_ maintenance.MinuteStore       = (*Store)(nil)
	_ operate.ChangeStore           = (*Store)(nil)
)

// New makes an empty database and a Store on it.
func New(config Config) *Store {
	return &Store{db: newDatabase(config.withDefaults())}
}

// Connect returns another Store on the same database, as another program would have it: with
// faults and connections of its own.
func (s *Store) Connect(faults Faults) *Store { return &Store{db: s.db, faults: faults} }

// do runs an operation between the faults before and after it.
func (s *Store) do(ctx context.Context, op Op, f func() error) error {
	if err := s.before(ctx, op); err != nil {
		return err
	}
	if err := f(); err != nil {
		return err
	}
	return s.after(ctx, op)
}

// Do runs f as one operation of the database, with the faults of this Store. It is for
// packages that have tables of their own beside those of the queue. f and
// the functions of OnCommit run one at a time. f is called with a lock held, so it must
// return fast and not call the Store. now is the time of the database's clock.
func (s *Store) Do(ctx context.Context, op Op, f func(now time.Time)) error {
	return s.atOnce(ctx, op, func() { f(s.db.now()) })
}

// atOnce is do for an operation that does not wait.
func (s *Store) atOnce(ctx context.Context, op Op, f func()) error {
	return s.atOnceUnless(ctx, op, func() error {
		f()
		return nil
	})
}

// atOnceUnless is atOnce for an operation that a row can refuse.
func (s *Store) atOnceUnless(ctx context.Context, op Op, f func() error) error {
	return s.do(ctx, op, func() error {
		s.db.mu.Lock()
		defer s.db.mu.Unlock()
		return f()
	})
}

// Inject replaces the faults of this Store; Inject(Faults{}) ends them. A running operation
// may see the old or the new faults.
func (s *Store) Inject(f Faults) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = f
}

// Disconnect cuts the open connections of this Store, as the death of its program or of the
// network does. Its transactions are rolled back, so that no other transaction waits for
// them, and its calls of Listen return ErrDisconnected. Later calls use a new connection.
// To simulate a dead program, also inject Faults that let no operation succeed.
func (s *Store) Disconnect() {
	s.db.mu.Lock()
	defer s.db.mu.Unlock()
	for tx := range s.db.open {
		if tx.store == s {
			tx.closed, tx.err = true, ErrDisconnected
			tx.end(false)
		}
	}
	for l := range s.db.listeners {
		if l.store == s {
			delete(s.db.listeners, l)
			close(l.cut)
		}
	}
}

// refused returns the error of the first row that refuses to be written.
func (s *Store) refused(op Op, ids []eventqueue.EventID) (err error) {
	s.mu.Lock()
	refuse := s.faults.Refuse
	s.mu.Unlock()
	if refuse == nil {
		return nil
	}
	for _, id := range ids {
		err = cmp.Or(err, refuse(op, id))
	}
	return err
}

func (s *Store) before(ctx context.Context, op Op) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	before := s.faults.Before
	s.mu.Unlock()
	if before == nil {
		return nil
	}
	return before(ctx, op)
}

func (s *Store) after(ctx context.Context, op Op) error {
	s.mu.Lock()
	after := s.faults.After
	s.mu.Unlock()
	if after == nil {
		return nil
	}
	return after(ctx, op)
}
