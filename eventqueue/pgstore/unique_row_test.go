package pgstore_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/test/testenv"
)

// TestRepeatedEmitIsNotNotified (I11): its notification belongs to the first emit, which has
// seen to it, in the same batch as well.
func TestRepeatedEmitIsNotNotified(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx := testenv.Context(t)
	listener, err := pgx.ConnectConfig(ctx, r.pool.Config().ConnConfig)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close(context.Background()) }()
	for _, channel := range []string{"events_v2_pending", "the_end"} {
		if _, err := listener.Exec(ctx, `LISTEN `+channel); err != nil {
			t.Fatal(err)
		}
	}
	for i, key := range []string{"a", "a", "b"} {
		rows, err := r.store.Insert(ctx, nil, []eventqueue.NewEvent{once(key, 0), once(key, 0)}, eventqueue.NotifyModeRelay)
		if err != nil || rows[0].Repeat != (i == 1) || !rows[1].Repeat {
			t.Errorf("%s: %+v, %v", key, rows, err)
		}
	}
	r.exec(`NOTIFY the_end`)
	var heard []string
	for len(heard) == 0 || heard[len(heard)-1] != "the_end" {
		notice, err := listener.WaitForNotification(ctx)
		if err != nil {
			t.Fatal(err)
		}
		heard = append(heard, notice.Channel)
	}
	if want := []string{"events_v2_pending", "events_v2_pending", "the_end"}; !slices.Equal(heard, want) {
		t.Errorf("heard %v, want %v", heard, want)
	}
	rows, err := r.store.Insert(ctx, nil, []eventqueue.NewEvent{once("c", 0), once("c", 0), once("a", 0)}, eventqueue.NotifyModeSelf)
	if err != nil || !rows[0].MustNotify || rows[1].MustNotify || rows[2].MustNotify {
		t.Errorf("in one batch: %+v, %v", rows, err)
	}
}

// TestUniqueKeyTimeIsInWholeSeconds, never fewer than asked for.
func TestUniqueKeyTimeIsInWholeSeconds(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for uniqueFor, want := range map[time.Duration]int{0: 0, 1: 1, time.Second: 1, time.Second + 1: 2, eventqueue.MaxUniqueFor: 366 * 86400} {
		id := r.insert(once(uniqueFor.String(), uniqueFor))[0]
		if got := one[int](r, `SELECT unique_seconds FROM events_v2 WHERE id = $1`, id); got != want {
			t.Errorf("%s are %d seconds, want %d", uniqueFor, got, want)
		}
	}
}

// TestEventsWithoutKeysTouchNoKeyRows: no statement and no row more, from the
// emit to the end.
func TestEventsWithoutKeysTouchNoKeyRows(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	if _, err := r.pool.Exec(testenv.Context(t), `CREATE EXTENSION IF NOT EXISTS pg_stat_statements; SELECT count(*) FROM pg_stat_statements`); err != nil {
		testenv.Missing(t, "the server has no pg_stat_statements: %v", err)
	}
	for _, emit := range r.emitters() {
		ids, _, err := emit(event(), event())
		if err != nil {
			t.Fatal(err)
		}
		for i, label := range []machine.Label{machine.ExecutesToCompletion, machine.FailedForGood} {
			r.runToEnd(ids[i], label)
		}
	}
	const sent = `SELECT count(*) FROM pg_stat_statements WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
		AND query LIKE '%unique\_%' AND query NOT LIKE '%pg_stat_statements%' AND query NOT LIKE '%INTO %event\_log%' AND query NOT LIKE $1`
	if n := one[int](r, sent, `%AS marks%`); n != 0 { // the claim reads what they are, and the history has them
		t.Errorf("%d statements have to do with keys: %s", n, one[string](r, strings.Replace(sent, "count(*)", "min(query)", 1), `%AS marks%`))
	}
	ordered := event()
	ordered.OrderingKey = "k"
	for _, emit := range r.emitters() {
		if _, _, err := emit(ordered); err != nil {
			t.Fatal(err)
		}
	}
	const locks = ` AND query LIKE '%INSERT INTO unique\_keys%'`
	if n := one[int](r, sent+locks, ``); n != 0 {
		t.Errorf("with an ordering key alone, %d statements lock unique keys", n)
	}
	r.runToEnd(r.insert(once("k", time.Hour))[0], machine.ExecutesToCompletion)
	if n := one[int](r, sent, ``); n < 1 { // the emit
		t.Errorf("with a key %d statements have to do with it: the test does not see them", n)
	}
}

// TestKeysAreCheckedBeforeAnythingIsWritten, and the error names the field.
func TestKeysAreCheckedBeforeAnythingIsWritten(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		event eventqueue.NewEvent
		field string
	}{
		{once("", time.Hour), "unique_key"},
		{once("a\x00", 0), "unique_key"},
		{once("\xff", 0), "unique_key"},
		{once(string(make([]byte, 256)), 0), "unique_key"},
		{once("k", -1), "unique_for"},
		{once("k", eventqueue.MaxUniqueFor+1), "unique_for"},
	} {
		var invalid *eventqueue.InvalidError
		err := eventqueue.Limits{}.CheckEvents([]eventqueue.NewEvent{event(), c.event}, time.Now())
		if !errors.As(err, &invalid) || invalid.Field != c.field || invalid.Index != 1 {
			t.Errorf("%q for %s: %v, want a complaint about %s", c.event.UniqueKey, c.event.UniqueFor, err, c.field)
		}
	}
	if err := (eventqueue.Limits{}).CheckEvents([]eventqueue.NewEvent{once("Größe 7", eventqueue.MaxUniqueFor)}, time.Now()); err != nil {
		t.Errorf("a good key: %v", err)
	}
}

// TestEmitWithAKeyUsesItsIndex (I12): beside many events and keys it reads no more
// rows than beside none, with plans that were made for empty tables.
func TestEmitWithAKeyUsesItsIndex(t *testing.T) {
	t.Parallel()
	outer := newRig(t)
	r := outer.on(pgstore.Open(testenv.Context(t), outer.pool.Config().ConnString(), "protocol", 1))
	r.exec(`ALTER TABLE events_v2 SET (autovacuum_enabled = off); ALTER TABLE unique_keys SET (autovacuum_enabled = off)`)
	work := func() int {
		reads := func() int {
			r.flush()
			return one[int](r, `SELECT sum(seq_tup_read + coalesce(idx_tup_fetch, 0))::int FROM pg_stat_user_tables WHERE relname LIKE 'unique%' OR relname = 'events_v2'`)
		}
		before := reads()
		for range 10 {
			r.insert(once("a", 0), once("b", 0))
		}
		return reads() - before
	}
	work()
	few := work()
	const backlog = 5000
	r.exec(`WITH e AS (INSERT INTO events_v2 (canvas_id, module, name, modifier, value)
			SELECT $1, 'WORKER', 'another', '_', '1' FROM generate_series(1, $2) RETURNING id)
		INSERT INTO unique_keys SELECT $1, 'n' || id, id FROM e`, [16]byte(canvas), backlog)
	if many := work(); many >= few+backlog {
		t.Errorf("beside %d keys an emit reads %d rows instead of %d", backlog, many, few)
	}
}
