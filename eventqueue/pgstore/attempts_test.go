package pgstore_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/worker"
	"eventsv2/test/testenv"
)

// claimOf claims an event under the number of a worker, whatever its delay.
func (r *rig) claimOf(number eventqueue.WorkerNumber, id eventqueue.EventID) worker.Claim {
	r.t.Helper()
	r.exec(`UPDATE events_v2 SET delay_until = clock_timestamp() WHERE id = $1`, id)
	found, err := r.store.Claim(testenv.Context(r.t), []eventqueue.EventID{id}, handlers, number.Claim(5))
	if err != nil || len(found) != 1 || !found[0].Facts.Claimed {
		r.t.Fatalf("event %s could not be claimed: %+v, %v", id, found, err)
	}
	return worker.Claim{Event: id, Attempt: found[0].Attempt, ID: found[0].ClaimID}
}

// attempts are the recorded attempts of an event in a few words.
func (r *rig) attempts(id eventqueue.EventID) string {
	r.t.Helper()
	return one[string](r, `SELECT coalesce(string_agg(format('%s by %s: %s', attempt, worker, left(error, 20)), ', ' ORDER BY attempt), '')
		FROM event_attempts WHERE event_id = $1`, id)
}

// TestFailedAttemptsAreRecorded, with the runs that are tried again and with the last one, and
// nothing else is: neither what succeeds nor what is put off or given back.
func TestFailedAttemptsAreRecorded(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, c := range []struct {
		label machine.Label
		want  string
	}{
		{machine.RetryAllowed, "1 by 41: no luck"},
		{machine.RetryTooMany, "1 by 41: no luck"},
		{machine.FailedForGood, "1 by 41: no luck"},
		{machine.Snoozed, ""}, {machine.Released, ""}, {machine.OverLimit, ""}, {machine.ExecutesToCompletion, ""},
	} {
		id := r.insert(event())[0]
		before := r.now()
		claim := r.claimOf(41, id)
		end := worker.Completion{Claim: claim, Label: c.label, LastError: "no luck", Duration: time.Minute}
		if _, err := r.store.Complete(testenv.Context(t), nil, []worker.Completion{end}, true); err != nil {
			t.Fatal(err)
		}
		if got := r.attempts(id); got != c.want {
			t.Errorf("%s left the attempts %q, want %q", c.label, got, c.want)
		}
		if c.want != "" && !one[bool](r, `SELECT duration = '1 minute' AND started_at BETWEEN $2 AND $3 AND canvas_id = $4 FROM event_attempts WHERE event_id = $1`,
			id, before.Add(-time.Minute), r.now().Add(-time.Minute), [16]byte(canvas)) {
			t.Errorf("%s left another start, duration or canvas than its own", c.label)
		}
	}
}

// TestNewestAttemptsAreRetained: twenty of an event, and all of its neighbour in the same statement.
func TestNewestAttemptsAreRetained(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ids := r.insert(event(), event())
	for i := range worker.MaxAttempts + 5 {
		claims := []worker.Claim{r.claimOf(41, ids[0])}
		if i == 0 || i == worker.MaxAttempts+4 {
			claims = append(claims, r.claimOf(42, ids[1]))
		}
		var ends []worker.Completion
		for _, claim := range claims {
			ends = append(ends, worker.Completion{Claim: claim, Label: machine.RetryAllowed, LastError: fmt.Sprint("failure ", i)})
		}
		written, err := r.store.Complete(testenv.Context(t), nil, ends, false)
		if err != nil || len(written.Done) != len(ends) {
			t.Fatalf("%+v, %v", written, err)
		}
	}
	got := one[string](r, `SELECT format('%s from %s to %s', count(*), min(attempt), max(attempt)) FROM event_attempts WHERE event_id = $1`, ids[0])
	if got != "20 from 6 to 25" {
		t.Errorf("after 25 failures the event has the attempts %s", got)
	}
	if got := r.attempts(ids[1]); got != "1 by 42: failure 0, 2 by 42: failure 24" {
		t.Errorf("its neighbour has the attempts %q", got)
	}
}

// TestOnlyTheHolderRecordsAnAttempt (I5): what is refused by the fence leaves nothing.
func TestOnlyTheHolderRecordsAnAttempt(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id := r.insert(event())[0]
	old := r.claimOf(41, id)
	r.expire(id)
	claim := r.claimOf(42, id)
	if r.complete(old, machine.RetryAllowed, 0, false) || r.complete(old, machine.RetryTooMany, 0, false) {
		t.Error("a stale claim was written")
	}
	if got := r.attempts(id); got != "" {
		t.Errorf("a stale claim left the attempts %q", got)
	}
	if !r.complete(claim, machine.RetryAllowed, 0, false) || r.attempts(id) != "2 by 42: no luck" {
		t.Errorf("the holder left the attempts %q", r.attempts(id))
	}
}

// TestAttemptsSurviveARetryByHand: a FAILED event comes back with its attempts, and its next ones
// have other numbers.
func TestAttemptsSurviveARetryByHand(t *testing.T) {
	t.Parallel()
	ctx, r := testenv.Context(t), newRig(t)
	id := r.insert(event())[0]
	r.complete(r.claimOf(41, id), machine.RetryAllowed, 0, false)
	r.complete(r.claimOf(41, id), machine.RetryTooMany, 0, false)
	deleted, _, err := r.store.DeleteAttempts(ctx, 0, 100)
	if err != nil || deleted != 0 {
		t.Fatalf("%d attempts of a failed event were deleted, %v", deleted, err)
	}
	retried, err := r.store.Retry(ctx, operate.Edit{}, []eventqueue.EventID{id})
	if err != nil || len(retried) != 1 || retried[0].Result != operate.RetryMoved {
		t.Fatalf("%+v, %v", retried, err)
	}
	r.complete(r.claimOf(42, id), machine.RetryAllowed, 0, false)
	if got := r.attempts(id); got != "1 by 41: no luck, 2 by 41: no luck, 3 by 42: no luck" {
		t.Errorf("after the retry the event has the attempts %q", got)
	}
}

// TestAttemptThatACrashRepeatsIsReplaced: with synchronous_commit = off a number may come twice.
func TestAttemptThatACrashRepeatsIsReplaced(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id := r.insert(event())[0]
	r.exec(`INSERT INTO event_attempts (event_id, attempt, canvas_id, started_at, duration, error)
		VALUES ($1, 1, gen_random_uuid(), now(), '0', 'lost')`, id)
	if !r.complete(r.claimOf(41, id), machine.RetryAllowed, 0, false) || r.attempts(id) != "1 by 41: no luck" {
		t.Errorf("the attempts are %q", r.attempts(id))
	}
}

// TestAttemptsJoinTheCallersTransaction are committed with it, and not without.
func TestAttemptsJoinTheCallersTransaction(t *testing.T) {
	t.Parallel()
	ctx, r := testenv.Context(t), newRig(t)
	id := r.insert(event())[0]
	end := worker.Completion{Claim: r.claimOf(41, id), Label: machine.RetryAllowed, LastError: "no luck"}
	rolledBack := fmt.Errorf("rolled back")
	for _, want := range []error{rolledBack, nil} {
		err := r.store.InTx(ctx, func(ctx context.Context, db eventqueue.DB) error {
			written, err := r.store.Complete(ctx, db, []worker.Completion{end}, false)
			if err != nil || len(written.Done) != 1 {
				t.Errorf("%+v, %v", written, err)
			}
			return want
		})
		if got := r.attempts(id); err != want || want != nil && got != "" || want == nil && got != "1 by 41: no luck" { //nolint:errorlint // it is the very error
			t.Errorf("%v, and then the attempts are %q", err, got)
		}
	}
}

// TestLongErrorIsRecordedInFull: 8 KiB, to which a worker cuts a longer one.
func TestLongErrorIsRecordedInFull(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id := r.insert(event())[0]
	end := worker.Completion{Claim: r.claimOf(41, id), Label: machine.RetryAllowed, LastError: strings.Repeat("é", worker.MaxLastErrorBytes/2)}
	if _, err := r.store.Complete(testenv.Context(t), nil, []worker.Completion{end}, false); err != nil {
		t.Fatal(err)
	}
	if got := one[string](r, `SELECT error FROM event_attempts WHERE event_id = $1`, id); got != end.LastError {
		t.Errorf("of an error of %d bytes %d were recorded", len(end.LastError), len(got))
	}
}

// TestSuccessWritesNoAttempt (I12): neither a row nor a dead one, and no page of the table.
func TestSuccessWritesNoAttempt(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r = r.withConns(1)
	for _, retain := range []bool{false, true} {
		ids := r.insert(event(), event())
		for _, id := range ids {
			if !r.complete(r.claim(id), machine.ExecutesToCompletion, 0, retain) {
				t.Fatal("an end was refused")
			}
		}
	}
	r.flush()
	if written := one[int](r, `SELECT n_tup_ins + n_tup_upd + n_tup_del FROM pg_stat_user_tables WHERE relname = 'event_attempts'`); written != 0 {
		t.Errorf("events that succeeded have written %d rows of attempts", written)
	}
	if size := one[int](r, `SELECT pg_relation_size('event_attempts')`); size != 0 {
		t.Errorf("event_attempts has %d bytes", size)
	}
}
