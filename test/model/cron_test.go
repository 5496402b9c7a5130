package model_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"eventsv2/cronchecker"
	"eventsv2/cronchecker/memcron"
	"eventsv2/eventqueue"
	"eventsv2/eventqueue/memnotify"
	"eventsv2/eventqueue/operate"
)

// TestCronModelEqualsSQL drives memcron and Postgres with the same operations.
func TestCronModelEqualsSQL(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	checkAll(t, func(t *rapid.T) {
		cronTried.sequences.Add(1)
		newCronWorld(t, d).repeat(t)
	})
}

// cronWorld is the two databases in the course of one sequence. A checker emits
// through a queue of its own, which calls meanwhile before it commits.
type cronWorld struct {
	*world
	definitions *cronchecker.Definitions
	tables      *memcron.Tables
	model       *memcron.Store
	meanwhile   func() error

	// ids are those of all definitions that ever were: what was the nth to be
	// made in Postgres was so in the model. The numbers differ, because Postgres
	// spends one on a name that is taken.
	ids []cronIDs
}

type cronIDs struct{ pg, mem cronchecker.CronID }

func newCronWorld(t *rapid.T, d *database) *cronWorld {
	w := &cronWorld{world: newWorld(t, d), definitions: cronchecker.NewDefinitions(d.pool)}
	w.tables = memcron.NewTables(w.mem)
	w.model = w.tables.Connect(w.mem, w.queue(t, w.mem))
	return w
}

// checkers are a checker's store on either database; a patient one calls
// meanwhile before it commits.
func (w *cronWorld) checkers(t *rapid.T, patient bool) (pg, mem cronchecker.Store) {
	t.Helper()
	if !patient {
		return cronchecker.NewPostgres(w.pool, w.queue(t, w.store)), w.model
	}
	return cronchecker.NewPostgres(w.pool, w.queue(t, patientStore{w.store, w})), w.tables.Connect(w.mem, w.queue(t, patientStore{w.mem, w}))
}

func (w *cronWorld) queue(t *rapid.T, store eventqueue.EmitStore) *eventqueue.Queue {
	t.Helper()
	queue, err := eventqueue.New(store, memnotify.New(memnotify.Config{}), eventqueue.QueueConfig{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // a commit that was refused is searched for
		if err := queue.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return queue
}

type patientStore struct {
	eventqueue.EmitStore
	w *cronWorld
}

// InTx implements eventqueue.EmitStore.
func (s patientStore) InTx(ctx context.Context, f func(ctx context.Context, db eventqueue.DB) error) error {
	return s.EmitStore.InTx(ctx, func(ctx context.Context, db eventqueue.DB) error {
		if err := f(ctx, db); err != nil {
			return err
		}
		return s.w.meanwhile()
	})
}

func (w *cronWorld) repeat(t *rapid.T) {
	t.Repeat(map[string]func(*rapid.T){
		"":              w.compareCrons,
		"add":           w.add,
		"add'":          w.add,
		"setEnabled":    w.setEnabled,
		"remove":        w.remove,
		"check":         w.check,
		"hold":          w.hold,
		"lift":          w.lift,
		"end":           w.end,
		"check'":        w.check,
		"emit":          w.emit,
		"emitUnderWay":  w.emitUnderWay,
		"emitAtOnce":    w.emitAtOnce,
		"letTimePass":   w.letTimePass,
		"letTimePass'":  w.letTimePass,
		"letTimePass''": w.letTimePass,
	})
}

var (
	schedules = []string{"every minute", "every minute", "*/5 * * * *", "0 3 * * *"}
	zones     = []string{"", "Europe/Berlin"}
	missed    = []cronchecker.Missed{"", cronchecker.MissedLatest, cronchecker.MissedAll, cronchecker.MissedNone}
)

func (w *cronWorld) add(t *rapid.T) {
	d := cronchecker.NewDefinition{
		Canvas: pick(t, "canvas", canvases), Name: pick(t, "name", names),
		Schedule: pick(t, "schedule", schedules), TimeZone: pick(t, "zone", zones), Missed: pick(t, "missed", missed),
		Skips: cronchecker.Skips{SkipIfPaused: rapid.Bool().Draw(t, "skip if paused"), SkipIfRunning: rapid.Bool().Draw(t, "skip if running")},
	}
	replace := rapid.Bool().Draw(t, "replace")
	pg, pgErr := w.definitions.Add(w.ctx, d, replace)
	mem, memErr := w.model.Add(w.ctx, d, replace)
	sameCronErrors(t, pgErr, memErr)
	if pgErr == nil && !slices.ContainsFunc(w.ids, func(ids cronIDs) bool { return ids.pg == pg.ID }) {
		w.ids = append(w.ids, cronIDs{pg.ID, mem.ID})
	}
	same(t, "Add", w.asPostgres(pg), w.asModel(mem))
}

func (w *cronWorld) setEnabled(t *rapid.T) {
	canvas, name, enabled := pick(t, "canvas", canvases), pick(t, "name", names), rapid.Bool().Draw(t, "enabled")
	sameCronErrors(t, w.definitions.SetEnabled(w.ctx, canvas, name, enabled), w.model.SetEnabled(w.ctx, canvas, name, enabled))
}

func (w *cronWorld) remove(t *rapid.T) {
	canvas, name := pick(t, "canvas", canvases), pick(t, "name", names)
	sameCronErrors(t, w.definitions.Remove(w.ctx, canvas, name), w.model.Remove(w.ctx, canvas, name))
}

// rule holds back the events of a definition, of a handler or of all that begin with its name.
func drawCronRule(t *rapid.T) operate.Rule {
	rule := operate.RuleOf(pick(t, "type", []operate.RuleType{operate.PauseRule, operate.BlockRule}),
		eventqueue.Scope{Canvas: pick(t, "canvas", canvases), Module: cronchecker.Module, Name: pick(t, "name", names)})
	rule.Modifier = pick(t, "modifier", []string{"", cronchecker.Modifier, "other"})
	return rule
}

func (w *cronWorld) hold(t *rapid.T) {
	rule := drawCronRule(t)
	_, pgErr := w.store.AddRule(w.ctx, rule)
	_, memErr := w.mem.AddRule(w.ctx, rule)
	sameCronErrors(t, pgErr, memErr)
}

func (w *cronWorld) lift(t *rapid.T) {
	rule := drawCronRule(t)
	lift := operate.Lift{Type: rule.Type, RuleScope: rule.RuleScope}
	_, pgErr := w.store.LiftRule(w.ctx, lift)
	_, memErr := w.mem.LiftRule(w.ctx, lift)
	sameCronErrors(t, pgErr, memErr)
}

// end has all events end.
func (w *cronWorld) end(t *rapid.T) {
	rows, err := w.pool.Query(w.ctx, `SELECT id FROM events_v2`)
	if err != nil {
		t.Fatal(err)
	}
	pg, err := pgx.CollectRows(rows, pgx.RowTo[eventqueue.EventID])
	if err != nil {
		t.Fatal(err)
	}
	var mem []eventqueue.EventID
	for _, e := range w.mem.Events() {
		mem = append(mem, e.ID)
	}
	_, _, pgErr := w.store.Remove(w.ctx, pg, nil)
	_, _, memErr := w.mem.Remove(w.ctx, mem, nil)
	sameCronErrors(t, pgErr, memErr)
}

// check is a whole pass of a checker.
func (w *cronWorld) check(t *rapid.T) {
	pass := func(store cronchecker.Store) (cronchecker.Result, error) {
		checker, err := cronchecker.New(store, cronchecker.Config{})
		if err != nil {
			return cronchecker.Result{}, err
		}
		result, err := checker.Check(w.ctx)
		inUTC(&result.Now)
		return result, err
	}
	pgStore, memStore := w.checkers(t, false)
	pg, pgErr := pass(pgStore)
	mem, memErr := pass(memStore)
	sameCronErrors(t, pgErr, memErr)
	same(t, "Check", pg, mem)
}

func (w *cronWorld) emit(t *rapid.T) {
	pgStore, memStore := w.checkers(t, false)
	slots := w.drawSlots(t)
	pg, pgErr := pgStore.Emit(w.ctx, slots.pg)
	mem, memErr := memStore.Emit(w.ctx, slots.mem)
	sameCronErrors(t, pgErr, memErr)
	same(t, "Emit", pg, mem)
}

// emitUnderWay has a second checker emit while the first has not committed, and
// perhaps will not: nobody waits, and no slot is emitted twice (I10).
func (w *cronWorld) emitUnderWay(t *rapid.T) {
	first, second := w.drawSlots(t), w.drawSlots(t)
	var result error
	if rapid.IntRange(0, 2).Draw(t, "rollback") == 2 {
		result = errRollback
	}
	pgPatient, memPatient := w.checkers(t, true)
	pgOther, memOther := w.checkers(t, false)
	type answers struct {
		first, second int
		err           string
	}
	both := func(patient, other cronchecker.Store, first, second []cronchecker.Slot) (a answers, err error) {
		w.meanwhile = func() error {
			var otherErr error
			a.second, otherErr = other.Emit(w.ctx, second)
			a.err = cronKind(otherErr)
			return result
		}
		a.first, err = patient.Emit(w.ctx, first)
		return a, err
	}
	pg, pgErr := both(pgPatient, pgOther, first.pg, second.pg)
	mem, memErr := both(memPatient, memOther, first.mem, second.mem)
	sameCronErrors(t, pgErr, memErr)
	same(t, "Emit beside an Emit", pg, mem)
}

// emitAtOnce has several checkers emit the same: each slot is emitted by one.
func (w *cronWorld) emitAtOnce(t *rapid.T) {
	slots := w.drawSlots(t)
	emitted := make([]int, rapid.IntRange(2, 3).Draw(t, "checkers"))
	errs := make([]error, len(emitted))
	var wait sync.WaitGroup
	for i := range emitted {
		store, _ := w.checkers(t, false)
		wait.Go(func() { emitted[i], errs[i] = store.Emit(w.ctx, slots.pg) })
	}
	wait.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	sum := 0
	for _, n := range emitted {
		sum += n
	}
	mem, err := w.model.Emit(w.ctx, slots.mem)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "Emit by several", sum, mem)
}

// slotPair are the same slots under the ids of either database.
type slotPair struct{ pg, mem []cronchecker.Slot }

// drawSlots draws slots of a few definitions, some of them gone; about now, and
// each definition's oldest first.
func (w *cronWorld) drawSlots(t *rapid.T) (slots slotPair) {
	if len(w.ids) == 0 {
		t.Skip("there are no definitions")
	}
	recent := w.ids[max(0, len(w.ids)-6):]
	for _, ids := range rapid.SliceOfNDistinct(rapid.SampledFrom(recent), 1, min(3, len(recent)), rapid.ID[cronIDs]).Draw(t, "crons") {
		at := w.now.Truncate(time.Minute)
		for range rapid.IntRange(1, 3).Draw(t, "slots") {
			at = at.Add(time.Duration(rapid.IntRange(-2, 1).Draw(t, "minutes")) * time.Minute)
		}
		for range rapid.IntRange(1, 3).Draw(t, "slots") {
			event := eventqueue.NewEvent{
				Canvas: pick(t, "canvas", canvases), Module: cronchecker.Module, Name: pick(t, "name", names),
				Modifier: cronchecker.Modifier, Value: []byte(`"` + at.Format(time.RFC3339) + `"`),
			}
			slots.pg = append(slots.pg, cronchecker.Slot{Cron: ids.pg, At: at, Event: event})
			slots.mem = append(slots.mem, cronchecker.Slot{Cron: ids.mem, At: at, Event: event})
			at = at.Add(time.Duration(rapid.IntRange(0, 2).Draw(t, "later")) * time.Minute)
		}
	}
	return slots
}

func sameCronErrors(t *rapid.T, pg, mem error) {
	t.Helper()
	if cronKind(pg) != cronKind(mem) {
		t.Fatalf("Postgres and the model differ in the error\n  Postgres: %v\n  model:    %v", pg, mem)
	}
}

func cronKind(err error) string {
	for _, known := range []error{cronchecker.ErrTaken, cronchecker.ErrNotFound} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	return kind(err)
}
