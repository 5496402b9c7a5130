package containers_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"eventsv2/eventqueue"
)

// Groups of events. The first two are in the hands of the worker that is cut off:
// one's runs complete while it cannot reach the database, the other's still run
// when it has to believe its locks lost.
const (
	early = "early"
	late  = "late"
	quick = "quick"
)

// What became of a run at the gate.
const (
	waiting  = "waiting"
	answered = "answered"
	gone     = "gone"
)

// perGroup is how many events one emit has.
const perGroup = 12

// testCutOff takes Postgres, and nothing else, away from one of two workers for
// longer than the lock time-out. Nothing answers it meanwhile and nothing refuses
// it: its packets vanish. Its events are taken over. When it is healed, the other
// worker still runs them: what it then writes about them has to be refused (I5),
// each has to end exactly once (I1, I3), and it has to work on.
func testCutOff(ctx context.Context, t *testing.T, app string, base map[string]string) {
	f := newFleet(ctx, t, app, base)
	f.unlock(ctx, t, "victim", quick)
	f.unlock(ctx, t, "other", quick)
	cron := f.program(ctx, t, "cron", "cron")
	victim := f.worker(ctx, t, "victim")
	held := append(f.emit(ctx, t, early, perGroup), f.emit(ctx, t, late, perGroup)...)
	f.awaitRuns(ctx, t, "victim", early, waiting, perGroup)
	f.awaitRuns(ctx, t, "victim", late, waiting, perGroup)
	other := f.worker(ctx, t, "other")
	before := f.emit(ctx, t, quick, perGroup)
	f.ended(ctx, t, before)

	t.Log("cutting the victim off from Postgres")
	docker("network", "disconnect", f.database, victim).must(ctx, t)
	sessions := f.sessions(ctx, t, "victim")
	f.unlock(ctx, t, "victim", early)
	during := f.emit(ctx, t, quick, perGroup)
	f.awaitRuns(ctx, t, "victim", early, answered, perGroup)
	f.awaitRuns(ctx, t, "victim", late, gone, perGroup)
	f.awaitRuns(ctx, t, "other", early, waiting, perGroup)
	f.awaitRuns(ctx, t, "other", late, waiting, perGroup)
	f.ended(ctx, t, during)
	// Postgres does not know that the victim is gone.
	if now := f.sessions(ctx, t, "victim"); len(now) == 0 || !slices.Equal(now, sessions) {
		t.Errorf("sessions of the victim when it was cut off: %v, before it is healed: %v; want the same, and some", sessions, now)
	}
	healing := f.mark(ctx, t)

	t.Log("healing the victim")
	docker("network", "connect", f.database, victim).must(ctx, t)
	f.awaitRefusals(ctx, t, victim, held)
	f.unlock(ctx, t, "other", early)
	f.unlock(ctx, t, "other", late)
	f.ended(ctx, t, held)
	f.stop(ctx, t, other)
	t.Log("the victim is alone")
	after := f.emit(ctx, t, quick, perGroup)
	f.ended(ctx, t, after)
	f.stop(ctx, t, victim)
	f.stop(ctx, t, cron)
	f.check(ctx, t, healing, held, slices.Concat(before, during), after)
}

// sessions are the backends that Postgres has for a program.
func (f *fleet) sessions(ctx context.Context, t *testing.T, who string) (pids []int32) {
	t.Helper()
	err := f.pool.QueryRow(ctx, `
SELECT coalesce(array_agg(pid ORDER BY pid), '{}') FROM pg_stat_activity WHERE application_name = $1`, who).Scan(&pids)
	if err != nil {
		t.Fatal(err)
	}
	return pids
}

// refusal is a line of a worker's log about the end of one run.
type refusal struct {
	Event string `json:"event_id"`
	Label string `json:"label"`
	Error string `json:"error"`
}

func (r refusal) is(id eventqueue.EventID) bool { return r.Event == id.String() }

// awaitRefusals waits until the healed worker has logged of each event that it held
// that its completion was refused. Some of these were completions that it could not
// write; the others it gave up before.
func (f *fleet) awaitRefusals(ctx context.Context, t *testing.T, container string, held []eventqueue.EventID) {
	t.Helper()
	refused := map[string]refusal{}
	eventually(ctx, t, "the victim's writes are refused", func(ctx context.Context) error {
		log := containerLog(ctx, t, container)
		if strings.Contains(log, "connection refused") {
			t.Fatalf("the victim's connections were refused: the cut has to swallow them")
		}
		for line := range strings.Lines(log) {
			var r refusal
			if json.Unmarshal([]byte(line), &r) != nil || r.Label == "" || !slices.ContainsFunc(held, r.is) {
				continue
			}
			if r.Label != "LockLost" {
				t.Fatalf("the victim ends event %s with %s while the other worker runs it: want the write refused", r.Event, r.Label)
			}
			refused[r.Event] = r
		}
		if len(refused) < len(held) {
			return fmt.Errorf("%d of %d are", len(refused), len(held))
		}
		return nil
	})
	completions := 0
	for _, r := range refused {
		if r.Error == "" {
			completions++
		}
	}
	if completions == 0 || completions == len(refused) {
		t.Errorf("%d of %d refused ends were completions: want those of group %s", completions, len(refused), early)
	}
}

// check compares the record of Postgres with the gate's list.
func (f *fleet) check(ctx context.Context, t *testing.T, healing int64, held, quicks, after []eventqueue.EventID) {
	t.Helper()
	changes := f.record(ctx, t)
	all := lives(t, changes)
	if want := len(held) + len(quicks) + len(after); len(all) != want {
		t.Errorf("the record has %d events: want the %d that were emitted", len(all), want)
	}
	takenOver := healing
	for _, id := range held {
		if l := all[id]; l == nil || len(l.claims) < 2 || l.claims[0] != "victim" || l.deletedBy != "other" {
			t.Errorf("event %s: %+v: want it claimed by the victim and ended by the other worker", id, l)
		} else {
			takenOver = min(takenOver, l.takenOver)
		}
	}
	for _, id := range after {
		if l := all[id]; l == nil || l.deletedBy != "victim" {
			t.Errorf("event %s: %+v: want it ended by the healed victim", id, l)
		}
	}
	for _, c := range changes {
		if c.Application == "victim" && c.Seq > takenOver && c.Seq <= healing {
			t.Errorf("change %d of event %s (%s) is the victim's while it was cut off", c.Seq, c.Event, c.Operation)
		}
	}
	var failed int
	if err := f.pool.QueryRow(ctx, `SELECT count(*) FROM event_log`).Scan(&failed); err != nil || failed > 0 {
		t.Errorf("%d events failed (%v): want none", failed, err)
	}
	f.checkRuns(ctx, t, all)
	t.Logf("%d events, %d changes recorded, first take-over at change %d, healed at %d", len(all), len(changes), takenOver, healing)
}

// checkRuns holds every event to one beginning and one end, and every run to a
// claim of its own.
func (f *fleet) checkRuns(ctx context.Context, t *testing.T, all map[eventqueue.EventID]*life) {
	t.Helper()
	runs, err := f.runs(ctx)
	if err != nil {
		t.Fatal(err)
	}
	tries := map[string]int{}
	for _, r := range runs {
		tries[r.Event]++
	}
	for id, l := range all {
		if l.inserted != 1 || l.deleted != 1 {
			t.Errorf("event %s: inserted %d times and deleted %d times: want once each", id, l.inserted, l.deleted)
		}
		if n := tries[id.String()]; n < 1 || n > len(l.claims) {
			t.Errorf("event %s: %d runs under %d claims: want one or more, each under a claim of its own", id, n, len(l.claims))
		}
	}
}

// containerLog returns the output of a container so far, on both streams.
func containerLog(ctx context.Context, t *testing.T, name string) string {
	t.Helper()
	var both bytes.Buffer
	cmd := exec.CommandContext(ctx, "docker", "logs", name)
	cmd.Stdout, cmd.Stderr = &both, &both
	if err := cmd.Run(); err != nil {
		t.Errorf("docker logs %s: %v", name, err)
	}
	return both.String()
}
