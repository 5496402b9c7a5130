package cronchecker

import (
	"slices"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// TestRefusedEventStopsNoOtherDefinition (I10, I15): by a trigger or a policy on the events,
// for whatever reason. It is named in the log, and emits when it can.
func TestRefusedEventStopsNoOtherDefinition(t *testing.T) {
	t.Parallel()
	for _, state := range []string{"23514", "42501"} {
		t.Run(state, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			core, logs := observer.New(zap.ErrorLevel)
			r.checker = newChecker(t, r.store(), Config{Logger: zap.New(core)})
			for _, name := range []string{"bad 1", "bad 2", "good 1", "bad 3", "good 2"} {
				r.add(canvasA, name, "every hour", MissedAll, 10*time.Hour)
			}
			// It has more missed slots than one pass takes, and is not tried again and again for them.
			r.add(canvasB, "bad 4", "every minute", MissedAll, 2500*time.Minute)
			r.exec(`CREATE FUNCTION refuse_bad() RETURNS trigger LANGUAGE plpgsql AS $$
				BEGIN IF NEW.name LIKE 'bad%' THEN RAISE EXCEPTION 'not this one' USING ERRCODE = '` + state + `'; END IF; RETURN NEW; END $$`)
			r.exec(`CREATE TRIGGER refuse_bad BEFORE INSERT ON events_v2 FOR EACH ROW EXECUTE FUNCTION refuse_bad()`)
			if result := r.check(); result.Emitted != 20 || result.Broken != 4 || result.More {
				t.Errorf("beside the refused definitions: %+v", result)
			}
			var named []string
			for _, line := range logs.All() {
				if name, ok := line.ContextMap()[logName].(string); ok {
					named = append(named, name)
				}
			}
			slices.Sort(named)
			if !slices.Equal(named, []string{"bad 1", "bad 2", "bad 3", "bad 4"}) {
				t.Errorf("the log names %v", named)
			}
			r.exec(`DROP TRIGGER refuse_bad ON events_v2`)
			if result := r.check(); result.Emitted != 1000+30 || result.Broken != 0 || !result.More {
				t.Errorf("when nothing is refused any more: %+v", result)
			}
		})
	}
}

// TestRefusalOfAllDefinitionsIsAnError, after which a pass comes soon: a right is missing, for example.
func TestRefusalOfAllDefinitionsIsAnError(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.add(canvasA, "report", "every hour", "", 10*time.Hour)
	r.add(canvasB, "report", "every hour", "", 10*time.Hour)
	r.exec(`CREATE FUNCTION refuse_all() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN RAISE EXCEPTION 'no right' USING ERRCODE = '42501'; END $$`)
	r.exec(`CREATE TRIGGER refuse_all BEFORE INSERT ON events_v2 FOR EACH STATEMENT EXECUTE FUNCTION refuse_all()`)
	if result, err := r.checker.Check(r.ctx); err == nil || result.Broken != 0 {
		t.Errorf("%+v, %v", result, err)
	}
}
