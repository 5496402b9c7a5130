package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/internal/backoff"
	"eventsv2/test/programs"
)

// versionScenarios have programs of two versions at work at once.
func versionScenarios() []scenario {
	return []scenario{
		{"two-versions", "the version before works through the migrations, beside this version, and after it", 60 * time.Second, twoVersions},
	}
}

// earlier is the directory of the binaries of the version before.
const earlier = "earlier/"

// earlierPage has the commit of the version before, as earlierCommit finds it.
const earlierPage = "docs/upgrading.md"

var earlierCommit = regexp.MustCompile("The version before is the commit `([0-9a-f]{40})`")

// buildEarlier builds the programs of the version before.
func (s *stage) buildEarlier(ctx context.Context) error {
	root, err := programs.Dir(ctx)
	if err != nil {
		return err
	}
	page, err := os.ReadFile(filepath.Join(root, earlierPage))
	if err != nil {
		return err
	}
	commit := earlierCommit.FindSubmatch(page)
	if commit == nil {
		return fmt.Errorf("%s does not name the commit of the version before: it needs a sentence such as %q", earlierPage, earlierCommit)
	}
	dir := filepath.Join(s.dir, binaries, earlier)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	return programs.BuildAt(ctx, string(commit[1]), dir, map[string]string{programs.Worker: "cmd/worker", programs.Cron: "cmd/cron", programs.Ctl: "cmd/eventctl",
		programEmbed: "test/attack/faults/embed"})
}

// versions is a deployment of which each program is of one of two versions.
type versions struct {
	*rig
	settings map[string]string
	app      *program // of the version before, which emits
	keyed    atomic.Int64
}

func (v *versions) before(ctx context.Context, binary, name string) *program {
	return v.ready(ctx, v.start(earlier+binary, name, v.settings))
}

func (v *versions) now(ctx context.Context, binary, name string) *program {
	return v.ready(ctx, v.start(binary, name, v.settings))
}

// mustCtl runs eventctl of some version.
func (v *versions) mustCtl(ctx context.Context, binary string, args ...string) {
	if text, status := v.ctlOf(ctx, binary, args...); status != 0 {
		v.fatalf("%s %s: %s", binary, strings.Join(args, " "), text)
	}
}

// waitingSQL fills the tables as a queue in use is filled. The events are due when the scenario is long over.
const waitingSQL = `
INSERT INTO events_v2 (canvas_id, module, name, modifier, value, delay_until)
SELECT $1, 'WORKER', 'work', '_', '{}', clock_timestamp() + interval '1 day' FROM generate_series(1, 50000)`

const historySQL = `
INSERT INTO event_log (id, canvas_id, module, name, modifier, value, retries, attempts, enqueued_at, status)
SELECT -id, canvas_id, module, name, modifier, value, 0, 1, enqueued_at, 'COMPLETED' FROM events_v2`

// unreadableRuleSQL adds a rule with a time that no program can read. The migration corrects it, and refuses the next one.
const unreadableRuleSQL = `
INSERT INTO scheduling_rules (rule_type, canvas_id, event_space, handler_name, created_at) VALUES ('pause', $1, 'WORKER', 'unreadable', 'infinity')`

// ruledCanvas is that of the rule, which has no events.
const ruledCanvas byte = 41

// bothMax is how many events of a canvas the workers of both versions may run at once.
const bothMax = 4

// The cron programs of both versions emit slots of so many hours for so many definitions.
const (
	bothDefinitions = 3
	bothMissed      = 1
)

// flakyRuns is how often the handler "flaky" is called for each of its events.
const flakyRuns = 2

// twoVersions has the version before work while its database is migrated, then beside this version, both of
// which are killed, then without it, and with it again.
func twoVersions(ctx context.Context, r *rig) {
	if err := r.stage.buildEarlier(ctx); errors.Is(err, programs.ErrNoHistory) {
		r.skipf("%v (fetch the whole history to have it played)", err)
	} else {
		r.must(err)
	}
	r.must(r.openDatabase(ctx, r.name+"-migrated", empty))
	v := &versions{rig: r, settings: impatient("3s")}
	v.mustCtl(ctx, earlier+programs.Ctl, "migrate", "up")
	r.must(audit(ctx, r.databaseURL))
	r.exempt = []string{"I9", "I15"} // which the version before does not keep: it has no suspects
	r.exec(ctx, waitingSQL, [16]byte(canvas(plainCanvas)))
	r.exec(ctx, historySQL)
	r.exec(ctx, unreadableRuleSQL, [16]byte(canvas(ruledCanvas)))
	r.handlers = append(r.handlers, handler("flaky"))
	r.target.behave("work", takes(20*time.Millisecond))
	r.target.behave("flaky", func(_ context.Context, run visit) answer {
		if run.nth < flakyRuns {
			return answer{status: http.StatusInternalServerError}
		}
		return completed
	})

	cron := v.before(ctx, programs.Cron, "cron-before")
	workers := []*program{v.before(ctx, programs.Worker, "before-1"), v.before(ctx, programs.Worker, "before-2")}
	v.settings["FAULTS_ROLE"] = "emit" // of the program that embeds the library
	v.app = v.before(ctx, programEmbed, "app-before")
	v.mustCtl(ctx, earlier+programs.Ctl, "limit", "concurrency", "set", "--canvas", canvas(limitedCanvas).String(), "--max", strconv.Itoa(bothMax))
	v.migrate(ctx)

	crons := []*program{v.now(ctx, programs.Cron, "cron-now")}
	news := []*program{v.now(ctx, programs.Worker, "now-1"), v.now(ctx, programs.Worker, "now-2")}
	r.must(r.openEmitter(ctx))
	r.exec(ctx, insertDueSQL, [16]byte(canvas(0)), bothDefinitions, bothMissed)
	v.together(ctx, func() { // kill -9 of both, and one of them comes back as the other
		r.kill(workers[0])
		r.kill(news[0])
		workers[0] = v.before(ctx, programs.Worker, "before-3")
		news[0] = v.now(ctx, programs.Worker, "now-3")
	})
	v.pauses(ctx)
	if !r.eventually(ctx, 10*startLimit, func() bool {
		return r.number(ctx, `SELECT count(*) FROM cron_records`) >= bothDefinitions*bothMissed*60
	}) {
		r.failf("cron programs of two versions have not emitted all slots that are due")
	}

	v.stop(append(news, crons...))
	v.emitVia(ctx, v.app, batch{label: "back", n: 100, canvas: plainCanvas})
	r.emit(ctx, batch{label: "back", n: 100, canvas: groupCanvas, key: func(i int) string { return strconv.Itoa(i % 10) }})
	r.awaitDone(ctx, "back", startLimit)
	v.stop(append(workers, cron))
	v.now(ctx, programs.Cron, "cron-later")
	v.now(ctx, programs.Worker, "now-4")
	v.emitVia(ctx, v.app, batch{label: "forward", n: 100, canvas: plainCanvas})
	r.awaitDone(ctx, "forward", startLimit)
	for _, label := range []string{"alone", "keyed", "sql", "lines", "limited", "flaky", "unique"} {
		r.awaitDone(ctx, label, startLimit)
	}
	r.figure("slots=%d", r.eachSlotOnce(ctx, bothDefinitions, bothMissed))
	r.inOrder("keyed")
	r.inOrder("lines")
	r.atMost("limited", bothMax)
	for _, e := range r.of("flaky") {
		if n := len(r.target.of(e.id)); n < flakyRuns {
			r.failf("event %s ran %d times, want %d", e.id, n, flakyRuns)
		}
	}
}

// migrate has the version before work while its database is migrated, and afterwards without any other.
func (v *versions) migrate(ctx context.Context) {
	tooEarly := v.start(programs.Worker, "too-early", v.settings)
	select {
	case <-tooEarly.Exited:
	case <-ctx.Done():
		v.fatalf("a worker of this version waits for the schema of the version before to change")
	}
	if tooEarly.Status != 1 || !strings.Contains(tooEarly.LogText(), "eventctl migrate up") {
		v.failf("a worker of this version on the schema of the version before ended with %d: %s", tooEarly.Status, tooEarly.LastWords())
	}
	stops := []func() time.Duration{
		v.steadily(func() {
			v.emitVia(ctx, v.app, batch{label: "keyed", n: 1, canvas: groupCanvas, key: func(int) string { return "k" + strconv.FormatInt(v.keyed.Add(1)%5, 10) }})
		}),
		v.steadily(func() { v.emitSQL(ctx, batch{label: "sql", n: 1, canvas: plainCanvas}) }),
		v.steadily(func() { v.emitVia(ctx, v.app, batch{label: "limited", n: 1, canvas: limitedCanvas}) }),
	}
	if !v.eventually(ctx, startLimit, func() bool { return v.done("sql") >= 50 }) {
		v.fatalf("%d events have ended, want 50", v.done("sql"))
	}
	began := time.Now()
	reader := v.readRules(ctx, tableHeldFor)
	v.mustCtl(ctx, programs.Ctl, "migrate", "up")
	v.figure("migrated=%.1fs", time.Since(began).Seconds())
	v.must(<-reader)
	if n := v.number(ctx, `SELECT count(*) FROM scheduling_rules WHERE handler_name = 'unreadable' AND isfinite(created_at)`); n != 1 {
		v.failf("the migration has not corrected the rule that was there before it")
	}
	if _, err := v.db.Exec(ctx, unreadableRuleSQL, [16]byte(canvas(plainCanvas))); err == nil {
		v.failf("after the migration a rule that no program can read is not refused")
	}
	v.emitVia(ctx, v.app, batch{label: "alone", n: 200, canvas: plainCanvas})
	v.emitVia(ctx, v.app, batch{label: "flaky", n: 20, name: "flaky"})
	v.awaitDone(ctx, "alone", startLimit)
	var longest time.Duration
	for _, stop := range stops {
		longest = max(longest, stop())
	}
	v.figure("longest_emit=%.2fs", longest.Seconds())
}

// tableHeldFor is for how long a transaction of another application holds the table that the migration changes: longer than
// one wait of the migration, which has to try again meanwhile.
const tableHeldFor = 4 * time.Second

// readRules reads the rules in a transaction that stays open for a while, and returns its end.
func (v *versions) readRules(ctx context.Context, open time.Duration) (ended <-chan error) {
	tx, err := v.db.Begin(ctx)
	v.must(err)
	if _, err := tx.Exec(ctx, `SELECT count(*) FROM scheduling_rules`); err != nil {
		v.fatalf("read the rules: %v", err)
	}
	over := make(chan error, 1)
	go func() {
		backoff.Sleep(ctx, open)
		over <- tx.Rollback(context.WithoutCancel(ctx))
	}()
	return over
}

// steadily emits until it is stopped, and then returns how long the slowest emit took.
func (v *versions) steadily(emit func()) (stop func() time.Duration) {
	ctx, cancel := context.WithCancel(context.Background())
	var longest time.Duration
	stopped := make(chan struct{})
	go func() { // one that fails ends here, and is in the report
		defer close(stopped)
		for ctx.Err() == nil {
			began := time.Now()
			emit()
			longest = max(longest, time.Since(began))
			backoff.Sleep(ctx, 20*time.Millisecond)
		}
	}()
	return func() time.Duration {
		cancel()
		<-stopped
		return longest
	}
}

// together has both versions emit into the same groups, and under the same limits and keys.
func (v *versions) together(ctx context.Context, fault func()) {
	again := v.emitUnique(ctx, "unique")
	const rounds = 20
	for i := range rounds {
		b := batch{label: "lines", n: 20, canvas: groupCanvas, key: strconv.Itoa}
		if i%2 == 0 {
			v.emitVia(ctx, v.app, b)
		} else {
			v.emit(ctx, b)
		}
		v.emitVia(ctx, v.app, batch{label: "limited", n: 5, canvas: limitedCanvas})
		v.emit(ctx, batch{label: "limited", n: 5, canvas: limitedCanvas})
		v.emit(ctx, batch{label: "flaky", n: 5, name: "flaky"})
		v.emitSQL(ctx, batch{label: "sql", n: 5, canvas: plainCanvas})
		if i == rounds/2 {
			fault()
		}
	}
	// The keys of this version hold for the version before.
	for i := range 3 {
		v.mustCtl(ctx, earlier+programs.Ctl, "emit", "--canvas", canvas(uniqueCanvas).String(), "--module", "WORKER", "--name", "work", "--value", "{}",
			"--unique-key", fmt.Sprint("unique ", i), "--unique-for", "1h")
	}
	again()
	made := len(v.of("unique"))
	var n int
	v.must(v.db.QueryRow(ctx, `SELECT (SELECT count(*) FROM events_v2 WHERE canvas_id = $1) + (SELECT count(*) FROM event_log WHERE canvas_id = $1)`,
		[16]byte(canvas(uniqueCanvas))).Scan(&n))
	if n != made {
		v.failf("%d events have one of %d unique keys", n, made)
	}
}

// pauses has each version pause and unpause the workers of both.
func (v *versions) pauses(ctx context.Context) {
	scope := eventqueue.Scope{Canvas: canvas(pausedCanvas), Module: "WORKER", Name: "work"}
	of := []string{"--canvas", scope.Canvas.String(), "--module", scope.Module, "--name", scope.Name}
	for i, by := range []string{earlier + programs.Ctl, programs.Ctl} {
		label := "paused_" + strconv.Itoa(i)
		v.mustCtl(ctx, by, append([]string{"pause"}, of...)...)
		v.emitVia(ctx, v.app, batch{label: label, n: 30, canvas: pausedCanvas})
		v.emit(ctx, batch{label: label, n: 30, canvas: pausedCanvas})
		beside := "beside_" + label
		v.emit(ctx, batch{label: beside, n: 60, canvas: plainCanvas})
		v.awaitDone(ctx, beside, startLimit)
		if n := v.begun(label); n > 0 {
			v.failf("%d events began while eventctl of %s had them paused", n, by)
		}
		v.mustCtl(ctx, []string{programs.Ctl, earlier + programs.Ctl}[i], append([]string{"unpause"}, of...)...)
		v.awaitDone(ctx, label, startLimit)
	}
}

// pausedCanvas is that of the events that one of two versions pauses.
const pausedCanvas byte = 40

// stop ends programs as a deployment does.
func (v *versions) stop(running []*program) {
	for _, p := range running {
		p.Signal(syscall.SIGTERM)
	}
	for _, p := range running {
		if <-p.Exited; p.Status != 0 {
			v.failf("%s ended with %d after SIGTERM: %s", p.Name, p.Status, p.LastWords())
		}
	}
}
