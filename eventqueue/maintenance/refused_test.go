package maintenance_test

import (
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"eventsv2/eventqueue/maintenance"
	"eventsv2/test/rig"
	"eventsv2/test/testenv"
)

// TestRefusedRowStopsNoRelay (I15, I20): what is pending and what is lost beside it is
// published, and the log names it.
func TestRefusedRowStopsNoRelay(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	r.Notifier.Drop(8)
	r.Emit(r.Event(`"bad"`), r.Event(`"lost"`), r.Event(`"lost"`), r.Event(`"bad"`), r.Event(`"pending"`), r.Event(`"pending"`), r.Event(`"pending"`), r.Event(`"bad, pending"`))
	r.Exec(`UPDATE events_v2 SET notified_at = clock_timestamp() - interval '1 h', enqueued_at = clock_timestamp() - interval '1 h',
		delay_until = clock_timestamp() - interval '1 h'`)
	r.Exec(`UPDATE events_v2 SET notified_at = NULL WHERE value LIKE '%pending%'`)
	r.Exec(`ALTER TABLE events_v2 ADD CONSTRAINT good CHECK (value NOT LIKE '%bad%') NOT VALID`)
	core, logs := observer.New(zap.ErrorLevel)
	relay, err := maintenance.NewRelay(r.Store, r.Notifier, maintenance.RelayConfig{Logger: zap.New(core)})
	if err != nil {
		t.Fatal(err)
	}
	if done, err := relay.Pass(testenv.Context(t)); err != nil || done.Pending != 3 || done.Lost != 2 {
		t.Errorf("the relay published %+v, %v", done, err)
	}
	if n := r.Notified(); n != 5 {
		t.Errorf("%d events were notified, want 5", n)
	}
	named := map[any]bool{}
	for _, line := range logs.All() {
		named[line.ContextMap()["event_id"]] = true
	}
	if len(named) != 3 {
		t.Errorf("the log names %v, want 3 events", named)
	}
}
