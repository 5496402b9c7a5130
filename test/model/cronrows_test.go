package model_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"eventsv2/cronchecker"
	"eventsv2/eventqueue"
)

// cronRecord is a row of cron_records with the event that it names; without one, if it has ended or the slot was skipped. Its
// definition is called by its number among all that were made.
type cronRecord struct {
	cron    int
	slot    time.Time
	canvas  eventqueue.CanvasID
	handler eventqueue.HandlerKey
	value   string
	due     time.Time
	skipped cronchecker.Skip
}

const cronRecordsSQL = `
SELECT r.cron_id, r.slot, coalesce(e.canvas_id, '00000000-0000-0000-0000-000000000000'), coalesce(e.module, ''), coalesce(e.name, ''), coalesce(e.modifier, ''),
    coalesce(e.value, ''), coalesce(e.delay_until, '0001-01-01Z'), coalesce(r.skipped, '')
FROM cron_records r LEFT JOIN events_v2 e ON e.id = r.event_id`

// The events of definitions that were removed stay; they are counted.
const countsSQL = `SELECT (SELECT count(*) FROM cron_records), (SELECT count(*) FROM events_v2)`

type cronCounts struct{ Records, Events int }

// compareCrons compares all definitions, records and their events. Which of
// several checkers made an event, and so its id, is open.
func (w *cronWorld) compareCrons(t *rapid.T) {
	t.Helper()
	cronTried.steps.Add(1)
	definitions, err := w.definitions.List(w.ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	model := w.tables.Definitions()
	slices.SortFunc(model, func(a, b cronchecker.Definition) int {
		return cmp.Or(slices.Compare(a.Canvas[:], b.Canvas[:]), cmp.Compare(a.Name, b.Name))
	})
	same(t, "cron_definitions", each(definitions, w.asPostgres), each(model, w.asModel))

	batch := &pgx.Batch{}
	batch.Queue(cronRecordsSQL)
	batch.Queue(countsSQL)
	results := w.pool.SendBatch(w.ctx, batch)
	records := read(t, results, w.scanCronRecord)
	counts := read(t, results, pgx.RowToStructByPos[cronCounts])
	if err := results.Close(); err != nil {
		t.Fatalf("read the tables: %v", err)
	}
	sameRows(t, "cron_records", bySlot(records), bySlot(w.modelRecords()))
	same(t, "counts", counts[0], cronCounts{len(w.tables.Records()), len(w.mem.Events())})
}

func (w *cronWorld) scanCronRecord(row pgx.CollectableRow) (r cronRecord, err error) {
	var id cronchecker.CronID
	err = row.Scan((*int64)(&id), &r.slot, (*[16]byte)(&r.canvas), &r.handler.Module, &r.handler.Name, &r.handler.Modifier, &r.value, &r.due, &r.skipped)
	inUTC(&r.slot, &r.due)
	if r.due.IsZero() {
		r.due = time.Time{}
	}
	r.cron = w.number(func(ids cronIDs) bool { return ids.pg == id })
	r.value = numbered(r.value, id, r.cron)
	return r, err
}

func (w *cronWorld) modelRecords() []cronRecord {
	events := map[eventqueue.EventID]row{}
	for _, e := range w.mem.Events() {
		events[e.ID] = e
	}
	var records []cronRecord
	for _, r := range w.tables.Records() {
		e := events[r.Event]
		n := w.number(func(ids cronIDs) bool { return ids.mem == r.Cron })
		records = append(records, cronRecord{n, r.Slot.UTC(), e.Canvas, e.Handler(), numbered(e.Value, r.Cron, n), e.DelayUntil, r.Skipped})
	}
	return records
}

func bySlot(records []cronRecord) []cronRecord {
	return slices.SortedFunc(slices.Values(records), func(a, b cronRecord) int {
		return cmp.Or(cmp.Compare(a.cron, b.cron), a.slot.Compare(b.slot))
	})
}

// number is the place of a definition among all that were made.
func (w *cronWorld) number(is func(cronIDs) bool) int { return slices.IndexFunc(w.ids, is) }

// numbered puts a definition's number in the place of its id in a value.
func numbered(value string, id cronchecker.CronID, number int) string {
	return strings.Replace(value, fmt.Sprintf(`{"cron_id":%d,`, id), fmt.Sprintf(`{"cron_id":"#%d",`, number), 1)
}

func (w *cronWorld) asPostgres(d cronchecker.Definition) cronchecker.Definition {
	return inNumbers(d, w.number(func(ids cronIDs) bool { return ids.pg == d.ID }))
}

func (w *cronWorld) asModel(d cronchecker.Definition) cronchecker.Definition {
	return inNumbers(d, w.number(func(ids cronIDs) bool { return ids.mem == d.ID }))
}

func inNumbers(d cronchecker.Definition, number int) cronchecker.Definition {
	d.ID = cronchecker.CronID(number)
	inUTC(&d.StartsAt, &d.LastSlot)
	return d
}

func each[T any](all []T, f func(T) T) []T {
	out := make([]T, len(all))
	for i, one := range all {
		out[i] = f(one)
	}
	return out
}
