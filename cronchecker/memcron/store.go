package memcron

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"eventsv2/cronchecker"
	"eventsv2/eventqueue"
	"eventsv2/eventqueue/memstore"
)

// The operations, for the faults of the memstore.Store.
const (
	OpLoad   memstore.Op = "Cron.Load"   // of a pass
	OpLock   memstore.Op = "Cron.Lock"   // within the transaction of an Emit
	OpDefine memstore.Op = "Cron.Define" // a change of a definition
)

// Record is a row of cron_records.
type Record struct {
	Cron  cronchecker.CronID
	Slot  time.Time
	Event eventqueue.EventID // 0 of a slot that was skipped
	// Skipped is why it was.
	Skipped cronchecker.Skip
}

// Tables are cron_definitions and cron_records. The database's lock guards them.
type Tables struct {
	database    *memstore.Store
	lastID      cronchecker.CronID
	definitions map[cronchecker.CronID]*definition
	records     []Record // in the order of their commits
}

type definition struct {
	cronchecker.Definition
	// locked is open while a checker emits for the definition, nil otherwise.
	locked chan struct{}
}

// NewTables makes empty tables in a database.
func NewTables(database *memstore.Store) *Tables {
	return &Tables{
		database:    database.Connect(memstore.Faults{}),
		definitions: map[cronchecker.CronID]*definition{},
	}
}

// Records returns a copy of the committed records, in the order of their commits.
// Those of removed definitions are gone.
func (t *Tables) Records() []Record {
	var records []Record
	t.read(func(time.Time) { records = slices.Clone(t.records) })
	return records
}

// Definitions returns a copy of all definitions, by id.
func (t *Tables) Definitions() []cronchecker.Definition {
	var all []cronchecker.Definition
	t.read(func(time.Time) { all = t.list(func(*definition) bool { return true }) })
	return all
}

func (t *Tables) read(f func(now time.Time)) {
	_ = t.database.Do(context.Background(), OpLoad, f) // without faults it does not fail
}

func (t *Tables) list(filter func(*definition) bool) []cronchecker.Definition {
	var list []cronchecker.Definition
	for _, d := range t.definitions {
		if filter(d) {
			list = append(list, d.Definition)
		}
	}
	slices.SortFunc(list, func(a, b cronchecker.Definition) int { return cmp.Compare(a.ID, b.ID) })
	return list
}

// Store is the tables as one program sees them. It is safe for concurrent use.
type Store struct {
	tables *Tables
	store  *memstore.Store
	queue  *eventqueue.Queue
}

var _ cronchecker.Store = (*Store)(nil)

// Connect returns a Store for one program. store must be on the database of the tables;
// its faults apply to the Store. queue emits the events, and must be on store.
func (t *Tables) Connect(store *memstore.Store, queue *eventqueue.Queue) *Store {
	return &Store{tables: t, store: store, queue: queue}
}

// Load implements cronchecker.Store.
func (s *Store) Load(ctx context.Context) (cronchecker.Snapshot, error) {
	var snapshot cronchecker.Snapshot
	err := s.store.Do(ctx, OpLoad, func(now time.Time) {
		snapshot.Now = now
		snapshot.Definitions = s.tables.list(func(d *definition) bool { return d.Enabled })
	})
	if err != nil {
		return cronchecker.Snapshot{}, err
	}
	return snapshot, nil
}

// Emit implements cronchecker.Store.
func (s *Store) Emit(ctx context.Context, slots []cronchecker.Slot) (int, error) {
	var emitted int
	err := s.queue.InTx(ctx, func(ctx context.Context, tx *eventqueue.Tx) error {
		ours, met, err := s.lock(ctx, tx, slots)
		if err != nil {
			return fmt.Errorf("lock the cron definitions: %w", err)
		}
		emitted = len(ours)
		if len(ours) == 0 {
			return nil
		}
		records := make([]Record, len(ours))
		var events []eventqueue.NewEvent
		for i, slot := range ours {
			records[i] = Record{Cron: slot.Cron, Slot: slot.At, Skipped: met[slot.Cron].Next()}
			if records[i].Skipped == "" {
				events = append(events, slot.Event)
			}
		}
		var ids []eventqueue.EventID
		if len(events) > 0 {
			if ids, err = tx.Emit(ctx, events...); err != nil {
				return err
			}
		}
		for i := range records {
			if records[i].Skipped == "" {
				records[i].Event, ids = ids[0], ids[1:]
			}
		}
		memstore.OnCommit(tx, func() { s.tables.record(records) })
		return nil
	})
	if err != nil {
		return 0, err
	}
	return emitted, nil
}

// lock locks the definitions that are not locked yet, until the transaction ends. It
// returns the slots to emit: those of these definitions that are after the start and
// after the last recorded slot, each once; and what they meet.
func (s *Store) lock(ctx context.Context, tx *eventqueue.Tx, slots []cronchecker.Slot) ([]cronchecker.Slot, map[cronchecker.CronID]*cronchecker.Met, error) {
	var mine []*definition
	var ours []cronchecker.Slot
	met := map[cronchecker.CronID]*cronchecker.Met{}
	err := s.store.Do(ctx, OpLock, func(time.Time) {
		last := map[cronchecker.CronID]time.Time{}
		for _, slot := range slots {
			d, ok := s.tables.definitions[slot.Cron]
			if !ok || !d.Enabled || d.locked != nil && !slices.Contains(mine, d) {
				continue
			}
			if d.locked == nil {
				d.locked = make(chan struct{})
				mine = append(mine, d)
				last[d.ID] = d.LastSlot
				if d.SkipIfPaused || d.SkipIfRunning {
					ruled, queued := s.store.Meets(eventqueue.CanvasHandler{Canvas: d.Canvas, Key: d.Handler()})
					met[d.ID] = &cronchecker.Met{Paused: d.SkipIfPaused && ruled, Running: d.SkipIfRunning && queued, Alone: d.SkipIfRunning}
				}
			}
			if slot.At.After(d.StartsAt) && slot.At.After(last[d.ID]) {
				last[d.ID] = slot.At
				ours = append(ours, slot)
			}
		}
	})
	memstore.OnEnd(tx, func(bool) {
		for _, d := range mine {
			close(d.locked)
			d.locked = nil
		}
	})
	return ours, met, err
}

func (t *Tables) record(records []Record) {
	t.records = append(t.records, records...)
	for _, r := range records {
		t.definitions[r.Cron].LastSlot = r.Slot
	}
}
