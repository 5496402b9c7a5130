package inspect_test

import (
	"testing"

	"eventsv2/eventqueue/inspect"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/test/testenv"
)

// TestProgressIsThatOfTheRunThatGoesOn, and what SQL has written cannot keep the event from being shown.
func TestProgressIsThatOfTheRunThatGoesOn(t *testing.T) {
	t.Parallel()
	ctx, store := testenv.Context(t), pgstore.New(testenv.Pool(t))
	emit(t, store, 1)
	reader := inspect.New(store.Pool())
	for set, want := range map[string]bool{
		`locked_at = now(), attempts = 2, progress = (2, 0.5, 'half', now())`:                  true,
		`locked_at = now(), attempts = 2, progress = (2, 0.5, NULL, now())`:                    true,
		`locked_at = now(), attempts = 2, progress = (1, 0.5, 'of the attempt before', now())`: false,
		`locked_at = NULL, attempts = 2, progress = (2, 0.5, 'of a run that is over', now())`:  false,
		`locked_at = now(), attempts = 2, progress = (2, 'NaN', 'by hand', now())`:             false,
		`locked_at = now(), attempts = 2, progress = (2, 1.5, 'by hand', now())`:               false,
		`locked_at = now(), attempts = 2, progress = (2, 0.5, 'by hand', 'infinity')`:          false,
		`locked_at = now(), attempts = 2, progress = (2, 0.5, 'by hand', '10000-01-01')`:       false,
		`locked_at = now(), attempts = 2, progress = (2, 0.5, 'by hand', NULL)`:                false,
		`locked_at = now(), attempts = 2, progress = (NULL, NULL, NULL, NULL)`:                 false,
		`locked_at = now(), attempts = 2, progress = NULL`:                                     false,
	} {
		if _, err := store.Pool().Exec(ctx, `UPDATE events_v2 SET `+set); err != nil {
			t.Fatal(set, err)
		}
		shown, err := reader.Show(ctx, 1)
		if err != nil || shown.Queued == nil || (shown.Queued.Progress != nil) != want {
			t.Errorf("%s: %+v, %v", set, shown.Queued, err)
		} else if want && shown.Queued.Progress.Fraction != 0.5 {
			t.Errorf("%s: %+v", set, shown.Queued.Progress)
		}
	}
}

func TestAwaitReturnsTheEntryOfAnEventThatHasEnded(t *testing.T) {
	t.Parallel()
	ctx, store := testenv.Context(t), pgstore.New(testenv.Pool(t))
	emit(t, store, 2)
	reader := inspect.New(store.Pool())
	type answer struct {
		ended *inspect.LogEntry
		err   error
	}
	answers := make(chan answer, 1)
	go func() {
		ended, err := reader.Await(ctx, 1)
		answers <- answer{ended, err}
	}()
	if _, err := store.Pool().Exec(ctx, `WITH ended AS (DELETE FROM events_v2 WHERE id = 1 RETURNING *)
		INSERT INTO event_log (id, canvas_id, module, name, modifier, value, status, retries, attempts, enqueued_at, result)
		SELECT id, canvas_id, module, name, modifier, value, 'COMPLETED', 0, 1, enqueued_at, '{"rows": 7}' FROM ended`); err != nil {
		t.Fatal(err)
	}
	if a := <-answers; a.err != nil || a.ended == nil || string(a.ended.Result) != `{"rows": 7}` || a.ended.Status != inspect.LogCompleted {
		t.Errorf("%+v, %v", a.ended, a.err)
	}
	if ended, err := reader.Await(ctx, 77); ended != nil || err != nil {
		t.Errorf("an event that is nowhere: %+v, %v", ended, err)
	}
}
