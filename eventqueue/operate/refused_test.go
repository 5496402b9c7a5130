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

// TestRefusedRowStopsNoOtherChange (I15): the others of the call are changed, and the result names it.
func TestRefusedRowStopsNoOtherChange(t *testing.T) {
	t.Parallel()
	const total = 20
	filter := operate.EventFilter{Module: rig.Scope.Module}
	edit := operate.Edit{Value: json.RawMessage(`"new"`)}
	changes := map[operate.Verb]struct {
		table, when, doneSQL string
	}{
		operate.VerbCancel: {"event_log", "INSERT", `SELECT count(*) FROM event_log WHERE status = 'CANCELLED'`},
		operate.VerbDelete: {"events_v2", "DELETE", `SELECT 20 - count(*) FROM events_v2`},
		operate.VerbEdit:   {"events_v2", "UPDATE", `SELECT count(*) FROM events_v2 WHERE value = '"new"'`},
		operate.VerbRun:    {"events_v2", "UPDATE", `SELECT count(*) FROM events_v2 WHERE delay_until <= now() AND id NOT IN (SELECT id FROM refused)`},
	}
	for verb, c := range changes {
		t.Run(string(verb), func(t *testing.T) {
			t.Parallel()
			r := rig.New(t)
			ids := r.Emit(r.Copies(total)...)
			refuse(r, c.table, c.when, ids[3], ids[17])
			change := operate.Change{Verb: verb, Filter: filter}
			if verb == operate.VerbEdit {
				change.Edit = edit
			}
			if verb == operate.VerbRun {
				r.Exec(`UPDATE events_v2 SET delay_until = now() + interval '1 hour' WHERE id NOT IN (SELECT id FROM refused)`)
			}
			wantRefused(t, r, change, ids[3], ids[17])
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
		if done, _, err := many(testenv.Context(t), r, operate.Change{Verb: operate.VerbDeleteEnded, Filter: operate.EventFilter{Module: rig.Scope.Module}}); done.Changed != 0 || err != nil {
			t.Errorf("failed events were deleted: %+v, %v", done, err)
		}
		if wantRefused(t, r, operate.Change{Verb: operate.VerbRetry, Filter: filter, Edit: edit}, ids[3], ids[17]); r.Waiting() != total-2 {
			t.Errorf("%d are back", r.Waiting())
		}
		cancel(r, ids[4:6], operate.ChangeDone, operate.ChangeDone)
		done, refused, err := many(testenv.Context(t), r, operate.Change{Verb: operate.VerbDeleteEnded, Filter: filter})
		if err != nil || done.Changed != 2 || done.Refused != 2 || len(refused) != 2 || refused[0].ID != ids[3] {
			t.Errorf("%+v, %+v, %v", done, refused, err)
		}
	})
	t.Run("all of a table", func(t *testing.T) { // a refusal that is none of a row is an error
		t.Parallel()
		r := rig.New(t)
		r.Emit(r.Copies(total)...)
		r.Exec(`ALTER TABLE event_log RENAME COLUMN retries TO renamed`)
		if done, refused, err := many(testenv.Context(t), r, operate.Change{Verb: operate.VerbCancel, Filter: filter}); err == nil || len(refused) != 0 || r.Waiting() != total {
			t.Errorf("%+v, %v", done, err)
		}
	})
}

// TestCancelledEventsBeforeAnErrorAreCounted: around a refused row, one part is cancelled and another fails.
func TestCancelledEventsBeforeAnErrorAreCounted(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	ids := r.Emit(r.Copies(3)...)
	refuse(r, "events_v2", "DELETE", ids[1])
	r.Exec(`CREATE FUNCTION times_out() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		IF OLD.id = TG_ARGV[0]::bigint THEN RAISE 'for a moment' USING ERRCODE = '57014'; END IF;
		RETURN OLD;
	END $$`)
	r.Exec(`CREATE TRIGGER times_out BEFORE DELETE ON events_v2 FOR EACH ROW EXECUTE FUNCTION times_out('` + ids[2].String() + `')`)
	queue, err := eventqueue.New(r.Store, r.Notifier, eventqueue.QueueConfig{})
	if err != nil {
		t.Fatal(err)
	}
	changer, err := operate.NewChanger(r.Store, queue)
	if err != nil {
		t.Fatal(err)
	}
	if results, err := changer.Cancel(testenv.Context(t), operate.Cancellation{}, ids...); err == nil || len(operate.DoneIDs(results)) != 1 {
		t.Errorf("%+v, %v", results, err)
	}
	if err := queue.Close(testenv.Context(t)); err != nil {
		t.Error(err)
	}
	if n := rig.One[int](r, `SELECT sum(cancelled) FROM event_minutes`); n != 1 {
		t.Errorf("%d cancelled events are counted, want 1", n)
	}
}

// wantRefused makes a change of 20 events, of which the database refuses two.
func wantRefused(t *testing.T, r *rig.Rig, change operate.Change, ids ...eventqueue.EventID) {
	t.Helper()
	done, refused, err := many(testenv.Context(t), r, change)
	if err != nil || done.Changed != 18 || done.Refused != 2 || len(refused) != 2 {
		t.Fatalf("%+v, refused %+v, %v", done, refused, err)
	}
	for i, id := range ids {
		if refused[i].ID != id || !strings.Contains(refused[i].Err.Error(), "no to "+id.String()) {
			t.Errorf("refused: %+v, want event %s", refused[i], id)
		}
	}
}
