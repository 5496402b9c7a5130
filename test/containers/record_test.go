package containers_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue"
)

// recordSQL has Postgres itself write down every change of an event, and who made
// it in which transaction. It shows what happened, whatever a worker believes. A
// row's lock is held when its change gets its number, so the numbers of one event
// are in the order of its commits.
const recordSQL = `
CREATE TABLE record (
    seq         bigserial   PRIMARY KEY,
    txid        xid8        NOT NULL DEFAULT pg_current_xact_id(),
    application text        NOT NULL DEFAULT current_setting('application_name'),
    operation   text        NOT NULL,
    event       bigint      NOT NULL,
    attempts    integer,    -- before
    claimed     integer,    -- attempts after
    locked      timestamptz, -- before
    relocked    timestamptz  -- locked_at after
);
CREATE FUNCTION record_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO record (operation, event, attempts, claimed, locked, relocked)
    VALUES (TG_OP, coalesce(NEW.id, OLD.id), OLD.attempts, NEW.attempts, OLD.locked_at, NEW.locked_at);
    RETURN NULL;
END $$;
CREATE TRIGGER record_change AFTER INSERT OR UPDATE OR DELETE ON events_v2 FOR EACH ROW EXECUTE FUNCTION record_change();`

// change is one row of the record.
type change struct {
	Seq               int64
	Transaction       string
	Application       string
	Operation         string
	Event             eventqueue.EventID
	Attempts, Claimed *int32
	Locked, Relocked  *time.Time
}

func (f *fleet) record(ctx context.Context, t *testing.T) []change {
	t.Helper()
	rows, err := f.pool.Query(ctx, `
SELECT seq, txid::text, application, operation, event, attempts, claimed, locked, relocked FROM record ORDER BY seq`)
	if err != nil {
		t.Fatal(err)
	}
	changes, err := pgx.CollectRows(rows, pgx.RowToStructByPos[change])
	if err != nil {
		t.Fatal(err)
	}
	return changes
}

// mark is the number of the last change so far.
func (f *fleet) mark(ctx context.Context, t *testing.T) (seq int64) {
	t.Helper()
	if err := f.pool.QueryRow(ctx, `SELECT coalesce(max(seq), 0) FROM record`).Scan(&seq); err != nil {
		t.Fatal(err)
	}
	return seq
}

// life is the record of one event.
type life struct {
	inserted, deleted int
	claims            []string // who claimed it, in order
	deletedBy         string
	takenOver         int64 // the change with which an expired lock was taken over
}

// lives reads the record and fails the test for every write that no claim
// allows: one by a worker that does not hold the event at that moment (I5), one
// after the event's end, and a claim of a lock that is still valid (I4).
func lives(t *testing.T, changes []change) map[eventqueue.EventID]*life {
	t.Helper()
	all := map[eventqueue.EventID]*life{}
	for _, c := range changes {
		l := all[c.Event]
		if l == nil {
			l = &life{}
			all[c.Event] = l
		}
		l.add(t, c)
	}
	return all
}

func (l *life) add(t *testing.T, c change) {
	t.Helper()
	if l.deleted > 0 {
		t.Errorf("event %s: %s by %s after its end (change %d, transaction %s)", c.Event, c.Operation, c.Application, c.Seq, c.Transaction)
	}
	switch {
	case c.Operation == "INSERT":
		l.inserted++
	case c.Operation == "UPDATE" && *c.Claimed != *c.Attempts:
		l.claim(t, c)
	case c.Operation == "UPDATE" && sameTime(c.Locked, c.Relocked):
		// A notification was published; no claim is needed for that.
	default:
		if holder := l.holder(); strings.TrimSuffix(c.Application, "-heartbeat") != holder || c.Locked == nil {
			t.Errorf("event %s: stale write: %s by %s while %q holds it (change %d, transaction %s)",
				c.Event, c.Operation, c.Application, holder, c.Seq, c.Transaction)
		}
		if c.Operation == "DELETE" {
			l.deleted++
			l.deletedBy = c.Application
		}
	}
}

func (l *life) claim(t *testing.T, c change) {
	t.Helper()
	if *c.Claimed != *c.Attempts+1 || int(*c.Claimed) != len(l.claims)+1 {
		t.Errorf("event %s: claim %d of %s follows claim %d (change %d)", c.Event, *c.Claimed, c.Application, *c.Attempts, c.Seq)
	}
	if c.Locked != nil {
		if held := c.Relocked.Sub(*c.Locked); held < fleetLock {
			t.Errorf("event %s: %s takes over a lock after %s, which is valid for %s (change %d)", c.Event, c.Application, held, fleetLock, c.Seq)
		}
		l.takenOver = c.Seq
	}
	l.claims = append(l.claims, c.Application)
}

// holder returns the worker that claimed the event last.
func (l *life) holder() string {
	if len(l.claims) == 0 {
		return ""
	}
	return l.claims[len(l.claims)-1]
}

func sameTime(a, b *time.Time) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Equal(*b)
}
