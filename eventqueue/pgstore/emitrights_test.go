package pgstore_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/pgnotify"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/test/testenv"
)

// emitInAllWays makes every statement that emitting needs, and returns the first error.
func (r *rig) emitInAllWays() error {
	ctx := testenv.Context(r.t)
	delayed := event()
	delayed.Delay = time.Hour
	ordered := event()
	ordered.OrderingKey = "o"
	var ids []eventqueue.EventID
	for _, e := range []eventqueue.NewEvent{event(), delayed, ordered, keyed("greet"), keyed("greet")} {
		inserted, err := r.store.Insert(ctx, nil, []eventqueue.NewEvent{e}, eventqueue.NotifyModeSelf)
		if err != nil {
			return err
		}
		ids = append(ids, inserted[0].ID)
	}
	if err := r.store.MarkPending(ctx, ids); err != nil {
		return err
	}
	if err := only(r.store.Unclaimed(ctx, []eventqueue.Unanswered{{Scope: eventqueue.Scope{Canvas: canvas, Module: "WORKER", Name: "greet"}, Oldest: time.Minute}})); err != nil {
		return err
	}
	return only(r.store.TakePending(ctx, ids))
}

// TestEmitterHasTheCheckedRights: of the rights on the tables of the queue that
// the role has, emitting needs each, and the check at the start names each that is gone.
// Notifications by Postgres have a check of their own, and what is counted needs none.
func TestEmitterHasTheCheckedRights(t *testing.T) {
	t.Parallel()
	r := newRoleRig(t)
	ctx := testenv.Context(t)
	emitter := r.as("emitter")
	check := func() error { return emitter.store.Check(ctx, pgstore.Emitting) }
	if err := errors.Join(emitter.emitInAllWays(), check()); err != nil {
		t.Fatal(err)
	}
	granted := one[[]string](r.rig, `
		SELECT array_agg(DISTINCT g.privilege || coalesce(' (' || g.attname || ')', '') || ' ON ' || g.relname)
		FROM (
			SELECT CASE c.relkind WHEN 'S' THEN 'SEQUENCE ' ELSE '' END || c.relname AS relname, NULL AS attname,
				(aclexplode(c.relacl)).privilege_type AS privilege, (aclexplode(c.relacl)).grantee
			FROM pg_class c WHERE c.relkind IN ('r', 'S')
			UNION ALL
			SELECT c.relname, a.attname, (aclexplode(a.attacl)).privilege_type, (aclexplode(a.attacl)).grantee
			FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid) AS g
		WHERE g.grantee = $1::regrole AND g.relname NOT IN ('events_v2_notifications', 'eventsv2_schema_version', 'event_minutes')
		  -- These only programs of the version before need.
		  AND g.relname NOT IN ('unique_keys', 'unique_expiries') AND (g.relname, g.privilege, coalesce(g.attname, '')) NOT IN (('events_v2', 'INSERT', 'unique_seconds'), ('events_v2', 'INSERT', 'id'))`, r.prefix+"emitter")
	if len(granted) < 20 {
		t.Fatalf("the emitter has no more rights than %q", granted)
	}
	for _, right := range granted {
		r.exec(`REVOKE ` + right + ` FROM ` + r.prefix + `emitter`)
		if err := emitter.emitInAllWays(); err == nil {
			t.Errorf("emitting does not need %s", right)
		}
		kind, table, _ := strings.Cut(right, " ON ")
		kind, _, _ = strings.Cut(kind, " ")
		var unfit *eventqueue.UnfitError
		if err := check(); !errors.As(err, &unfit) || !strings.Contains(err.Error(), kind) || !strings.Contains(err.Error(), " ON "+table+":") {
			t.Errorf("the check without %s = %v", right, err)
		}
		r.exec(`GRANT ` + right + ` TO ` + r.prefix + `emitter`)
	}
}

// TestPublisherMayOnlyPublish: with NOTIFIER=postgres, emitters and cron may add notifications
// and find out whether there are any; they take none away and read nothing of them.
func TestPublisherMayOnlyPublish(t *testing.T) {
	t.Parallel()
	r := newRoleRig(t)
	ctx := testenv.Context(t)
	for _, role := range []string{"emitter", "cron"} {
		publisher := r.as(role)
		n, err := pgnotify.New(publisher.pool, pgnotify.Config{PublishOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		publish := func() error {
			return n.Publish(ctx, []eventqueue.Notification{{Event: 7, Canvas: canvas}, {Event: 7, Canvas: canvas}})
		}
		for range 2 { // the second finds the notification there
			if err := errors.Join(n.Check(ctx), publish()); err != nil {
				t.Errorf("the %s cannot publish: %v", role, err)
			}
		}
		if waiting, err := pgnotify.Waiting(ctx, publisher.pool, ""); err != nil || !waiting {
			t.Errorf("the %s sees notifications = %t, %v", role, waiting, err)
		}
		for _, sql := range []string{`DELETE FROM events_v2_notifications`, `UPDATE events_v2_notifications SET event_id = 8`, `TRUNCATE events_v2_notifications`,
			`SELECT canvas_id FROM events_v2_notifications`} {
			if _, err := publisher.pool.Exec(ctx, sql); err == nil || !strings.Contains(err.Error(), "permission denied") {
				t.Errorf("%s as the %s = %v", sql, role, err)
			}
		}
		r.exec(`REVOKE INSERT (traceparent) ON events_v2_notifications FROM ` + r.prefix + role)
		const grant = "GRANT INSERT (event_id, canvas_id, traceparent) ON events_v2_notifications TO"
		if err := n.Check(ctx); err == nil || !strings.Contains(err.Error(), grant) {
			t.Errorf("the check of the %s without a right = %v", role, err)
		}
		if err := publish(); err == nil {
			t.Errorf("the %s publishes without the right that the check asks for", role)
		}
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	}
}
