package worker_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/worker"
	"eventsv2/test/rig"
	"eventsv2/test/testenv"
)

// TestScenariosMatchTheirScripts runs the scripts in testdata/scenarios on a real database and
// the in-memory notifier, in virtual time. go test -run TestScenariosMatchTheirScripts -rewrite writes their
// outputs anew. The commands are explained in testdata/scenarios/README.md.
func TestScenariosMatchTheirScripts(t *testing.T) {
	t.Parallel()
	scripts, err := filepath.Glob("testdata/scenarios/*.txt")
	if err != nil || len(scripts) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	seen := &seenArrows{labels: map[string]bool{}}
	t.Run("scripts", func(t *testing.T) {
		for _, path := range scripts {
			t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
				t.Parallel()
				rig.Virtual(t, func(t *testing.T, r *rig.Rig) {
					datadriven.RunTest(t, path, newScenario(r).command)
					seen.add(r.Outcomes.List())
				})
			})
		}
	})
	// Arrows that a script cannot show: the database has to fail (see
	// faults_test.go).
	elsewhere := []string{"RetryCheck|Exception", "Delete|Exception"}
	for _, a := range machine.Arrows() {
		name := string(a.From) + "|" + string(a.Label)
		if !seen.labels[name] && !slices.Contains(elsewhere, name) && !t.Failed() {
			t.Errorf("no scenario follows %s → %s → %s", a.From, a.Label, a.To)
		}
	}
}

// seenArrows collects which arrows the scenarios have followed.
type seenArrows struct {
	mu     sync.Mutex
	labels map[string]bool
}

func (s *seenArrows) add(all []worker.Outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, out := range all {
		for _, arrow := range path(out) {
			s.labels[arrow] = true
		}
	}
}

// path is the way through the diagram that an outcome implies.
func path(out worker.Outcome) []string {
	look := []string{"Queue|Receive notification", "EventLoad|EventPresent", "PauseCheck|PauseNone", "DelayCheck|DelayNone"}
	switch out.Label {
	case machine.EventMissing:
		return []string{"EventLoad|EventMissing"}
	case machine.Paused, machine.Blocked:
		return append(look[:2], "PauseCheck|"+string(out.Label))
	case machine.DelayNotYet:
		return append(look[:3], "DelayCheck|DelayNotYet")
	case machine.IsLocked:
		return append(look, "LockCheck|IsLocked")
	case machine.LockClaimFailed, machine.HandlerUnknown, machine.BreakerOpen, machine.NotItsTurn:
		return append(look, "LockClaim|"+string(out.Label))
	case machine.Claimed:
		lock := "LockCheck|LockNone"
		if out.TakenOver {
			lock = "LockCheck|LockExpired"
		}
		return append(look, lock, "LockClaim|Claimed")
	case machine.RetryAllowed, machine.RetryTooMany:
		return []string{"Process|Exception", "RetryCheck|" + string(out.Label)}
	case machine.LockLost:
		switch {
		case out.Err == nil:
			return []string{"Delete|LockLost"}
		case strings.Contains(out.Err.Error(), "snoozed"):
			return []string{"Process|LockLost"}
		default:
			return []string{"RetryCheck|LockLost"}
		}
	case machine.ExecutesToCompletion:
		return []string{"Process|ExecutesToCompletion", "Delete|"}
	default:
		return []string{"Process|" + string(out.Label)}
	}
}

// scenario is the state of one script.
type scenario struct {
	*rig.Rig
	rules  *operate.Rules
	limits *operate.RateLimits
	stop   func()
	// writer is the transaction of "writing".
	writer pgx.Tx

	mu    sync.Mutex
	ids   map[string]eventqueue.EventID
	names map[eventqueue.EventID]string
	plans map[string][]string // what the handler does next, by event name
	let   map[string]chan struct{}
	shown map[string]int // outcomes of an event that were printed
}

func newScenario(r *rig.Rig) *scenario {
	s := &scenario{Rig: r, ids: map[string]eventqueue.EventID{}, names: map[eventqueue.EventID]string{},
		plans: map[string][]string{}, let: map[string]chan struct{}{}, shown: map[string]int{}}
	var err error
	if s.rules, err = operate.NewRules(s.Store, s.Queue); err != nil {
		r.T.Fatal(err)
	}
	if s.limits, err = operate.NewRateLimits(s.Store, s.Queue); err != nil {
		r.T.Fatal(err)
	}
	policy := rig.Quick()
	policy.BreakerAfter = 2
	s.Handle(s.run, policy)
	return s
}

// run is the handler: it follows the event's plan.
func (s *scenario) run(ctx context.Context, run *eventqueue.Run) error {
	s.mu.Lock()
	name := s.names[run.ID]
	do := "ok"
	if plan := s.plans[name]; len(plan) > 0 {
		do, s.plans[name] = plan[0], plan[1:]
	}
	let := s.let[name]
	s.mu.Unlock()

	verb, rest, _ := strings.Cut(do, " ")
	switch verb {
	case "ok":
		return nil
	case "fail":
		return errors.New(rest)
	case "away":
		return eventqueue.Unavailable(errors.New(rest), 0)
	case "permanent":
		return eventqueue.Permanent(errors.New(rest))
	case "panic":
		panic(rest)
	case "snooze":
		d, err := time.ParseDuration(rest)
		if err != nil {
			return eventqueue.Permanent(err)
		}
		return eventqueue.Snooze(d)
	case "hang":
		<-ctx.Done()
		return context.Cause(ctx)
	case "hold": // until "let", then ok or what follows
		<-let
		switch rest {
		case "":
			return nil
		case "snooze":
			return eventqueue.Snooze(0)
		default:
			return errors.New(rest)
		}
	default:
		return eventqueue.Permanent(fmt.Errorf("the script has no verb %q", verb))
	}
}

func (s *scenario) command(t *testing.T, d *datadriven.TestData) string {
	rig.Pass(time.Millisecond) // what follows is later than what was before
	ctx := testenv.Context(t)
	switch d.Cmd {
	case "worker":
		s.stop = s.Start(worker.Config{GracePeriod: -1})
		return ""
	case "stop":
		s.stop()
		return ""
	case "emit":
		return s.emitCommand(t, d)
	case "ring":
		id := s.id(d.CmdArgs[0].Key)
		if err := s.Notifier.Publish(ctx, []eventqueue.Notification{{Event: id, Canvas: rig.Canvas}}); err != nil {
			return err.Error()
		}
		return ""
	case "let":
		s.mu.Lock()
		close(s.let[d.CmdArgs[0].Key])
		s.mu.Unlock()
		return ""
	case "await":
		return s.await(t, d.CmdArgs[0].Key, machine.Label(d.CmdArgs[1].Key))
	case "pause", "block":
		added, err := s.rules.Add(ctx, operate.RuleType(d.Cmd), rig.Scope)
		return fmt.Sprintf("added=%t err=%v\n", added, err)
	case "unpause", "unblock":
		removed, notified, err := s.rules.Lift(ctx, operate.RuleType(strings.TrimPrefix(d.Cmd, "un")), rig.Scope)
		return fmt.Sprintf("removed=%t notified=%d err=%v\n", removed, notified, err)
	case "limit":
		_, err := s.limits.Set(ctx, operate.RateLimit{Scope: rig.Scope, PerDay: 1})
		return fmt.Sprintf("err=%v\n", err)
	case "unlimit":
		removed, notified, err := s.limits.Remove(ctx, rig.Scope)
		return fmt.Sprintf("removed=%t notified=%d err=%v\n", removed, notified, err)
	case "cancel":
		got, err := s.Changer().Cancel(ctx, operate.Cancellation{}, s.id(d.CmdArgs[0].Key))
		if err != nil {
			return err.Error()
		}
		return string(got[0].Result) + "\n"
	case "writing":
		var err error
		if s.writer, err = s.Pool.Begin(ctx); err != nil {
			t.Fatal(err)
		}
		if _, err := s.writer.Exec(ctx, `SELECT FROM events_v2 WHERE id = $1 FOR UPDATE`, s.id(d.CmdArgs[0].Key)); err != nil {
			t.Fatal(err)
		}
		return ""
	case "written":
		if err := s.writer.Rollback(ctx); err != nil {
			t.Fatal(err)
		}
		return ""
	case "sql":
		s.Exec(d.Input)
		return ""
	case "rows":
		return s.rows(t, `SELECT id, concat_ws(' ', 'retries=' || retries, 'attempts=' || attempts,
			CASE WHEN locked_at IS NOT NULL THEN 'locked' END, CASE WHEN notified_at IS NULL THEN 'owed' END,
			CASE WHEN delay_until > clock_timestamp() THEN 'delayed' END) FROM events_v2 ORDER BY id`)
	case "log":
		return s.rows(t, `SELECT id, concat_ws(' ', status, 'value=' || value, 'retries=' || retries, 'error=' || last_error)
			FROM event_log ORDER BY id`)
	default:
		t.Fatalf("the script has no command %q", d.Cmd)
		return ""
	}
}

// emitCommand emits the named events. The plan of each is the input, one run a
// line; after the plan a handler completes.
func (s *scenario) emitCommand(t *testing.T, d *datadriven.TestData) string {
	event := s.Event("1")
	if d.HasArg("value") {
		var value string
		d.ScanArgs(t, "value", &value)
		event.Value = []byte(value)
	}
	if d.HasArg("unknown") {
		event.Name = "nobody"
	}
	if d.HasArg("key") {
		d.ScanArgs(t, "key", &event.OrderingKey)
	}
	if d.HasArg("delay") {
		var delay string
		d.ScanArgs(t, "delay", &delay)
		wait, err := time.ParseDuration(delay)
		if err != nil {
			t.Fatal(err)
		}
		event.Delay = wait
	}
	name := d.CmdArgs[0].Key
	s.mu.Lock()
	defer s.mu.Unlock()
	id := s.Emit(event)[0]
	s.ids[name], s.names[id] = id, name
	s.let[name] = make(chan struct{})
	if d.Input != "" {
		s.plans[name] = strings.Split(d.Input, "\n")
	}
	return ""
}

func (s *scenario) id(name string) eventqueue.EventID {
	s.mu.Lock()
	defer s.mu.Unlock()
	if id, ok := s.ids[name]; ok {
		return id
	}
	return 999_999_999 // an event that never was
}

// await waits for an outcome of an event and returns all that were not returned
// before, up to that one.
func (s *scenario) await(t *testing.T, name string, label machine.Label) string {
	ctx := testenv.Context(t)
	id := s.id(name)
	for {
		s.Outcomes.Mu.Lock()
		changed := s.Outcomes.Changed
		s.Outcomes.Mu.Unlock()
		var b strings.Builder
		n := 0
		for _, out := range s.Outcomes.List() {
			if out.Event != id {
				continue
			}
			n++
			if n <= s.shown[name] {
				continue
			}
			b.WriteString(line(name, out))
			if out.Label == label {
				s.shown[name] = n
				return b.String()
			}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			t.Fatalf("waited for %s of %s; so far: %s", label, name, b.String())
		}
	}
}

func line(name string, out worker.Outcome) string {
	text := fmt.Sprintf("%s: %s → %s", name, out.Label, out.To)
	if out.TakenOver {
		text += ", taken over"
	}
	if out.Err != nil {
		text += ", " + strings.ReplaceAll(out.Err.Error(), "\n", "; ")
	}
	return text + "\n"
}

func (s *scenario) rows(t *testing.T, sql string) string {
	rows, err := s.Pool.Query(testenv.Context(t), sql)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for rows.Next() {
		var id eventqueue.EventID
		var text string
		if err := rows.Scan(&id, &text); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s: %s\n", s.names[id], text)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	if b.Len() == 0 {
		return "none\n"
	}
	return b.String()
}
