package operate_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/operate"
	"eventsv2/test/rig"
	"eventsv2/test/testenv"
)

// refuse has the database refuse to write the rows of some events in a table.
func refuse(r *rig.Rig, table, when string, ids ...eventqueue.EventID) {
	r.T.Helper()
	r.Exec(`CREATE TABLE IF NOT EXISTS refused (id bigint)`)
	for _, id := range ids {
		r.Exec(`INSERT INTO refused VALUES ($1)`, id)
	}
	r.Exec(`CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		IF EXISTS (SELECT FROM refused WHERE id = coalesce(NEW.id, OLD.id)) THEN RAISE EXCEPTION 'no to %', coalesce(NEW.id, OLD.id); END IF;
		RETURN coalesce(NEW, OLD);
	END $$`)
	r.Exec(`CREATE TRIGGER refuse BEFORE ` + when + ` ON ` + table + ` FOR EACH ROW EXECUTE FUNCTION refuse()`)
}

// TestARefusedRowCostsItselfOnly (I15): the others of the call are changed, and the result names it.
func TestARefusedRowCostsItselfOnly(t *testing.T) {
	t.Parallel()
	const total = 20
	filter := operate.EventFilter{Module: rig.Scope.Module}
	edit := operate.Edit{Value: json.RawMessage(`"new"`)}
	changes := map[string]struct {
		table, when string
		change      func(r *rig.Rig) (done, refused int, first error, err error)
		doneSQL     string
	}{
		"cancel": {"event_log", "INSERT", func(r *rig.Rig) (int, int, error, error) {
			done, err := changer(r).CancelAll(testenv.Context(r.T), operate.Cancellation{}, filter)
			return done.Changed, done.Refused, firstOf(done), err
		}, `SELECT count(*) FROM event_log WHERE status = 'CANCELLED'`},
		"delete": {"events_v2", "DELETE", func(r *rig.Rig) (int, int, error, error) {
			done, err := changer(r).DeleteAll(testenv.Context(r.T), filter)
			return done.Changed, done.Refused, firstOf(done), err
		}, `SELECT 20 - count(*) FROM events_v2`},
		"edit": {"events_v2", "UPDATE", func(r *rig.Rig) (int, int, error, error) {
			done, err := changer(r).EditAll(testenv.Context(r.T), edit, filter)
			return done.Changed, done.Refused, firstOf(done), err
		}, `SELECT count(*) FROM events_v2 WHERE value = '"new"'`},
		"requeue": {"events_v2", "UPDATE", func(r *rig.Rig) (int, int, error, error) {
			r.Exec(`UPDATE events_v2 SET delay_until = now() + interval '1 hour' WHERE id NOT IN (SELECT id FROM refused)`)
			done, err := r.Requeuer().RequeueAll(testenv.Context(r.T), filter)
			return done.Changed, done.Refused, firstOf(done), err
		}, `SELECT count(*) FROM events_v2 WHERE delay_until <= now() AND id NOT IN (SELECT id FROM refused)`},
	}
	for name, c := range changes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := rig.New(t)
			ids := r.Emit(r.Copies(total)...)
			refuse(r, c.table, c.when, ids[3], ids[17])
			done, refused, first, err := c.change(r)
			if err != nil || done != total-2 || refused != 2 || first == nil || !strings.Contains(first.Error(), "no to "+ids[3].String()) {
				t.Errorf("%d are done and %d refused, the first: %v; %v", done, refused, first, err)
			}
			if n := rig.One[int](r, c.doneSQL); n != total-2 {
				t.Errorf("%d are done, want %d", n, total-2)
			}
		})
	}
	t.Run("retry", func(t *testing.T) {
		t.Parallel()
		r := rig.New(t)
		ids := r.Emit(r.Copies(total)...)
		cancel(r, ids, slices.Repeat([]operate.ChangeResult{operate.ChangeDone}, total)...)
		filter := operate.EventFilter{Module: rig.Scope.Module, State: operate.StateCancelled}
		refuse(r, "event_log", "DELETE", ids[3], ids[17])
		if n, err := retrier(t, r).DeleteLogged(testenv.Context(t), operate.EventFilter{Module: rig.Scope.Module}); n != 0 || err != nil {
			t.Errorf("%d failed events were deleted, %v", n, err)
		}
		done, err := retrier(t, r).RetryAll(testenv.Context(t), filter, edit)
		if err != nil || done.Moved != total-2 || done.Refused != 2 || !strings.Contains(done.FirstRefused[0].Err.Error(), "no to "+ids[3].String()) || r.Waiting() != total-2 {
			t.Errorf("%+v, %v; %d are back", done, err, r.Waiting())
		}
		cancel(r, ids[4:6], operate.ChangeDone, operate.ChangeDone)
		if n, err := retrier(t, r).DeleteLogged(testenv.Context(t), filter); n != 2 || err == nil || !strings.Contains(err.Error(), "refuses to delete 2 of them, the first is event "+ids[3].String()) {
			t.Errorf("%d events were deleted, %v", n, err)
		}
	})
	t.Run("all of a table", func(t *testing.T) { // a refusal that is none of a row is an error
		t.Parallel()
		r := rig.New(t)
		r.Emit(r.Copies(total)...)
		r.Exec(`ALTER TABLE event_log RENAME COLUMN retries TO renamed`)
		if done, err := changer(r).CancelAll(testenv.Context(t), operate.Cancellation{}, filter); err == nil || done.Refused != 0 || r.Waiting() != total {
			t.Errorf("%+v, %v", done, err)
		}
	})
}

func firstOf(done operate.ChangedAll) error {
	if len(done.FirstRefused) == 0 {
		return nil
	}
	return done.FirstRefused[0].Err
}
