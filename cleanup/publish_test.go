package cleanup

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/eventqueue"
	"eventsv2/test/testenv"
)

// TestConcurrentPublicationsDeleteEachMessageOnce: events of one key and of others publish at the same time. No
// message is deleted twice, none is without its cleanup, and the next event of a
// key leaves its own message alone.
func TestConcurrentPublicationsDeleteEachMessageOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	keys := make([]Key, 3)
	for i := range keys {
		keys[i] = keyOf(t, Config{Key: "k", Inputs: []string{"to"}}, map[string]any{"to": i})
		for n := range 5 {
			data, _ := r.service.send(keys[i], "", fmt.Sprint(n))
			if _, err := r.store.Put(r.ctx, keys[i], Replace, data); err != nil {
				t.Fatal(err)
			}
		}
	}
	var wait sync.WaitGroup
	for range 6 {
		for _, key := range keys {
			event := r.emit(canvas)
			run := r.claim(event)
			wait.Go(func() {
				if _, err := NewPublications(r.pool).Publish(r.ctx, run, r.publication(key, "new")); err != nil {
					t.Error(err)
				}
				if _, err := r.pool.Exec(r.ctx, `DELETE FROM events_v2 WHERE id = $1`, int64(run.ID)); err != nil {
					t.Error(err)
				}
			})
		}
	}
	wait.Wait()
	for _, key := range keys {
		r.wantRows(key)
		r.published(key, "last")
		r.wantTexts(key, "last")
		r.wantRows(key)
	}
	for id, n := range r.service.deletes {
		if n > 1 {
			t.Errorf("%s was deleted %d times", id, n)
		}
	}
}

// TestPublicationWaitsForAConcurrentClaim: while an event waits for a row that another one is
// claiming, that other event is too new for its snapshot, and has the row still.
func TestPublicationWaitsForAConcurrentClaim(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	key := keyOf(t, Config{Key: "k"}, nil)
	r.published(key, "old")
	event := r.emit(canvas)
	run := r.claim(event)
	tx, err := r.pool.Begin(r.ctx)
	if err != nil {
		t.Fatal(err)
	}
	const newerSQL = `
WITH newer AS (INSERT INTO events_v2 (canvas_id, module, name, modifier, value) VALUES ($1, 'm', 'n', '_', '0') RETURNING id)
UPDATE cleanups SET cleaned_by = newer.id FROM newer`
	if _, err := tx.Exec(r.ctx, newerSQL, [16]byte(canvas)); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := NewPublications(r.pool).Publish(r.ctx, run, r.publication(key, "new"))
		done <- err
	}()
	testenv.Eventually(t, "the claim waits for the row", func() bool {
		var waits bool
		const waitsSQL = `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock')`
		return r.pool.QueryRow(r.ctx, waitsSQL).Scan(&waits) == nil && waits
	})
	if err := tx.Commit(r.ctx); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	r.wantTexts(key, "old", "new")
}

// TestFailedDeletionIsTriedAgain, by the next event, and stops no event from
// publishing, however many fail; what was not tried comes before what was.
func TestFailedDeletionIsTriedAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	key := keyOf(t, Config{Key: "k"}, nil)
	r.service.refuse = map[string]bool{}
	for i := range MaxFailures + 1 {
		data, _ := r.service.send(key, "", fmt.Sprint(i))
		r.service.refuse[string(data)] = i < MaxFailures
		if _, err := r.store.Put(r.ctx, key, Replace, data); err != nil {
			t.Fatal(err)
		}
	}
	result := r.published(key, "a")
	if len(result.Failed) != MaxFailures || result.Cleaned != 0 || result.Failed[0].Err.Error() != "the service refuses to delete m001" || result.Failed[0].Cleanup.ID == 0 {
		t.Errorf("first: %+v", result)
	}
	if result = r.published(key, "b"); result.Cleaned != 2 || len(result.Failed) != MaxFailures {
		t.Errorf("second: %+v", result)
	}
	r.wantTexts(key, "0", "1", "2", "b")
	r.service.refuse = nil
	if result = r.published(key, "c"); result.Cleaned != 4 || len(result.Failed) != 0 {
		t.Errorf("third: %+v", result)
	}
	r.wantTexts(key, "c")
	r.wantRows(key)
}

// TestHangingDeletionLeavesTimeForTheRest leaves the rest of the handler's time; one that ends with it
// ends the run, before anything is published.
func TestHangingDeletionLeavesTimeForTheRest(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	key := keyOf(t, Config{Key: "k"}, nil)
	r.published(key, "old")
	pub := r.publication(key, "new")
	ctx, cancel := context.WithCancel(r.ctx)
	pub.Delete = func(ctx context.Context, _ Cleanup) error {
		cancel()
		<-ctx.Done()
		return ctx.Err()
	}
	run := r.claim(r.emit(canvas))
	if _, err := NewPublications(r.pool).Publish(ctx, run, pub); !errors.Is(err, context.Canceled) {
		t.Errorf("the handler's context has ended: %v", err)
	}
	r.wantTexts(key, "old")
	pub.DeleteTimeout = time.Millisecond
	result, err := NewPublications(r.pool).Publish(r.ctx, run, pub)
	if err != nil || len(result.Failed) != 1 || !errors.Is(result.Failed[0].Err, context.DeadlineExceeded) {
		t.Errorf("a deletion hangs: %+v, %v", result, err)
	}
	r.wantTexts(key, "old", "new")
}

// TestPublicationSentAtTheDeadlineIsRecorded: what was sent is remembered.
func TestPublicationSentAtTheDeadlineIsRecorded(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	key := keyOf(t, Config{Key: "k"}, nil)
	ctx, cancel := context.WithCancel(r.ctx)
	pub := r.publication(key, "new")
	send := pub.Send
	pub.Send = func(ctx context.Context, intent Intent) ([]byte, error) {
		cancel()
		return send(ctx, intent)
	}
	if _, err := NewPublications(r.pool).Publish(ctx, r.claim(r.emit(canvas)), pub); err != nil {
		t.Fatal(err)
	}
	r.wantRows(key)
}

// TestStaleRunSendsNothing (I5), and deletes nothing; what it had sent already is
// remembered beside what its successor has.
func TestStaleRunSendsNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	publications := NewPublications(r.pool)
	key := keyOf(t, Config{Key: "k"}, nil)
	r.published(key, "old")
	event := r.emit(canvas)
	stale := r.claim(event)
	run := r.claim(event)
	if _, err := publications.Publish(r.ctx, stale, r.publication(key, "stale")); !errors.Is(err, eventqueue.ErrLockLost) {
		t.Errorf("a stale run: %v", err)
	}
	r.wantTexts(key, "old")

	frozen := r.publication(key, "frozen")
	frozen.Send = func(context.Context, Intent) ([]byte, error) {
		pub := r.publication(key, "new")
		pub.Find = Unsearchable
		if _, err := publications.Publish(r.ctx, r.claim(event), pub); err != nil {
			t.Error(err)
		}
		return r.service.send(key, "", "frozen")
	}
	if _, err := publications.Publish(r.ctx, run, frozen); err != nil {
		t.Fatal(err)
	}
	r.wantTexts(key, "new", "frozen")
	r.wantRows(key)
	r.end(event)
	r.published(key, "last")
	r.wantTexts(key, "last")
}

// TestFrozenRunThatDiesLeavesNothingBehind: a run thaws, sends once more what its successor has sent meanwhile, and dies
// before it has recorded that. Both are deleted when their time has come; what a living run records has a time of its own.
func TestFrozenRunThatDiesLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	for name, dies := range map[string]bool{"dies": true, "lives": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			key := keyOf(t, Config{Key: "k"}, nil)
			event := r.emit(canvas)
			publications := NewPublications(r.pool)
			frozen := r.publication(key, "frozen")
			if !dies {
				frozen.TTL = TTL(time.Hour)
			}
			frozen.Send = func(_ context.Context, intent Intent) ([]byte, error) {
				if result, err := publications.Publish(r.ctx, r.claim(event), r.publication(key, "new")); err != nil || result.Repeat {
					t.Errorf("the successor: %+v, %v", result, err)
				}
				data, err := r.service.send(key, intent.Token, "frozen")
				if dies {
					return nil, errors.Join(errKilled, err)
				}
				return data, err
			}
			if _, err := publications.Publish(r.ctx, r.claim(event), frozen); dies != errors.Is(err, errKilled) {
				t.Fatal(err)
			}
			r.end(event)
			r.wantTexts(key, "new", "frozen")
			r.published(key, "next")
			if dies {
				r.wantTexts(key, "next")
			} else {
				r.wantTexts(key, "frozen", "next")
			}
			r.wantRows(key)
		})
	}
}

// TestEventPublishesOnce for each key, whatever happens to it, and whatever
// others do meanwhile, until it has ended.
func TestEventPublishesOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	publications := NewPublications(r.pool)
	key, other := keyOf(t, Config{Key: "k"}, nil), keyOf(t, Config{Key: "other"}, nil)
	event := r.emit(canvas)
	for i := range 3 {
		run := r.claim(event)
		for _, k := range []Key{key, other} {
			result, err := publications.Publish(r.ctx, run, r.publication(k, "once"))
			if err != nil || result.Repeat != (i > 0) || string(result.Data) != r.service.ids(k)[0] {
				t.Errorf("run %d: %+v, %v", i, result, err)
			}
		}
		r.published(key, "beside")
	}
	r.wantTexts(key, "once", "beside")
	r.wantTexts(other, "once")
	r.end(event)
	result, err := publications.Clean(r.ctx, r.claim(r.emit(canvas)), r.publication(key, ""))
	if err != nil || result.Cleaned != 2 {
		t.Errorf("Clean: %+v, %v", result, err)
	}
	r.wantTexts(key)
	r.wantTexts(other, "once")
}

// TestSendErrorIsReturnedAndRecorded is the caller's to see, and the next run knows of it.
func TestSendErrorIsReturnedAndRecorded(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	key := keyOf(t, Config{Key: "k"}, nil)
	event := r.emit(canvas)
	broken := errors.New("broken")
	var intents []Intent
	pub := r.publication(key, "new")
	pub.Find = Unsearchable
	pub.Send = func(_ context.Context, intent Intent) ([]byte, error) {
		intents = append(intents, intent)
		return nil, broken
	}
	for range 2 {
		if _, err := NewPublications(r.pool).Publish(r.ctx, r.claim(event), pub); !errors.Is(err, broken) || !strings.Contains(err.Error(), key.String()) {
			t.Errorf("Send failed: %v", err)
		}
	}
	first, second := intents[0], intents[1]
	if first.Repeat || !second.Repeat || first.Token != second.Token || len(first.Token) != 36 || first.Key != key || first.Begun.IsZero() {
		t.Errorf("the runs got %+v and %+v", first, second)
	}
	pub.Find = func(context.Context, Intent) ([]byte, bool, error) { return nil, false, broken }
	if _, err := NewPublications(r.pool).Publish(r.ctx, r.claim(event), pub); !errors.Is(err, broken) || len(intents) != 2 {
		t.Errorf("Find failed: %v; Send was called %d times", err, len(intents))
	}
	r.end(event)
	result, err := NewPublications(r.pool).Clean(r.ctx, r.claim(r.emit(canvas)), pub)
	if err != nil || len(result.Failed) != 1 || !errors.Is(result.Failed[0].Err, broken) || len(r.all(key)) != 1 {
		t.Errorf("Find failed in cleaning up: %+v, %v", result, err)
	}
}

// TestUnexpiredPublicationStays: what has not expired by the database's clock stays.
func TestUnexpiredPublicationStays(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	key := keyOf(t, Config{Key: "k"}, nil)
	for _, text := range []string{"monday", "tuesday"} {
		event := r.emit(canvas)
		pub := r.publication(key, text)
		pub.TTL = TTL(time.Hour)
		if _, err := NewPublications(r.pool).Publish(r.ctx, r.claim(event), pub); err != nil {
			t.Fatal(err)
		}
		r.end(event)
	}
	r.wantTexts(key, "monday", "tuesday")
	r.exec(`UPDATE cleanups SET expires_at = expires_at - interval '1 hour' WHERE data = 'm001'`)
	r.published(key, "wednesday")
	r.wantTexts(key, "tuesday", "wednesday")
	r.wantRows(key)
}

// TestRetriedEventHasItsIntentAgain: an operator has an event that failed retried, while
// another one is cleaning up its intent. It has the intent again, and what it
// sends then is found after a crash.
func TestRetriedEventHasItsIntentAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	key := keyOf(t, Config{Key: "k"}, nil)
	event := r.emit(canvas)
	pub := r.publication(key, "back")
	r.killedAt(3, event, pub) // after the intent
	r.end(event)
	newer := r.publication(key, "newer")
	newer.Find = func(context.Context, Intent) ([]byte, bool, error) {
		r.exec(`INSERT INTO events_v2 (id, canvas_id, module, name, modifier, value) VALUES ($1, $2, 'm', 'n', '_', '0')`, int64(event.ID), [16]byte(canvas))
		if taken, died := r.killedAt(5, event, pub); !died || len(r.service.texts(key)) != 1 {
			t.Errorf("it was to be killed after it had sent: %v", taken)
		}
		return nil, false, nil // it had looked before that
	}
	if _, err := NewPublications(r.pool).Publish(r.ctx, r.claim(r.emit(canvas)), newer); err != nil {
		t.Fatal(err)
	}
	if _, err := NewPublications(r.pool).Publish(r.ctx, r.claim(event), pub); err != nil {
		t.Fatal(err)
	}
	r.wantTexts(key, "back", "newer")
	r.wantRows(key)
}

// TestPublicationMayNeedNoData: a publication may need nothing to be deleted by.
func TestPublicationMayNeedNoData(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	key := keyOf(t, Config{Key: "k"}, nil)
	pub := r.publication(key, "")
	pub.Send = func(context.Context, Intent) ([]byte, error) { return nil, nil }
	event := r.emit(canvas)
	if _, err := NewPublications(r.pool).Publish(r.ctx, r.claim(event), pub); err != nil {
		t.Fatal(err)
	}
	if rows := r.all(key); len(rows) != 1 || rows[0].Open || rows[0].Data == nil {
		t.Errorf("remembered is %+v", rows)
	}
	r.end(event)
	if result := r.published(key, "new"); result.Cleaned != 1 || r.service.deletes[""] != 1 {
		t.Errorf("%+v, deleted: %v", result, r.service.deletes)
	}
}

// TestMistakesAreReported before anything is written or sent.
func TestMistakesAreReported(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	key := keyOf(t, Config{Key: "k"}, nil)
	foreign := key
	foreign.Canvas[0]++
	run := r.claim(r.emit(canvas))
	for want, spoil := range map[string]func(*Publication){
		"canvas is missing":                         func(p *Publication) { p.Key = Key{} },
		"the event is of canvas " + canvas.String(): func(p *Publication) { p.Key = foreign },
		"ttl is -1ns":                               func(p *Publication) { p.TTL = -1 },
		"Send is missing":                           func(p *Publication) { p.Send = nil },
		"Find is missing: set Unsearchable":         func(p *Publication) { p.Find = nil },
		"Delete is missing":                         func(p *Publication) { p.Delete = nil },
		"DeleteTimeout is -1ns":                     func(p *Publication) { p.DeleteTimeout = -1 },
	} {
		pub := r.publication(key, "new")
		spoil(&pub)
		if _, err := NewPublications(r.pool).Publish(r.ctx, run, pub); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want an error with %q", err, want)
		}
	}
	var rows int
	if err := r.pool.QueryRow(r.ctx, `SELECT count(*) FROM cleanups`).Scan(&rows); err != nil || rows != 0 || r.service.sent != 0 {
		t.Errorf("%d rows, %d messages, %v", rows, r.service.sent, err)
	}
}

// TestTransactionIsNoPool: it does not compile where a pool is asked for.
func TestTransactionIsNoPool(t *testing.T) {
	t.Parallel()
	for _, db := range []eventqueue.DB{&eventqueue.Tx{}, &pgxpool.Tx{}} {
		if _, is := db.(Pool); is {
			t.Errorf("a %T is taken for a pool", db)
		}
	}
}

// TestNothingIsSentWithoutPostgres nothing is sent, and the error says what could not be done.
func TestNothingIsSentWithoutPostgres(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	key := keyOf(t, Config{Key: "k"}, nil)
	run := r.claim(r.emit(canvas))
	r.pool.Close()
	if _, err := NewPublications(r.pool).Publish(r.ctx, run, r.publication(key, "new")); err == nil || r.service.sent != 0 {
		t.Errorf("%v, %d messages", err, r.service.sent)
	}
}

// TestSentPublicationIsRecordedThroughAnOutage: the database refuses to record it in each way that passes, and the handler's
// time is over meanwhile. It is sent once, and stays for its time.
func TestSentPublicationIsRecordedThroughAnOutage(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.exec(`CREATE SEQUENCE tries`)
	r.exec(`CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$
		DECLARE passing text := ('{25006,40001,53300,55P03,57P01,58030}'::text[])[nextval('tries')]; BEGIN
		IF passing IS NOT NULL THEN RAISE 'not now' USING ERRCODE = passing; END IF;
		RETURN NEW; END $$`)
	r.exec(`CREATE TRIGGER fail BEFORE UPDATE ON cleanups FOR EACH ROW WHEN (NEW.data IS NOT NULL) EXECUTE FUNCTION fail()`)
	key := keyOf(t, Config{Key: "k"}, nil)
	pub := r.publication(key, "new")
	ctx, cancel := context.WithCancel(r.ctx)
	defer cancel()
	send := pub.Send
	pub.Send = func(ctx context.Context, intent Intent) ([]byte, error) {
		defer cancel()
		return send(ctx, intent)
	}
	if _, err := NewPublications(r.pool).Publish(ctx, r.claim(r.emit(canvas)), pub); err != nil {
		t.Fatal(err)
	}
	var tries int
	if err := r.pool.QueryRow(r.ctx, `SELECT last_value FROM tries`).Scan(&tries); err != nil || tries != 7 || r.service.sent != 1 {
		t.Errorf("it was sent %d times, and recorded with %d tries, %v; want 1 and 7", r.service.sent, tries, err)
	}
	r.wantRows(key)
}

// TestLaterTryRenewsItsIntent, so that what it may send is not cleaned up as soon as it was sent.
func TestLaterTryRenewsItsIntent(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	key := keyOf(t, Config{Key: "k"}, nil)
	event, pub := r.emit(canvas), r.publication(key, "late")
	pub.TTL = TTL(time.Hour)
	send := pub.Send
	pub.Send = func(context.Context, Intent) ([]byte, error) { return nil, errors.New("not yet") }
	if _, err := NewPublications(r.pool).Publish(r.ctx, r.claim(event), pub); err == nil {
		t.Fatal("it was sent")
	}
	r.exec(`UPDATE cleanups SET expires_at = expires_at - interval '2 hours'`)
	pub.Send = func(ctx context.Context, intent Intent) ([]byte, error) {
		_, _ = send(ctx, intent)
		return nil, errors.New("the answer is lost")
	}
	if _, err := NewPublications(r.pool).Publish(r.ctx, r.claim(event), pub); err == nil {
		t.Fatal("the answer was not lost")
	}
	r.end(event) // as FAILED
	r.published(key, "next")
	r.wantTexts(key, "late", "next")
}
