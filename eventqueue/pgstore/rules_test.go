package pgstore_test

import (
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/migrations"
	"eventsv2/test/testenv"
)

// TestPauseWaitsForClaimsUnderWay (I7) holds a claim open, as a slow commit
// would.
func TestPauseWaitsForClaimsUnderWay(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx := testenv.Context(t)
	id := r.insert(event())[0]
	tx, err := r.pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	found, err := pgstore.ClaimIn(ctx, tx, []eventqueue.EventID{id}, handlers, 0)
	if err != nil || !found[0].Facts.Claimed {
		t.Fatalf("claim: %+v, %v", found, err)
	}
	added := make(chan error, 1)
	go func() {
		_, err := r.store.AddRule(ctx, operate.RuleOf(operate.PauseRule, scope))
		added <- err
	}()
	testenv.Eventually(t, "AddRule has returned or waits", func() bool { return len(added) == 1 || r.waits(1) })
	if len(added) == 1 {
		t.Error("AddRule returned while a claim could still commit")
	}
	if err := tx.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	if err := <-added; err != nil {
		t.Error(err)
	}
}

// TestLiftingARuleTouchesNoOther (I7, I16): of another type, canvas or handler.
func TestLiftingARuleTouchesNoOther(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx := testenv.Context(t)
	elsewhere, other := scope, scope
	elsewhere.Canvas, other.Name = another, "other"
	add := func(rule operate.RuleType, s eventqueue.Scope) {
		t.Helper()
		if added, err := r.store.AddRule(ctx, operate.RuleOf(rule, s)); err != nil || !added {
			t.Fatalf("add: %t, %v", added, err)
		}
	}
	add(operate.PauseRule, scope)
	add(operate.BlockRule, scope)
	add(operate.PauseRule, elsewhere)
	add(operate.PauseRule, other)
	lift := func(rule operate.RuleType, removed, last bool) {
		t.Helper()
		lifted, err := r.store.LiftRule(ctx, operate.LiftOf(rule, scope))
		if err != nil || lifted.Removed != removed || lifted.Last != last {
			t.Errorf("lifting %s: %+v, %v; want removed=%t and last=%t", rule, lifted, err, removed, last)
		}
	}
	lift(operate.PauseRule, true, false)
	lift(operate.PauseRule, false, false)
	lift(operate.BlockRule, true, true)
	if n := one[int](r, `SELECT count(*) FROM scheduling_rules`); n != 2 {
		t.Errorf("%d of the two rules of others are left", n)
	}
}

// atCommit has the database run a statement at the end of every transaction that
// removed a rule.
func (r *rig) atCommit(statement string) {
	r.t.Helper()
	r.exec(`CREATE FUNCTION at_commit() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN ` + statement + `; RETURN NULL; END $$`)
	r.exec(`CREATE CONSTRAINT TRIGGER at_commit AFTER DELETE ON scheduling_rules DEFERRABLE INITIALLY DEFERRED
		FOR EACH ROW EXECUTE FUNCTION at_commit()`)
}

// TestLiftTimeFollowsItsCommit: an event that was looked at before the
// commit was found paused and its notification is gone, so it must be notified
// again, whatever notified_at says.
func TestLiftTimeFollowsItsCommit(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx := testenv.Context(t)
	if _, err := r.store.AddRule(ctx, operate.RuleOf(operate.PauseRule, scope)); err != nil {
		t.Fatal(err)
	}
	r.exec(`CREATE TABLE committing (at timestamptz)`)
	r.atCommit(`INSERT INTO committing VALUES (clock_timestamp())`)
	lifted, err := r.store.LiftRule(ctx, operate.LiftOf(operate.PauseRule, scope))
	if err != nil {
		t.Fatal(err)
	}
	if at := one[time.Time](r, `SELECT at FROM committing`); !lifted.At.After(at) {
		t.Errorf("lifted at %s, but the commit began at %s", lifted.At, at)
	}
}

// TestOneOfTwoConcurrentLiftsIsTheLast (I13): both are held up at their commit,
// if they get that far, so that neither sees what the other has done. If nobody
// lifted the last rule, nobody would notify the waiting events.
func TestOneOfTwoConcurrentLiftsIsTheLast(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx := testenv.Context(t)
	rules := []operate.RuleType{operate.PauseRule, operate.BlockRule}
	for _, rule := range rules {
		if _, err := r.store.AddRule(ctx, operate.RuleOf(rule, scope)); err != nil {
			t.Fatal(err)
		}
	}
	r.atCommit(`PERFORM pg_advisory_xact_lock(1)`)
	gate, err := r.pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := gate.Exec(ctx, `SELECT pg_advisory_xact_lock(1)`); err != nil {
		t.Fatal(err)
	}
	lasts := make(chan bool, len(rules))
	for _, rule := range rules {
		go func() {
			lifted, err := r.store.LiftRule(ctx, operate.LiftOf(rule, scope))
			if err != nil {
				t.Error(err)
			}
			lasts <- lifted.Last
		}()
	}
	testenv.Eventually(t, "both are held up", func() bool { return r.waits(len(rules)) })
	if err := gate.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	if first, second := <-lasts, <-lasts; first == second {
		t.Errorf("both lifts say last=%t", first)
	}
}

// TestWaitingEventsAreTakenOnceAfterALift (I11, I14, I16): what was not notified since the lift,
// page by page.
func TestWaitingEventsAreTakenOnceAfterALift(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx := testenv.Context(t)
	elsewhere, far := event(), event()
	elsewhere.Canvas, far.Delay = another, time.Hour
	r.insert(elsewhere, far)
	ids := r.insert(event(), event(), event(), event(), event())
	r.claim(ids[0])
	since := r.now()
	take := func() (n int) {
		t.Helper()
		for after := eventqueue.EventID(0); ; {
			waiting, next, err := r.store.TakeWaiting(ctx, operate.Waiting{Scope: scope, Since: since, After: after}, 2)
			if err != nil {
				t.Fatal(err)
			}
			for _, w := range waiting {
				if w.Canvas != canvas {
					t.Errorf("an event of %s was taken", w.Canvas)
				}
			}
			n += len(waiting)
			if next == 0 {
				return n
			}
			after = next
		}
	}
	if n := take(); n != 5 {
		t.Errorf("%d events were taken, want the 5 that wait or run", n)
	}
	if n := take(); n != 0 {
		t.Errorf("%d events were taken twice", n)
	}
}

// TestRampCatchesUpTwoSecondsAtMost (I11): after an hour without cron, and no time is lost that its steps do not
// divide by.
func TestRampCatchesUpTwoSecondsAtMost(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx := testenv.Context(t)
	ids := r.insert(event(), event(), event(), event(), event(), event(), event())
	if _, err := r.store.AddRule(ctx, operate.RuleOf(operate.PauseRule, scope)); err != nil {
		t.Fatal(err)
	}
	lift := operate.LiftOf(operate.PauseRule, scope)
	lift.Rate = 2
	if _, err := r.store.LiftRule(ctx, lift); err != nil {
		t.Fatal(err)
	}
	r.exec(`UPDATE scheduling_rules SET released_at = clock_timestamp() - interval '1 hour'`)
	released, err := r.store.Release(ctx, lift.Type, lift.RuleScope)
	if err != nil || !released.GoesOn || released.UpTo != ids[3] {
		t.Errorf("after an hour %+v was released, %v; want up to event %s", released, err, ids[3])
	}
	if early := one[bool](r, `SELECT released_at > clock_timestamp() OR released_at < clock_timestamp() - interval '1 minute' FROM scheduling_rules`); early {
		t.Error("the rate is counted from another time")
	}
	r.exec(`UPDATE scheduling_rules SET rate = 1, released_at = clock_timestamp() - interval '1.9 s'`)
	before := one[time.Time](r, `SELECT released_at FROM scheduling_rules`)
	if released, err = r.store.Release(ctx, lift.Type, lift.RuleScope); err != nil || released.After != ids[3] {
		t.Errorf("%+v was released, %v", released, err)
	}
	if whole := one[bool](r, `SELECT (extract(epoch FROM released_at - $1) * rate)::numeric % 1 = 0 OR released_at > $1 + interval '2 s' FROM scheduling_rules`, before); !whole {
		t.Error("a part of a second is lost")
	}
}

// TestRampReplacesTheEndOfARule: what was to end by itself is lifted by and by, and not all at once at that time.
func TestRampReplacesTheEndOfARule(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx := testenv.Context(t)
	rule := operate.RuleOf(operate.PauseRule, scope)
	rule.Until = r.now().Add(time.Hour)
	if _, err := r.store.AddRule(ctx, rule); err != nil {
		t.Fatal(err)
	}
	lift := operate.LiftOf(operate.PauseRule, scope)
	lift.Rate = 1
	if lifted, err := r.store.LiftRule(ctx, lift); err != nil || !lifted.Removed {
		t.Fatalf("%+v, %v", lifted, err)
	}
	rules, err := r.store.RulesToLift(ctx, time.Minute)
	if err != nil || len(rules) != 1 || !rules[0].Until.IsZero() || rules[0].Rate != 1 {
		t.Errorf("to be lifted are %+v, %v", rules, err)
	}
}

const badRulesSQL = `
INSERT INTO scheduling_rules (rule_type, canvas_id, event_space, handler_name, created_at, until, rate, released_to, released_at) VALUES
    ('pause', $1, 'M', 'ended', 'infinity', '-infinity', NULL, NULL, NULL),
    ('block', $1, 'M', $2, '-infinity', 'infinity', 1000, 0, 'infinity'),
    ('pause', $1, 'M', $2, '200000-01-01', NULL, 1000, 0, '-infinity')`

// TestRuleOfAnyYearFailsNothing (I15): what SQL can write, and Go cannot read, keeps no rule from being read or lifted,
// itself included.
func TestRuleOfAnyYearFailsNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx := testenv.Context(t)
	handler := scope
	handler.Module = "M"
	for _, column := range []string{"created_at", "released_at"} {
		for _, bad := range []string{"infinity", "-infinity", "200000-01-01"} {
			if _, err := r.pool.Exec(ctx, `INSERT INTO scheduling_rules (rule_type, canvas_id, event_space, handler_name, rate, released_to, released_at)
				VALUES ('pause', $1, 'M', 'n', 1, 0, now())`, [16]byte(canvas)); err != nil {
				t.Fatal(err)
			}
			if _, err := r.pool.Exec(ctx, `UPDATE scheduling_rules SET `+column+` = $1::text::timestamptz`, bad); err == nil {
				t.Errorf("%s %s is not refused", column, bad)
			}
			r.exec(`DELETE FROM scheduling_rules`)
		}
	}
	r.exec(`ALTER TABLE scheduling_rules DROP CONSTRAINT scheduling_rules_readable`)
	r.exec(badRulesSQL, [16]byte(canvas), handler.Name)
	rules, err := r.store.RulesToLift(ctx, time.Minute)
	if err != nil || len(rules) != 3 {
		t.Fatalf("to be lifted are %+v, %v", rules, err)
	}
	for _, rule := range rules[1:] {
		if released, err := r.store.Release(ctx, rule.Type, rule.RuleScope); err != nil || !released.Removed {
			t.Errorf("%s: %+v, %v", rule.Type, released, err)
		}
	}
}

// TestReleaseReplacesARefusedTime: the row is updated, and so it is checked.
func TestReleaseReplacesARefusedTime(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx := testenv.Context(t)
	r.exec(`ALTER TABLE scheduling_rules DROP CONSTRAINT scheduling_rules_readable`)
	r.exec(`INSERT INTO scheduling_rules (rule_type, canvas_id, event_space, handler_name, rate, released_to, released_at)
		VALUES ('pause', $1, $2, $3, 1, 0, 'infinity')`, [16]byte(canvas), scope.Module, scope.Name)
	r.exec(`ALTER TABLE scheduling_rules ADD CONSTRAINT finite CHECK (isfinite(released_at)) NOT VALID`)
	ids := r.insert(event(), event(), event())
	released, err := r.store.Release(ctx, operate.PauseRule, operate.RuleScope{Scope: scope})
	if err != nil || !released.GoesOn || released.UpTo != ids[0] {
		t.Errorf("%+v was released, %v; want what a second allows", released, err)
	}
}

// TestInvalidRulesAreCorrected when the table begins to refuse them.
func TestInvalidRulesAreCorrected(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx, databaseURL := testenv.Context(t), r.pool.Config().ConnString()
	if _, err := migrations.Down(ctx, databaseURL, int(migrations.Latest()-1)); err != nil {
		t.Fatal(err)
	}
	r.exec(badRulesSQL, [16]byte(canvas), "n")
	if _, err := migrations.Up(ctx, databaseURL); err != nil {
		t.Fatal(err)
	}
	if n := one[int](r, `SELECT count(*) FROM scheduling_rules
		WHERE isfinite(created_at) AND created_at < '3000-01-01' AND (rate IS NULL OR released_at BETWEEN '2000-01-01' AND clock_timestamp())`); n != 3 {
		t.Errorf("%d of three rules can be read", n)
	}
	if until := one[string](r, `SELECT until::text FROM scheduling_rules WHERE rule_type = 'block'`); until != "infinity" {
		t.Errorf("the end of a rule without one is %s", until)
	}
}

// TestRuleWithAnEndWakesWhoLiftsIt: adding one, and lifting one at a rate, since between such rules nobody looks for them.
func TestRuleWithAnEndWakesWhoLiftsIt(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx := testenv.Context(t)
	go func() { _ = r.store.Listen(ctx, func() {}) }() // it ends with the test
	woken := func(by string) {
		t.Helper()
		select {
		case <-r.store.Woken():
		case <-ctx.Done():
			t.Fatalf("%s wakes nobody", by)
		}
	}
	woken("the beginning")
	rule := operate.RuleOf(operate.PauseRule, scope)
	rule.Until = time.Now().Add(time.Hour)
	if added, err := r.store.AddRule(ctx, rule); err != nil || !added {
		t.Fatalf("%t, %v", added, err)
	}
	woken("a rule with an end")
	lift := operate.LiftOf(operate.PauseRule, scope)
	lift.Rate = 1
	if lifted, err := r.store.LiftRule(ctx, lift); err != nil || !lifted.Removed {
		t.Fatalf("%+v, %v", lifted, err)
	}
	woken("a rate")
}
