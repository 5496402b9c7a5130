package memstore

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"eventsv2/eventqueue"
)

// Config configures a database. The zero value is ready to use.
type Config struct {
	// Clock is the database's clock. It is called with a lock held: it must
	// return fast and not call the Store. Default (nil): time.Now.
	Clock func() time.Time

	// Observe is told every change of a row of events_v2 when it is committed,
	// in the order of the commits and, within one, of the ids. It is called with
	// a lock held: it must return fast and not call the Store. Default (nil):
	// nobody is told.
	Observe func(Change)
}

func (c Config) withDefaults() Config {
	if c.Clock == nil {
		c.Clock = time.Now
	}
	if c.Observe == nil {
		c.Observe = func(Change) {}
	}
	return c
}

// Store is a database as one program sees it. It is safe for concurrent use.
type Store struct {
	db *database

	mu     sync.Mutex
	faults Faults
}

var (
	_ eventqueue.EmitStore   = (*Store)(nil)
	_ eventqueue.ClaimStore  = (*Store)(nil)
	_ eventqueue.RelayStore  = (*Store)(nil)
	_ eventqueue.RuleStore   = (*Store)(nil)
	_ eventqueue.UniqueStore = (*Store)(nil)
	_ eventqueue.RateStore   = (*Store)(nil)
)

// New makes an empty database and a Store on it.
func New(config Config) *Store {
	return &Store{db: &database{
		config:    config.withDefaults(),
		events:    map[eventqueue.EventID]*record{},
		log:       map[eventqueue.EventID]LogRow{},
		open:      map[*Tx]struct{}{},
		listeners: map[*listener]struct{}{},
		keys:      map[eventqueue.UniqueKey]eventqueue.EventID{},
		keyLocks:  map[eventqueue.UniqueKey]*Tx{},
		ends:      map[eventqueue.EventID]EndRow{},
		rates:     map[eventqueue.Scope]*RateRow{},
		left:      map[eventqueue.EventID]orderingLine{},
	}}
}

// Connect returns a further Store on the same database, as another program would
// have it: with faults and connections of its own.
func (s *Store) Connect(faults Faults) *Store { return &Store{db: s.db, faults: faults} }

// database is what all Stores on it share. mu guards everything below it; no
// fault and no callback of a transaction's body is called with it held.
type database struct {
	config Config

	mu        sync.Mutex
	lastEvent eventqueue.EventID // of events_id_seq; a rollback does not take it back
	events    map[eventqueue.EventID]*record
	log       map[eventqueue.EventID]LogRow
	lastRule  int32
	rules     []RuleRow // by id
	open      map[*Tx]struct{}
	listeners map[*listener]struct{}
	keys      map[eventqueue.UniqueKey]eventqueue.EventID
	keyLocks  map[eventqueue.UniqueKey]*Tx // that have emitted them, and are open
	ends      map[eventqueue.EventID]EndRow
	rates     map[eventqueue.Scope]*RateRow
	left      map[eventqueue.EventID]orderingLine // who have ended, and still have their turns
}

// record is the committed version of a row, and the transaction that is writing
// a new one.
type record struct {
	Row
	writer *Tx
}

// now is clock_timestamp().
func (db *database) now() time.Time { return db.config.Clock().Truncate(time.Microsecond) }

// free returns the row when it is there and nobody is writing it (SKIP LOCKED).
func (db *database) free(id eventqueue.EventID) (*record, bool) {
	r, ok := db.events[id]
	return r, ok && r.writer == nil
}

// update changes a row in a transaction of its own.
func (db *database) update(r *record, change func(*Row)) {
	before := r.Row
	change(&r.Row)
	after := r.Row
	db.config.Observe(Change{At: db.now(), Before: &before, After: &after})
}

// page returns at most limit of the committed rows that the filter lets
// through, with ids above the given one, by id; and the last id of a full page,
// from which the next one goes on.
func (db *database) page(after eventqueue.EventID, limit int, filter func(*Row) bool) (page []*record, next eventqueue.EventID) {
	for id, r := range db.events {
		if id > after && filter(&r.Row) {
			page = append(page, r)
		}
	}
	slices.SortFunc(page, byID)
	if page = page[:min(len(page), limit)]; len(page) == limit && limit > 0 {
		next = page[limit-1].ID
	}
	return page, next
}

func byID(a, b *record) int { return int(a.ID - b.ID) }

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

// Do runs f as one operation of the database, with the faults of this Store. It is
// for tables that others keep beside those of the queue, as package memcron
// does: f and what OnCommit calls run one at a time. f is called with a lock
// held: it must return fast and not call the Store. now is the database's clock.
func (s *Store) Do(ctx context.Context, op Op, f func(now time.Time)) error {
	return s.atOnce(ctx, op, func() { f(s.db.now()) })
}

// atOnce is do for an operation that waits for nobody.
func (s *Store) atOnce(ctx context.Context, op Op, f func()) error {
	return s.do(ctx, op, func() error {
		s.db.mu.Lock()
		defer s.db.mu.Unlock()
		f()
		return nil
	})
}

// refusal is what Postgres says of data that it cannot store.
func refusal(sqlState, message string) error {
	return &pgconn.PgError{Severity: "ERROR", SeverityUnlocalized: "ERROR", Code: sqlState, Message: message}
}
