package cleanup

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/pgsession"
)

// ID identifies a cleanup. It is never used again for another one.
type ID int64

// String returns the id in decimal, as it is in the database.
func (id ID) String() string { return strconv.FormatInt(int64(id), 10) }

// Cleanup is the row of one publication.
type Cleanup struct {
	ID  ID
	Key Key

	// Open means that this is an intent: an event began to publish, and it is not (yet)
	// known whether it did. Data is nil then.
	Open bool

	// Data is the data that Delete needs, byte for byte as it was put.
	Data []byte

	// Event is the event whose handler has published; 0 for one that was Put.
	Event eventqueue.EventID

	// Token is a uuid of this publication's own; see Intent.
	Token string

	// CreatedAt and ExpiresAt are by the database's clock. It expires TTL after it was
	// put or remembered.
	CreatedAt time.Time
	ExpiresAt time.Time

	// resent: Send was called again after a run that may have been frozen, and may have sent something since.
	resent bool
}

// Store is the table cleanups, which has to be in the queue's own database. It is the
// lower level of this package; handlers use Publications.
//
// Each method blocks for one statement. On an error it changes nothing, unless ctx ends
// while it runs. It reads and writes only rows of its key (I16). The methods are safe for
// concurrent use if the database handle is.
type Store struct {
	db eventqueue.DB
}

// NewStore makes a Store on a pool, or on a transaction such as an *eventqueue.Tx. The
// caller closes it.
func NewStore(db eventqueue.DB) *Store { return NewStoreIn("", db) }

// NewStoreIn is NewStore for the queue in a schema; "" is public.
func NewStoreIn(schema pgsession.Schema, db eventqueue.DB) *Store { return &Store{schema.On(db)} }

// The conditions and the parameters of a key.
const ofKey = `c.canvas_id = $1 AND c.component = $2 AND c.topic = $3 AND c.inputs_hash = $4`

func keyed(key Key, more ...any) []any {
	return append([]any{[16]byte(key.Canvas), key.Component, key.Topic, key.Inputs}, more...)
}

// columns are in the order of targets, of a cleanup c.
const columns = `c.id, c.data IS NULL, c.data, c.event_id, c.token::text, c.created_at, c.expires_at, c.resent`

// targets are the targets of a scan of columns; NULL becomes zero.
func (c *Cleanup) targets() []any {
	return []any{
		(*zeronull.Int8)(&c.ID), &c.Open, &c.Data, (*zeronull.Int8)(&c.Event),
		(*zeronull.Text)(&c.Token), (*zeronull.Timestamptz)(&c.CreatedAt), (*zeronull.Timestamptz)(&c.ExpiresAt), &c.resent,
	}
}

// stored returns data that is not NULL in the database, since NULL means an intent.
func stored(data []byte) []byte {
	if data == nil {
		return []byte{}
	}
	return data
}

// ttl is added in microseconds, as Postgres has them.
const putSQL = `
INSERT INTO cleanups (canvas_id, component, topic, inputs_hash, data, expires_at)
VALUES ($1, $2, $3, $4, $5, clock_timestamp() + $6::bigint * interval '1 microsecond')
RETURNING id`

// Put records how to delete a publication that has no intent. data is for the program
// that deletes the publication. The cleanup expires after ttl.
func (s *Store) Put(ctx context.Context, key Key, ttl TTL, data []byte) (ID, error) {
	if err := check(key, ttl); err != nil {
		return 0, err
	}
	var id int64
	err := s.db.QueryRow(ctx, putSQL, keyed(key, stored(data), time.Duration(ttl).Microseconds())...).Scan(&id)
	if err != nil {
		return 0, fmt.Errorf("put cleanup %s: %w", key, err)
	}
	return ID(id), nil
}

func check(key Key, ttl TTL) error {
	if err := key.Validate(); err != nil {
		return err
	}
	if err := ttl.Validate(); err != nil {
		return fmt.Errorf("cleanup %s: %w", key, err)
	}
	return nil
}

// free is true for a cleanup c that has expired and belongs to no event: the event that
// published has ended, and so has any event that was deleting the publication.
const free = `c.expires_at <= clock_timestamp()
    AND NOT EXISTS (SELECT FROM events_v2 e WHERE e.id = c.event_id)
    AND NOT EXISTS (SELECT FROM events_v2 e WHERE e.id = c.cleaned_by)`

const listExpiredSQL = `
SELECT ` + columns + `
FROM cleanups c
WHERE ` + ofKey + ` AND ` + free + `
ORDER BY c.id`

// ListExpired returns the cleanups of a key that have expired by the database's clock,
// in the order in which they were put. It leaves out those that belong to an event in the
// queue, which published them or is deleting them. An open cleanup has a Token and no
// Data. ListExpired reserves nothing: two callers get the same list.
func (s *Store) ListExpired(ctx context.Context, key Key) ([]Cleanup, error) {
	return s.list(ctx, listExpiredSQL, key)
}

const listAllSQL = `
SELECT ` + columns + `
FROM cleanups c
WHERE ` + ofKey + `
ORDER BY c.id`

// ListAll returns all cleanups of a key, in the order in which they were put.
func (s *Store) ListAll(ctx context.Context, key Key) ([]Cleanup, error) {
	return s.list(ctx, listAllSQL, key)
}

func (s *Store) list(ctx context.Context, sql string, key Key) ([]Cleanup, error) {
	if err := key.Validate(); err != nil {
		return nil, err
	}
	rows, err := s.db.Query(ctx, sql, keyed(key)...)
	if err != nil {
		return nil, fmt.Errorf("list cleanups of %s: %w", key, err)
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (Cleanup, error) {
		c := Cleanup{Key: key}
		err := row.Scan(c.targets()...)
		return c, err
	})
	if err != nil {
		return nil, fmt.Errorf("list cleanups of %s: %w", key, err)
	}
	return list, nil
}

const deleteSQL = `
DELETE FROM cleanups c
WHERE ` + ofKey + ` AND c.id = $5`

// Delete deletes a cleanup of a key; call it after the publication was deleted. A
// cleanup that does not exist, or has another key, is no error: a second Delete has no
// effect (I14).
func (s *Store) Delete(ctx context.Context, key Key, id ID) error {
	if err := key.Validate(); err != nil {
		return err
	}
	if _, err := s.db.Exec(ctx, deleteSQL, keyed(key, int64(id))...); err != nil {
		return fmt.Errorf("delete cleanup %s of %s: %w", id, key, err)
	}
	return nil
}
