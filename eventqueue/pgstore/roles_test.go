package pgstore_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/jackc/pgx/v5/stdlib" // for EmitSQL
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"golang.org/x/sync/errgroup"

	"eventsv2/access"
	"eventsv2/cleanup"
	"eventsv2/cronchecker"
	"eventsv2/eventqueue"
	"eventsv2/eventqueue/audit"
	"eventsv2/eventqueue/inspect"
	"eventsv2/eventqueue/locktimeout"
	"eventsv2/eventqueue/maintenance"
	"eventsv2/eventqueue/memnotify"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/worker"
	"eventsv2/grid"
	"eventsv2/internal/priority"
	"eventsv2/migrations"
	"eventsv2/test/testenv"
)

// roles are those that migrations.Roles makes.
var roles = []string{"emitter", "sql_emitter", "worker", "cron", "operator", "reader"}

// roleRig is a rig with the roles, and one that has no right at all.
type roleRig struct {
	*rig
	prefix string
}

func newRoleRig(t *testing.T) *roleRig {
	t.Helper()
	r := &roleRig{rig: newRig(t)}
	r.prefix = one[string](r.rig, `SELECT 'p' || oid || '_' FROM pg_database WHERE datname = current_database()`)
	t.Cleanup(func() { // what they may do goes with the database, they do not
		for _, role := range append(slices.Clone(roles), "nobody") {
			for _, sql := range []string{`DROP OWNED BY %s`, `DROP ROLE %s`} {
				if _, err := r.pool.Exec(context.Background(), fmt.Sprintf(sql, r.prefix+role)); err != nil {
					t.Error(err)
				}
			}
		}
	})
	r.grant()
	r.exec(`CREATE ROLE ` + r.prefix + `nobody`)
	return r
}

// grant runs the page of GRANTs.
func (r *roleRig) grant() {
	r.t.Helper()
	sql, err := migrations.Roles(r.prefix)
	if err != nil {
		r.t.Fatal(err)
	}
	conn, err := r.pool.Acquire(testenv.Context(r.t))
	if err != nil {
		r.t.Fatal(err)
	}
	defer conn.Release()
	if _, err := conn.Conn().PgConn().Exec(testenv.Context(r.t), sql).ReadAll(); err != nil {
		r.t.Fatal(err)
	}
}

// as is the rig of a role.
func (r *roleRig) as(role string) *rig {
	r.t.Helper()
	config := r.pool.Config()
	config.ConnConfig.RuntimeParams["role"] = r.prefix + role
	return r.on(pgxpool.NewWithConfig(testenv.Context(r.t), config))
}

// undelivered is a publisher that fails: the notifications stay pending.
type undelivered struct{}

func (undelivered) Publish(context.Context, []eventqueue.Notification) error {
	return errors.New("nobody hears")
}

// heedful is a queue on the rig's pool. What it logs is no denied right, which is looked at
// when the test ends.
func (r *rig) heedful(publisher eventqueue.Publisher) (*eventqueue.Queue, *zap.Logger) {
	r.t.Helper()
	core, logs := observer.New(zap.DebugLevel)
	r.t.Cleanup(func() {
		for _, entry := range logs.All() {
			if text := fmt.Sprint(entry.Message, entry.ContextMap()); strings.Contains(text, "42501") {
				r.t.Errorf("it was refused something: %s", text)
			}
		}
	})
	log := zap.New(core)
	queue, err := eventqueue.New(r.store, publisher, eventqueue.QueueConfig{Logger: log})
	if err != nil {
		r.t.Fatal(err)
	}
	return queue, log
}

// step is something that a role may do.
type step struct {
	name string
	do   func() error
}

func (r *rig) steps(role string, steps ...step) {
	r.t.Helper()
	for _, s := range steps {
		if err := s.do(); err != nil {
			r.t.Errorf("%s: %s: %v", role, s.name, err)
		}
	}
}

// only drops the results of a call but for the error.
func only(_ any, err error) error { return err }

func keyed(name string) eventqueue.NewEvent {
	e := event()
	e.Name, e.UniqueKey, e.OrderingKey, e.UniqueFor, e.Priority = name, name, "o", time.Hour, priority.High
	return e
}

// TestEmittersHaveTheRightsTheyNeed: all ways to emit, with the library also while nothing can be
// published.
func TestEmittersHaveTheRightsTheyNeed(t *testing.T) {
	t.Parallel()
	r := newRoleRig(t)
	r.grant() // repeating it is harmless
	ctx := testenv.Context(t)
	r.exec(`INSERT INTO concurrency_limits (canvas_id, group_key, max_running) VALUES ($1, 'canvas', 5)`, canvas)
	emitter := r.as("emitter")
	db, err := sql.Open("pgx", r.pool.Config().ConnString())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }() // nothing is in flight
	for name, publisher := range map[string]eventqueue.Publisher{"published": memnotify.New(memnotify.Config{}), "not published": undelivered{}} {
		queue, _ := emitter.heedful(publisher)
		emitter.steps("emitter, "+name,
			step{"emit", func() error { return only(queue.Emit(ctx, event())) }},
			step{"emit with keys", func() error { return only(queue.EmitMany(ctx, []eventqueue.NewEvent{keyed("greet"), event()})) }},
			step{"emit what was emitted", func() error { return only(queue.EmitUnique(ctx, keyed("greet"))) }},
			step{"unit of work", func() error {
				return queue.InTx(ctx, func(ctx context.Context, tx *eventqueue.Tx) error { return only(tx.Emit(ctx, event(), keyed("other"))) })
			}},
			step{"transaction", func() error {
				return pgx.BeginFunc(ctx, emitter.pool, func(tx pgx.Tx) error { return only(queue.EmitTx(ctx, tx, event(), keyed("third"))) })
			}},
			step{"transaction of database/sql", func() error {
				tx, err := db.BeginTx(ctx, nil)
				if err != nil {
					return err
				}
				defer func() { _ = tx.Rollback() }() // an error after the commit
				if _, err := tx.ExecContext(ctx, `SET LOCAL ROLE `+r.prefix+`emitter`); err != nil {
					return err
				}
				pending, err := queue.EmitSQL(ctx, tx, event(), keyed("fourth"))
				if err != nil {
					return err
				}
				if err := tx.Commit(); err != nil {
					return err
				}
				return pending.Notify(ctx)
			}})
		if err := queue.Close(ctx); err != nil {
			t.Error(err)
		}
	}
	sqlEmitter := r.as("sql_emitter")
	for _, sql := range []string{
		`SELECT events_prioritize(events_emit('` + canvas.String() + `', 'WORKER', 'greet', '4'), 'high')`,
		`INSERT INTO events_v2 (canvas_id, module, name, modifier, value) VALUES ('` + canvas.String() + `', 'WORKER', 'greet', '_', '5')`,
		`CREATE TEMP TABLE mine (canvas_id uuid); CREATE TRIGGER t AFTER INSERT ON mine FOR EACH ROW EXECUTE FUNCTION send_to_outbox('canvas_id', 'M');
		 INSERT INTO mine VALUES ('` + canvas.String() + `')`,
	} {
		if _, err := sqlEmitter.pool.Exec(ctx, sql, pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Errorf("%s: %v", sql, err)
		}
	}
	if n := one[int](r.rig, `SELECT count(*) FROM events_v2`); n != 9+5+3 {
		t.Errorf("%d events were emitted", n)
	}
}

// TestWorkerHasTheRightsItNeeds: every way of an event to its end, with limits, history, cleanup
// and grids; and the first of the programs to start sets the lock timeout.
func TestWorkerHasTheRightsItNeeds(t *testing.T) {
	t.Parallel()
	r := newRoleRig(t)
	ctx := testenv.Context(t)
	r.exec(`INSERT INTO concurrency_limits (canvas_id, group_key, max_running) VALUES ($1, 'canvas', 2)`, canvas)
	r.exec(`INSERT INTO rate_limits (canvas_id, per_day, mode) VALUES ($1, 1000, 'exact')`, canvas)
	workers := r.as("worker")
	notifier := memnotify.New(memnotify.Config{})
	queue, log := workers.heedful(notifier)
	handlers := eventqueue.NewHandlers()
	quick := eventqueue.Policy{Backoff: eventqueue.Exponential(time.Millisecond, time.Millisecond), MinSnooze: time.Millisecond}
	publications := cleanup.NewPublications(workers.pool)
	actions := grid.NewActions()
	err := grid.Register(actions, "count", func(context.Context, grid.Call[grid.None, grid.None, grid.None]) (int, error) { return 1, nil })
	if err != nil {
		t.Fatal(err)
	}
	counting, err := grid.Parse("count.yaml", []byte("grid: count\nactions:\n  one: {use: count}\n"), actions, nil)
	if err != nil {
		t.Fatal(err)
	}
	runner, err := grid.NewRunner(workers.pool, grid.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if err := runner.Register(handlers, counting); err != nil {
		t.Fatal(err)
	}
	for name, handler := range map[string]eventqueue.HandlerFunc{
		"fails": func(_ context.Context, run *eventqueue.Run) error {
			if run.Retries == 0 {
				return errors.New("once")
			}
			return eventqueue.Permanent(errors.New("for good"))
		},
		"snoozes": func(_ context.Context, run *eventqueue.Run) error {
			if run.Attempt == 1 {
				return eventqueue.Snooze(time.Millisecond)
			}
			return nil
		},
		"commits": func(ctx context.Context, run *eventqueue.Run) error {
			return run.CompleteTx(ctx, func(ctx context.Context, tx *eventqueue.Tx) error { return only(tx.Emit(ctx, keyed("greet"))) })
		},
		"greet": func(context.Context, *eventqueue.Run) error { return nil },
		"publishes": func(ctx context.Context, run *eventqueue.Run) error {
			key, err := cleanup.NewKey(run.Canvas, "chat", cleanup.Config{Key: "k"}, nil)
			if err != nil {
				return eventqueue.Permanent(err)
			}
			return only(publications.Publish(ctx, run, cleanup.Publication{
				Key:    key,
				Send:   func(_ context.Context, intent cleanup.Intent) ([]byte, error) { return []byte(intent.Token), nil },
				Find:   func(context.Context, cleanup.Intent) ([]byte, bool, error) { return nil, false, nil },
				Delete: func(context.Context, cleanup.Cleanup) error { return nil },
			}))
		},
	} {
		if err := handlers.Register(eventqueue.HandlerKey{Module: key.Module, Name: name, Modifier: "_"}, handler, quick); err != nil {
			t.Fatal(err)
		}
	}
	w, err := worker.New(queue, workers.store, notifier, handlers, worker.Config{RetainHistory: true, LockTimeout: 2 * time.Minute, Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	named := func(name string) eventqueue.NewEvent { e := event(); e.Name = name; return e }
	input, err := counting.NewInput(canvas, "one", nil)
	if err != nil {
		t.Fatal(err)
	}
	running, stop := context.WithCancel(ctx)
	var group errgroup.Group
	ended := make(chan struct{})
	group.Go(func() error { defer close(ended); return w.Run(running) })
	const count = 9
	if _, err := queue.EmitMany(ctx, []eventqueue.NewEvent{named("fails"), named("snoozes"), named("commits"), keyed("greet"), named("publishes"),
		named("publishes"), named("greet"), input, keyed("snoozes")}); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, "all events have ended", func() bool {
		return hasEnded(ended) || one[bool](r.rig, `SELECT count(*) >= $1 AND NOT EXISTS (SELECT FROM events_v2) FROM event_log`, count)
	})
	stop()
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
	if failed := one[string](r.rig, `SELECT coalesce(string_agg(name, ' '), '') FROM event_log WHERE status = 'FAILED'`); failed != "fails" {
		t.Errorf("FAILED are %q", failed)
	}
	if s, err := r.store.Settings(ctx); err != nil || !s.Set || s.LockTimeout != 2*time.Minute {
		t.Errorf("the settings are %+v, %v: nobody has set the lock timeout, so that another program could have another", s, err)
	}
}

func hasEnded(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// TestCronHasTheRightsItNeeds: it relays what is pending and what seems lost, emits slots, and
// deletes what is old.
func TestCronHasTheRightsItNeeds(t *testing.T) {
	t.Parallel()
	r := newRoleRig(t)
	ctx := testenv.Context(t)
	ids := r.insert(event(), event(), event())
	r.exec(`UPDATE events_v2 SET notified_at = NULL WHERE id = $1`, ids[0])
	r.exec(`UPDATE events_v2 SET notified_at = notified_at - interval '1 hour', delay_until = delay_until - interval '2 hours',
		enqueued_at = enqueued_at - interval '2 hours', locked_at = CASE id WHEN $2 THEN clock_timestamp() - interval '2 hours' END WHERE id = ANY ($1)`, ids[1:], ids[2])
	r.exec(`INSERT INTO event_log (id, canvas_id, module, name, modifier, value, status, retries, attempts, enqueued_at, created_at)
		VALUES (1000001, $1, 'M', 'n', '_', '1', 'COMPLETED', 0, 1, now() - interval '9 days', now() - interval '9 days')`, canvas)
	r.exec(`INSERT INTO cron_definitions (canvas_id, name, schedule, starts_at) VALUES ($1, 'nightly', 'every day', now() - interval '3 days')`, canvas)
	r.exec(`INSERT INTO scheduling_rules (rule_type, canvas_id, event_space, handler_name, until) VALUES ('pause', $1, 'M', 'n', now() - interval '1 s')`, canvas)
	cron := r.as("cron")
	notifier := memnotify.New(memnotify.Config{})
	queue, log := cron.heedful(notifier)
	relay, err := maintenance.NewRelay(cron.store, notifier, maintenance.RelayConfig{Interval: time.Second, Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	rules, err := operate.NewRules(cron.store, queue)
	if err != nil {
		t.Fatal(err)
	}
	checker, err := cronchecker.New(cronchecker.NewPostgres(cron.pool, queue), cronchecker.Config{Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	pruner, err := maintenance.NewPruner(cron.store, maintenance.PrunerConfig{CompletedFor: time.Hour, FailedFor: time.Hour, Interval: time.Second, Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	sweeper, err := grid.NewSweeper(cron.pool, grid.SweeperConfig{Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	if agreed, err := locktimeout.Agree(ctx, cron.store, 3*time.Minute); err != nil || agreed != 3*time.Minute {
		t.Fatal(agreed, err)
	}
	running, stop := context.WithCancel(ctx)
	var group errgroup.Group
	for _, run := range []func(context.Context) error{relay.Run, rules.RunExpiry, checker.Run, pruner.Run, sweeper.Run} {
		group.Go(func() error { return run(running) })
	}
	testenv.Eventually(t, "cron has done its work", func() bool {
		return one[bool](r.rig, `SELECT NOT EXISTS (SELECT FROM event_log) AND NOT EXISTS (SELECT FROM scheduling_rules) AND (SELECT count(*) FROM cron_records) = 1
			AND NOT EXISTS (SELECT FROM events_v2 WHERE notified_at IS NULL OR notified_at < clock_timestamp() - interval '30 minutes')`)
	})
	operations, err := operate.NewOperations(cron.store, queue, nil)
	if err != nil {
		t.Fatal(err)
	}
	owned, err := operate.NewRules(cron.store.As(audit.Actor{Name: "cron", Via: "cron"}), queue)
	if err != nil {
		t.Fatal(err)
	}
	r.exec(`INSERT INTO scheduling_rules (rule_type, canvas_id, event_space, handler_name, until) VALUES ('block', $1, 'M', 'n', now() - interval '1 s')`, canvas)
	cron.steps("cron",
		step{"prune operations", func() error { return only(operations.Prune(ctx, time.Hour, 10)) }},
		step{"prune the audit log", func() error { return only(audit.NewLog("", cron.pool).Prune(ctx, time.Hour, 10)) }},
		step{"lift as cron", func() error { _, _, err := owned.LiftExpired(ctx); return err }})
	stop()
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
	if s, err := r.store.Settings(ctx); err != nil || s.LockTimeout != 3*time.Minute || !s.Set {
		t.Errorf("the settings are %+v, %v", s, err)
	}
}

// TestOperatorAndReaderHaveTheRightsTheyNeed: what eventctl does, but for migrate.
func TestOperatorAndReaderHaveTheRightsTheyNeed(t *testing.T) {
	t.Parallel()
	r := newRoleRig(t)
	ctx := testenv.Context(t)
	id := r.insert(event())[0]
	r.exec(`INSERT INTO event_log (id, canvas_id, module, name, modifier, value, status, retries, attempts, last_error, enqueued_at)
		VALUES (1000001, $1, 'WORKER', 'greet', '_', '1', 'FAILED', 2, 3, 'x', now())`, canvas)
	all := inspect.Filter{}
	reads := func(r *rig) []step {
		return []step{
			{"list", func() error {
				_, _, err := inspect.New(r.store.Pool()).List(ctx, all, "", false, 0, 10)
				return err
			}},
			{"show", func() error { return only(inspect.New(r.store.Pool()).Show(ctx, id)) }},
			{"stats", func() error { return only(inspect.New(r.store.Pool()).Stats(ctx, all)) }},
			{"stuck", func() error {
				return only(inspect.New(r.store.Pool()).Stuck(ctx, all, inspect.StuckAfter{Unclaimed: time.Minute, Attempts: 3}, 0, 10))
			}},
			{"log", func() error {
				_, _, err := inspect.New(r.store.Pool()).Log(ctx, inspect.LogFilter{Filter: all}, true, inspect.LogPlace{}, 10)
				return err
			}},
			{"rules", func() error { return only(inspect.New(r.store.Pool()).Rules(ctx, all)) }},
			{"rate limits", func() error { return only(r.store.RateLimits(ctx, nil)) }},
			{"concurrency limits", func() error { return only(r.store.ConcurrencyLimits(ctx, canvas)) }},
			{"settings", func() error { return only(r.store.Settings(ctx)) }},
			{"runnable", func() error { return only(inspect.New(r.store.Pool()).Runnable(ctx, 10)) }},
		}
	}
	operator := r.as("operator")
	operator.steps("operator", reads(operator)...)
	queue, _ := operator.heedful(memnotify.New(memnotify.Config{}))
	requeuer, err := operate.NewChanger(operator.store, queue)
	if err != nil {
		t.Fatal(err)
	}
	rules, err := operate.NewRules(operator.store, queue)
	if err != nil {
		t.Fatal(err)
	}
	rates, err := operate.NewRateLimits(operator.store, queue)
	if err != nil {
		t.Fatal(err)
	}
	limits, err := operate.NewConcurrencyLimits(operator.store, queue)
	if err != nil {
		t.Fatal(err)
	}
	operator.steps("operator",
		step{"emit", func() error { return only(queue.Emit(ctx, keyed("greet"))) }},
		step{"cancel", func() error {
			cancelled, err := queue.Emit(ctx, keyed("cancelled"))
			if err != nil {
				return err
			}
			if results, _, err := operator.store.Remove(ctx, []eventqueue.EventID{cancelled}, &operate.Cancellation{}); err != nil || results[0].Result != operate.ChangeDone {
				return fmt.Errorf("%v, %w", results, err)
			}
			return nil
		}},
		step{"edit", func() error {
			if results, err := operator.store.Edit(ctx, operate.Edit{Value: []byte(`1`)}, []eventqueue.EventID{id}); err != nil || results[0].Result != operate.ChangeDone {
				return fmt.Errorf("%v, %w", results, err)
			}
			return nil
		}},
		step{"requeue", func() error {
			if results, err := requeuer.Requeue(ctx, id); err != nil || results[0].Result != operate.RequeueDone {
				return fmt.Errorf("%v, %w", results, err)
			}
			return nil
		}},
		step{"retry", func() error {
			if retried, err := operator.store.Retry(ctx, operate.Edit{}, []eventqueue.EventID{1000001}); err != nil || len(retried) != 1 {
				return fmt.Errorf("%v, %w", retried, err)
			}
			return nil
		}},
		step{"take pending", func() error { return only(operator.store.TakePending(ctx, []eventqueue.EventID{id, 1000001})) }},
		step{"wake the relay", func() error { return operator.store.WakeRelay(ctx) }},
		step{"pause", func() error { return only(rules.Add(ctx, operate.PauseRule, scope)) }},
		step{"unpause", func() error {
			_, _, err := rules.Lift(ctx, operate.PauseRule, scope)
			return err
		}},
		step{"block", func() error { return only(rules.Add(ctx, operate.BlockRule, scope)) }},
		step{"unblock", func() error {
			_, _, err := rules.Lift(ctx, operate.BlockRule, scope)
			return err
		}},
		step{"limit", func() error { return only(rates.Set(ctx, operate.RateLimit{Scope: scope, PerMinute: 5})) }},
		step{"unlimit", func() error {
			_, _, err := rates.Remove(ctx, scope)
			return err
		}},
		step{"concurrency limit", func() error { return limits.Set(ctx, operate.ConcurrencyLimit{Canvas: canvas, Max: 3}) }},
		step{"no concurrency limit", func() error { return only(limits.Remove(ctx, operate.ConcurrencyLimit{Canvas: canvas})) }},
		step{"prune", func() error { return only(operator.store.PruneLog(ctx, inspect.LogFailed, 0, 0, 10)) }},
		step{"name a canvas", func() error {
			return operator.store.NameCanvas(ctx, operate.CanvasName{Canvas: canvas, Name: "Acme Ltd"})
		}},
		step{"take the name away", func() error { return only(operator.store.UnnameCanvas(ctx, canvas)) }},
		step{"lock timeout", func() error { return operator.store.SetLockTimeout(ctx, 5*time.Minute) }},
		step{"finalize", func() error { return operator.store.FinalizeLockTimeout(ctx, false) }})
	operator.manages(queue)
	reader := r.as("reader")
	reader.steps("reader", reads(reader)...)
}

// manages makes tokens, and a change of many events that another program has left, with their rows of the audit log.
func (r *rig) manages(queue *eventqueue.Queue) {
	r.t.Helper()
	ctx, by := testenv.Context(r.t), audit.Actor{Name: "ada", Via: "test"}
	operations, err := operate.NewOperations(r.store, queue, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	tokens := access.NewTokens("", r.pool)
	var op operate.Operation
	r.steps("operator",
		step{"token", func() error {
			token, _, err := tokens.Create(ctx, by, access.NewToken{Name: "a", Grant: access.Grant{Verbs: access.Verbs()}})
			if err != nil {
				return err
			}
			return only(tokens.Revoke(ctx, by, token.ID))
		}},
		step{"count", func() (err error) {
			op, err = operations.Count(ctx, by, "a", operate.Change{Verb: operate.VerbCancel, Filter: operate.EventFilter{Canvas: &canvas}})
			return err
		}},
		step{"confirm", func() error { return only(operations.Confirm(ctx, by, "a", op.ID)) }},
		step{"leave", func() error { return only(r.pool.Exec(ctx, `UPDATE bulk_operations SET lease = gen_random_uuid()`)) }},
		step{"await", func() error {
			done, err := operations.Await(ctx, op.ID, func(operate.Operation) {}, nil)
			if err == nil && done.State != operate.OperationDone {
				err = fmt.Errorf("the operation is %s", done.State)
			}
			return err
		}},
		step{"stop", func() error { return only(operations.Stop(ctx, by, op.ID)) }},
		step{"list", func() error { return only(operations.List(ctx, nil, 10)) }},
		step{"audit log", func() error { return only(audit.NewLog("", r.pool).List(ctx, audit.Filter{}, 0, 10)) }})
}

// TestRolesLackTheRightsOfOthers: each is refused what is another's.
func TestRolesLackTheRightsOfOthers(t *testing.T) {
	t.Parallel()
	r := newRoleRig(t)
	ctx := testenv.Context(t)
	r.insert(event())
	const (
		read      = `SELECT value FROM events_v2`
		end       = `DELETE FROM events_v2`
		claim     = `UPDATE events_v2 SET locked_at = now()`
		forge     = `INSERT INTO events_v2 (canvas_id, module, name, modifier, value, attempts) VALUES (gen_random_uuid(), 'M', 'N', '_', '1', 5)`
		rule      = `INSERT INTO scheduling_rules (rule_type, canvas_id, event_space, handler_name) VALUES ('pause', gen_random_uuid(), 'M', 'N')`
		lift      = `DELETE FROM scheduling_rules`
		lockRules = `LOCK TABLE scheduling_rules IN EXCLUSIVE MODE`
		barrier   = `LOCK TABLE claim_barrier IN ROW SHARE MODE`
		group     = `INSERT INTO event_group_locks (number) VALUES (1)`
		limit     = `INSERT INTO rate_limits (canvas_id, per_day) VALUES (gen_random_uuid(), 1)`
		running   = `INSERT INTO concurrency_limits (canvas_id, group_key, max_running) VALUES (gen_random_uuid(), 'canvas', 1)`
		schedule  = `INSERT INTO cron_definitions (canvas_id, name, schedule) VALUES (gen_random_uuid(), 'n', '* * * * *')`
		slot      = `INSERT INTO cron_records (cron_id, slot, event_id) VALUES (1, now(), 1)`
		history   = `DELETE FROM event_log`
		emit      = `SELECT events_emit(gen_random_uuid(), 'M', 'N', '1')`
		takeKey   = `SELECT events_v2_emit_ending(gen_random_uuid(), 'M', 'N', '_', '1', '0', NULL, NULL, NULL, '', 'k', 0, 'until_end', NULL, NULL, NULL, 1)`
		turn      = `INSERT INTO event_groups (event_id, stage, canvas_id, group_key, admitted) VALUES (1, 1, gen_random_uuid(), 'o', true)`
		takeSlot  = `UPDATE event_groups SET admitted = true`
		leave     = `DELETE FROM event_groups`
		lines     = `SELECT group_key FROM event_groups`
		claimed   = `INSERT INTO events_v2 (canvas_id, module, name, modifier, value, locked_at) VALUES (gen_random_uuid(), 'M', 'N', '_', '1', now())`
		failed    = `INSERT INTO events_v2 (canvas_id, module, name, modifier, value, retries) VALUES (gen_random_uuid(), 'M', 'N', '_', '1', 9)`
		begun     = `INSERT INTO events_v2 (canvas_id, module, name, modifier, value, begun, claim_id) VALUES (gen_random_uuid(), 'M', 'N', '_', '1', true, 1)`
		later     = `UPDATE events_v2 SET delay_until = 'infinity'`
		rekey     = `UPDATE unique_keys SET key = 'other'`
		unkey     = `DELETE FROM unique_keys`
		listen    = `SELECT event_id FROM events_v2_notifications`
		silence   = `DELETE FROM events_v2_notifications`
		advanced  = `SELECT events_v2_advance('{}', '{}', '{}', NULL)`
		version   = `INSERT INTO eventsv2_schema_version (version_id, is_applied) VALUES (999, true)`
		settings  = `UPDATE events_v2_settings SET lock_timeout = '1 s'`
		settle    = `DELETE FROM events_v2_settings`
		cleaned   = `DELETE FROM cleanups`
		output    = `UPDATE grid_outputs SET output = NULL`
		schema    = `ALTER TABLE events_v2 ADD COLUMN mine text`
		names     = `SELECT name FROM canvas_names`
		naming    = `INSERT INTO canvas_names (canvas_id, name) VALUES (gen_random_uuid(), 'mine')`
	)
	own := map[string][]string{
		"emitter": {forge, takeKey, silence, turn, takeSlot, leave, lines, claimed, failed, begun, later, rekey, unkey,
			settings, settle, cleaned, output, read, end, claim, rule, lift, lockRules, barrier, group, limit, running, schedule, slot, history, advanced, version, schema, names, naming},
		"sql_emitter": {turn, takeKey, takeSlot, leave, lines, claimed, failed, begun, later, rekey, unkey, listen, silence, settings, settle, cleaned, output, read, end, claim, forge, rule, lift, lockRules, barrier, group, limit, running, schedule, slot, history, advanced, version, schema, names, naming},
		"worker":      {settings, settle, rule, lift, lockRules, limit, running, schedule, slot, history, version, schema, names, naming},
		"cron":        {silence, takeKey, settings, settle, cleaned, output, end, rule, barrier, limit, running, schedule, version, schema, names, naming},
		"operator":    {version, schema},
		"reader":      {settings, takeKey, settle, cleaned, output, end, claim, forge, rule, lift, lockRules, barrier, group, limit, running, schedule, slot, history, emit, advanced, version, schema, naming},
		"nobody":      {settings, takeKey, settle, cleaned, output, read, end, claim, forge, rule, lift, lockRules, barrier, group, limit, running, schedule, slot, history, emit, advanced, version, schema, names, naming},
	}
	if functions := one[string](r.rig, `SELECT coalesce(string_agg(proname, ' '), '') FROM pg_proc
		WHERE pronamespace = 'public'::regnamespace AND (proname LIKE 'events\_%' OR proname IN ('send_to_outbox', 'rate_limit_changed'))
		  AND has_function_privilege($1, oid, 'EXECUTE')`, r.prefix+"nobody"); functions != "" {
		t.Errorf("who may only connect may call %s", functions)
	}
	for role, refused := range own {
		pool := r.as(role).pool
		for _, statement := range refused {
			tx, err := pool.Begin(ctx)
			if err != nil {
				t.Fatal(err)
			}
			_, err = tx.Exec(ctx, statement)
			if err == nil || !strings.Contains(err.Error(), "SQLSTATE 42501") { // insufficient privilege
				t.Errorf("%s: %s\nwas not refused: %v", role, statement, err)
			}
			if err := tx.Rollback(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestQueueKnowsItsTables: send_to_outbox refuses them all, and roles get rights on
// them. A migration that adds a table adds it to events_v2_tables (CREATE OR REPLACE).
func TestQueueKnowsItsTables(t *testing.T) {
	t.Parallel()
	ctx := testenv.Context(t)
	pool := testenv.Pool(t)
	var known, there []string
	if err := pool.QueryRow(ctx, `SELECT (SELECT array_agg(t ORDER BY t) FROM unnest(events_v2_tables()) AS t),
		(SELECT array_agg(relname::text ORDER BY relname::text) FROM pg_class
		 WHERE relkind IN ('r', 'p') AND relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = 'events_v2'::regclass))`).Scan(&known, &there); err != nil {
		t.Fatal(err)
	}
	slices.Sort(known)
	slices.Sort(there)
	if !slices.Equal(known, there) {
		t.Fatalf("events_v2_tables() has %q and the schema %q: a migration that adds a table has to replace the function", known, there)
	}
	// One at a time: an event that got through would be refused by another trigger.
	for table, row := range map[string]string{
		"concurrency_limits": `VALUES (gen_random_uuid(), 'canvas', 1)`,
		"events_v2_settings": `(lock_timeout) VALUES ('1 minute')`,
		"event_group_locks":  `VALUES (1)`,
	} {
		if _, err := pool.Exec(ctx, fmt.Sprintf(`CREATE TRIGGER mine AFTER INSERT ON %s FOR EACH ROW
			EXECUTE FUNCTION send_to_outbox('00000000-0000-0000-0000-000000000001', 'M')`, table)); err != nil {
			t.Fatal(err)
		}
		if _, err := pool.Exec(ctx, fmt.Sprintf(`INSERT INTO %s %s`, table, row)); err == nil || !strings.Contains(err.Error(), "belongs to the queue") {
			t.Errorf("a row of %s went into the outbox: %v", table, err)
		}
	}
}

// TestRolesPageRevokesEarlierGrants: the page revokes grants of an earlier one, and others.
func TestRolesPageRevokesEarlierGrants(t *testing.T) {
	t.Parallel()
	r := newRoleRig(t)
	reader := r.as("reader")
	r.exec(`GRANT DELETE ON events_v2 TO ` + r.prefix + `reader`)
	if _, err := reader.pool.Exec(testenv.Context(t), `DELETE FROM events_v2`); err != nil {
		t.Fatal(err)
	}
	r.grant()
	if _, err := reader.pool.Exec(testenv.Context(t), `DELETE FROM events_v2`); err == nil {
		t.Error("the reader has kept a right that the page does not give it")
	}
}

// ordered inserts events of one ordering key.
func (r *rig) ordered(count int) []eventqueue.EventID {
	r.t.Helper()
	e := event()
	e.OrderingKey = "k"
	return r.insert(slices.Repeat([]eventqueue.NewEvent{e}, count)...)
}

// giveSlot has an event take its place in its line, in a transaction that stays open.
func giveSlot(ctx context.Context, tx pgx.Tx, id eventqueue.EventID) error {
	_, err := tx.Exec(ctx, `SELECT events_v2_advance('{}', '{}', $1, '1 minute')`, []int64{int64(id)})
	return err
}

// TestGroupIsLockedByItsRow: whoever gives turns in an ordering group waits for the other one who
// does, also when the row of the lock is there already.
func TestGroupIsLockedByItsRow(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx := testenv.Context(t)
	begin := func() pgx.Tx {
		tx, err := r.pool.Begin(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return tx
	}
	ids := r.ordered(3)
	before := begin()
	if err := errors.Join(giveSlot(ctx, before, ids[0]), before.Commit(ctx)); err != nil {
		t.Fatal(err)
	}
	first, second := begin(), begin()
	if err := giveSlot(ctx, first, ids[1]); err != nil {
		t.Fatal(err)
	}
	waited := make(chan error, 1)
	go func() { waited <- giveSlot(ctx, second, ids[2]) }()
	testenv.Eventually(t, "the second waits, or is through", func() bool { return r.waits(1) || len(waited) > 0 })
	if len(waited) > 0 {
		t.Errorf("two gave turns in a line at the same time: %v", <-waited)
		waited <- nil
	}
	if err := first.Rollback(ctx); err != nil {
		t.Error(err)
	}
	if err := <-waited; err != nil {
		t.Error(err)
	}
	if err := second.Rollback(ctx); err != nil {
		t.Error(err)
	}
}

// TestGroupIsHeldByOneTransaction: groups advance whatever advisory locks a login holds that
// may no more than connect.
func TestGroupIsHeldByOneTransaction(t *testing.T) {
	t.Parallel()
	r := newRoleRig(t)
	ctx := testenv.Context(t)
	tx, err := r.pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := giveSlot(ctx, tx, r.ordered(1)[0]); err != nil {
		t.Fatal(err)
	}
	if n := one[int](r.rig, `SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'
		AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`); n != 0 {
		t.Errorf("to give a turn takes %d advisory locks, which anybody can hold", n)
	}
	if err := tx.Rollback(ctx); err != nil {
		t.Error(err)
	}
}
