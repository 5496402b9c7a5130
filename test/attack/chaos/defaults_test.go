package main

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/test/testenv"
)

// Each default reaches a connection of another program, and not one that the queue has prepared; one
// that did not reach it would be missed.
func TestNewConnectionsHaveTheDefaultsOfOthers(t *testing.T) {
	t.Parallel()
	databaseURL := testenv.DatabaseURL(t)
	pool, err := pgxpool.New(t.Context(), databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	o := &others{}
	for name, values := range defaults() {
		for _, value := range values {
			// The role is that of other tests as well.
			if err := o.apply(t.Context(), pool, "DATABASE", "DATABASE", name, value); err != nil {
				t.Fatal(err)
			}
			if lacks, err := o.missing(t.Context(), databaseURL); err != nil || len(lacks) > 0 {
				t.Errorf("%q, %v", lacks, err)
			}
		}
	}
	if len(o.set) != len(defaults()) {
		t.Errorf("%d of %d are set", len(o.set), len(defaults()))
	}
	if _, err := pool.Exec(t.Context(), `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I RESET work_mem', current_database()); END $$`); err != nil {
		t.Fatal(err)
	}
	lacks, err := o.missing(t.Context(), databaseURL)
	if err != nil || len(lacks) != 1 {
		t.Errorf("one was reset, and %q, %v are missing", lacks, err)
	}
	if err := o.apply(t.Context(), pool, "DATABASE", "DATABASE", "TimeZone", ""); err != nil || o.set["TimeZone"] != "" {
		t.Errorf("taken back: %v, %q", err, o.set["TimeZone"])
	}
}
