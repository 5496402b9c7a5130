package pgsession_test

import (
	"encoding/json"
	"testing"
	"time"

	"eventsv2/eventqueue/pgstore"
	"eventsv2/test/testenv"
)

// TestTimesBeyondGosRangeAreClamped: they can be read, and written as JSON.
func TestTimesBeyondGosRangeAreClamped(t *testing.T) {
	t.Parallel()
	pool, err := pgstore.NewPool(testenv.DatabaseURL(t), "test", 1)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	for text, want := range map[string]string{"infinity": "9999-12-31T00:00:00Z", "200000-01-01 00:00Z": "9999-12-31T00:00:00Z",
		"-infinity": "0001-01-01T00:00:00Z", "4000-01-01 00:00Z BC": "0001-01-01T00:00:00Z", "2026-02-03 04:05:06.789Z": "2026-02-03T04:05:06.789Z"} {
		var at time.Time
		var perhaps, none *time.Time
		if err := pool.QueryRow(testenv.Context(t), `SELECT $1::text::timestamptz, $1::text::timestamptz, NULL::timestamptz`, text).Scan(&at, &perhaps, &none); err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		got := at.UTC().Format(time.RFC3339Nano)
		if _, err := json.Marshal(at); err != nil || got != want || !perhaps.Equal(at) || none != nil {
			t.Errorf("%s is read as %s, want %s: %v", text, got, want, err)
		}
	}
}
