package memstore

import (
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"eventsv2/eventqueue"
)

// Config configures a database. The zero value is ready to use.
type Config struct {
	// Clock is the database's clock. It is called with a lock held, so it must return fast
	// and not call the Store. Default (nil): time.Now.
	Clock func() time.Time

	// Observe is called with every committed change of a row of events_v2, in the order of
	// the commits and, within a commit, of the ids. It is called with a lock held, so it
	// must return fast and not call the Store. Default (nil): changes are not observed.
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

// database is the state that all of its Stores share. mu guards all fields below it. It is
// not held while faults and the bodies of transactions run.
type database struct {
	config Config

	mu        sync.Mutex
	lastEvent eventqueue.EventID // of events_id_seq; a rollback does not reset it
	events    map[eventqueue.EventID]*record
	log       map[eventqueue.EventID]LogRow
	attempts  map[eventqueue.EventID][]AttemptRow // by attempt
	lastRule  int32
	// lockTimeout is the agreed lock timeout; 0 if there is none yet.
	lockTimeout time.Duration
	rules       []RuleRow // by id
	open        map[*Tx]struct{}
	listeners   map[*listener]struct{}
	keys        map[eventqueue.UniqueKey]eventqueue.EventID
	keyLocks    map[eventqueue.UniqueKey]*Tx // open transactions that have emitted the keys
	expiries    map[eventqueue.EventID]ExpiryRow
	rates       map[eventqueue.Scope]*RateRow
	places      map[placeID]place
	limits      map[group]int // max_running
	counts      minuteTables
}

func newDatabase(config Config) *database {
	return &database{
		config:    config,
		events:    map[eventqueue.EventID]*record{},
		log:       map[eventqueue.EventID]LogRow{},
		attempts:  map[eventqueue.EventID][]AttemptRow{},
		open:      map[*Tx]struct{}{},
		listeners: map[*listener]struct{}{},
		keys:      map[eventqueue.UniqueKey]eventqueue.EventID{},
		keyLocks:  map[eventqueue.UniqueKey]*Tx{},
		expiries:  map[eventqueue.EventID]ExpiryRow{},
		rates:     map[eventqueue.Scope]*RateRow{},
		places:    map[placeID]place{},
		limits:    map[group]int{},
		counts:    minuteTables{minuteTable{}, minuteTable{}},
	}
}

// record is the committed version of a row, and the transaction that is writing
// a new one.
type record struct {
	Row
	writer *Tx
}

// now is clock_timestamp().
func (db *database) now() time.Time { return db.config.Clock().Truncate(time.Microsecond) }

// free returns the row if it exists and no transaction is writing it (SKIP LOCKED).
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

// page returns at most limit committed rows that match the filter and have ids above after,
// by id. next is the last id of a full page, after which the next page begins.
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

// refusal returns the error that Postgres returns for data that it cannot store.
func refusal(sqlState, message string) error {
	return &pgconn.PgError{Severity: "ERROR", SeverityUnlocalized: "ERROR", Code: sqlState, Message: message}
}
