package queuetest_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/eventqueue/queuetest"
	"eventsv2/test/testenv"
)

// A stopped clock is the same for every connection of a pool that follows it, until it is set, and for defaults of columns.
func TestStoppedClockGoesOnWhenItIsSet(t *testing.T) {
	t.Parallel()
	ctx := testenv.Context(t)
	databaseURL := testenv.DatabaseURL(t)
	begun := time.Date(2031, 3, 1, 12, 0, 0, 7000, time.UTC)
	clock, err := queuetest.Stop(ctx, databaseURL, begun)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := clock.Close(ctx); err != nil {
			t.Error(err)
		}
	}()
	config, err := pgxpool.ParseConfig(databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	clock.Follow(config)
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	for _, want := range []time.Time{begun, begun.Add(time.Hour), begun.Add(-time.Hour)} {
		if err := clock.Set(ctx, want); err != nil {
			t.Fatal(err)
		}
		var shown, stored time.Time
		var lockTimeout string
		err := pool.QueryRow(ctx, `INSERT INTO events_v2 (canvas_id, module, name, modifier, value) VALUES ($1, 'M', 'n', '_', '1')
			RETURNING clock_timestamp(), delay_until, current_setting('lock_timeout')`, event.Canvas).Scan(&shown, &stored, &lockTimeout)
		if err != nil || !shown.Equal(want) || !stored.Equal(want) || !clock.Now().Equal(want) {
			t.Errorf("at %v the clock is %v and the default of a column %v (%v)", want, shown, stored, err)
		}
		if lockTimeout != "0" {
			t.Errorf("the lock timeout is %s", lockTimeout)
		}
		wantClock(t, databaseURL, want)
	}
	again, err := queuetest.Stop(ctx, databaseURL, begun)
	if err != nil {
		t.Fatal(err)
	}
	wantClock(t, databaseURL, begun)
	if err := again.Close(ctx); err != nil {
		t.Error(err)
	}
}

// wantClock opens a connection that follows nothing.
func wantClock(t *testing.T, databaseURL string, want time.Time) {
	t.Helper()
	ctx := testenv.Context(t)
	conn, err := pgx.Connect(ctx, databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	var shown time.Time
	var path string
	err = conn.QueryRow(ctx, `SELECT clock_timestamp(), current_setting('search_path')`).Scan(&shown, &path)
	if err != nil || !shown.Equal(want) || path != `queuetest, pg_catalog, "$user", public` {
		t.Errorf("of another connection the clock is %v, want %v, with the search path %s (%v)", shown, want, path, err)
	}
}
