package worker_test

import (
	"errors"
	"math"
	"math/big"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/memnotify"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/eventqueue/worker"
	"eventsv2/test/rig"
	"eventsv2/test/testenv"
)

// FuzzRecheck holds the wait after a claim that did not lead to a run to its
// bounds, whatever the facts: never 0 (no hot loop), never shorter than the event
// has to wait anyway, and never longer than a notifier can hold.
func FuzzRecheck(f *testing.F) {
	for _, d := range rig.EdgesOfDelays() {
		f.Add(uint8(0), d, uint8(0), int64(0), true, int64(0), int64(0))
		f.Add(uint8(0), -d, uint8(0), int64(0), false, d, int64(1))
		f.Add(uint8(0), int64(-1), uint8(1), d, true, int64(0), int64(math.MaxInt64))
	}
	f.Add(uint8(1), int64(1), uint8(2), int64(1), true, int64(1), int64(1))
	store := pgstore.New(testenv.Pool(f))
	notifier := memnotify.New(memnotify.Config{})
	queue, err := eventqueue.New(store, notifier, eventqueue.QueueConfig{})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, rule uint8, delay int64, lock uint8, remaining int64, known bool, unknownDelay, jitter int64) {
		facts := machine.Facts{
			Present: true, Rule: []machine.Rule{machine.NoRule, machine.PauseRule, machine.BlockRule}[rule%3], Delay: time.Duration(delay), Lock: machine.Lock(lock % 3),
			LockRemaining: time.Duration(remaining), HandlerKnown: known,
		}
		if facts.Lock == machine.LockHeld && facts.LockRemaining <= 0 {
			facts.Lock = machine.LockStale // that is what held means
		}
		w, err := worker.New(queue, store, notifier, eventqueue.NewHandlers(), worker.Config{
			Concurrency: 1, UnknownDelay: time.Duration(uint64(unknownDelay) % uint64(time.Minute)),
			Jitter: func(d time.Duration) time.Duration { return time.Duration(uint64(jitter) % uint64(d)) },
		})
		if err != nil {
			t.Fatal(err)
		}
		state, label := machine.DecideClaim(facts)
		if state != machine.Queue {
			return
		}
		rechecks := worker.RechecksOf(w)
		wait := rechecks.Recheck(label, facts)
		checkWait(t, label, facts, wait)
		if label != machine.HandlerUnknown {
			checkRequeue(t, label, wait)
			return
		}
		for range 16 { // after a few tries an old event is left to the relay (I11)
			wait = rechecks.Recheck(label, facts)
		}
		if facts.Delay < -time.Hour && wait <= eventqueue.MaxRequeue {
			t.Fatalf("after many tries of %+v: a wait of %s, want the relay to notify", facts, wait)
		}
	})
}

// checkWait holds a wait against what the event has to wait for anyway. What is
// beyond MaxRequeue makes no difference: the relay notifies then.
func checkWait(t *testing.T, label machine.Label, facts machine.Facts, wait time.Duration) {
	t.Helper()
	least := time.Duration(1)
	switch label {
	case machine.DelayNotYet:
		least = min(facts.Delay, eventqueue.MaxRequeue+1)
	case machine.IsLocked:
		least = min(facts.LockRemaining, eventqueue.MaxRequeue+1)
	default:
	}
	if wait < least {
		t.Fatalf("after %s of %+v: a wait of %d ns, want at least %d", label, facts, wait, least)
	}
}

// checkRequeue holds what the notifier is asked for against the wait.
func checkRequeue(t *testing.T, label machine.Label, wait time.Duration) {
	t.Helper()
	after, requeue := worker.RequeueAfter(worker.Outcome{Label: label, To: machine.Queue, Delay: wait})
	switch {
	case requeue != (wait <= eventqueue.MaxRequeue):
		t.Fatalf("a wait of %s: requeued is %t, want the relay to wait for what is beyond %s", wait, requeue, eventqueue.MaxRequeue)
	case !requeue:
	case after < wait || after > eventqueue.MaxRequeue || after < 0 || after-wait >= time.Second:
		t.Fatalf("a wait of %d ns is requeued after %d ns: want it rounded up, to at most %s", wait, after, eventqueue.MaxRequeue)
	case wait > 0 && after < 100*time.Millisecond:
		t.Fatalf("a wait of %d ns is requeued after %d ns: want no hot loop", wait, after)
	}
}

// FuzzWaits holds the waits that handlers and policies ask for to their bounds,
// whatever they ask for.
func FuzzWaits(f *testing.F) {
	for _, d := range rig.EdgesOfDelays() {
		f.Add(d, int64(time.Second), int64(3))
		f.Add(int64(time.Second), d, d)
		f.Add(-d, d, -d)
	}
	boom := errors.New("boom")
	f.Fuzz(func(t *testing.T, a, b, n int64) {
		snoozed := worker.EndOf(0, eventqueue.Policy{}, eventqueue.Snooze(time.Duration(a)))
		if want := max(bounded(a), time.Second); snoozed.Label != machine.Snoozed || snoozed.Delay != want {
			t.Fatalf("Snooze(%d) ends with %s and a wait of %d, want %d", a, snoozed.Label, snoozed.Delay, want)
		}
		checkRequeue(t, snoozed.Label, snoozed.Delay)

		many := math.MaxInt32
		retries := int(uint64(n) % math.MaxInt32)
		policy := eventqueue.Policy{MaxRetries: &many, Backoff: func(n int) time.Duration {
			if n != retries+1 {
				t.Fatalf("the policy is asked for the wait before retry %d, want %d", n, retries+1)
			}
			return time.Duration(a)
		}}
		again := worker.EndOf(retries, policy, boom)
		if want := bounded(a); again.Label != machine.RetryAllowed || again.Delay != want {
			t.Fatalf("a policy that wants %d ends with %s and a wait of %d, want %d", a, again.Label, again.Delay, want)
		}
		policy.Backoff = eventqueue.Exponential(time.Duration(a), time.Duration(b))
		again = worker.EndOf(retries, policy, boom)
		least, most := exponential(a, b, int64(retries)+1)
		if wait := big.NewInt(int64(again.Delay)); again.Delay < 1 || wait.Cmp(least) < 0 || wait.Cmp(most) > 0 {
			t.Fatalf("Exponential(%d, %d) before retry %d waits %d, want %s to %s", a, b, retries+1, again.Delay, least, most)
		}
		policy.Backoff = func(int) time.Duration { panic("no idea") }
		if again = worker.EndOf(retries, policy, boom); again.Delay < 8*time.Second || again.Delay > 72*time.Minute {
			t.Fatalf("a policy that panics waits %s before retry %d, want the default", again.Delay, retries+1)
		}
	})
}

// bounded is what becomes of a wait that somebody asks for.
func bounded(d int64) time.Duration { return min(max(time.Duration(d), 0), eventqueue.MaxWait) }

// exponential is what Exponential promises, computed without overflow: base
// doubled for each further retry, at most limit, a fifth to either side.
func exponential(base, limit, n int64) (least, most *big.Int) {
	base = min(max(base, 1), int64(eventqueue.MaxWait))
	limit = min(max(limit, base), int64(eventqueue.MaxWait))
	wait := new(big.Int).Lsh(big.NewInt(base), uint(min(n-1, 100)))
	if top := big.NewInt(limit); wait.Cmp(top) > 0 {
		wait = top
	}
	fifth := new(big.Int).Div(wait, big.NewInt(5))
	most = new(big.Int).Add(wait, fifth)
	if longest := big.NewInt(int64(eventqueue.MaxWait)); most.Cmp(longest) > 0 {
		most = longest
	}
	return new(big.Int).Sub(wait, fifth), most
}
