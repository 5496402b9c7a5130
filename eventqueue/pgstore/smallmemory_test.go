package pgstore_test

import (
	"encoding/binary"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/minutes"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/test/testenv"
)

// TestCountsAreWrittenWithLittleWorkMemory allows no temporary files, and less memory than the largest hand-in
// of counts takes.
func TestCountsAreWrittenWithLittleWorkMemory(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx := testenv.Context(t)
	r.exec(`DO $$ BEGIN
		EXECUTE format('ALTER DATABASE %I SET work_mem = %L', current_database(), '64kB');
		EXECUTE format('ALTER DATABASE %I SET temp_file_limit = %L', current_database(), '0');
	END $$`)
	pool, err := pgstore.Open(ctx, r.pool.Config().ConnString(), "test", 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	counts := make([]minutes.Counts, 1000)
	for i := range counts {
		c := &counts[i]
		c.Scope = eventqueue.Scope{Module: "WORKER", Name: "n"}
		binary.BigEndian.PutUint16(c.Canvas[:], uint16(i+1))
		c.Completed = 1
		c.Wait.Add(24 * time.Hour)
		c.Run.Add(24 * time.Hour)
	}
	if _, err := pgstore.New(pool).AddMinutes(ctx, counts); err != nil {
		t.Fatal(err)
	}
	if got := one[int](r, `SELECT sum(completed) FROM event_minutes`); got != len(counts) {
		t.Errorf("%d of %d are counted", got, len(counts))
	}
}
