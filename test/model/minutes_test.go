package model_test

import (
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/inspect"
	"eventsv2/eventqueue/memstore"
	"eventsv2/eventqueue/minutes"
)

const (
	minuteColumnsSQL = `canvas_id, module, name, emitted, completed, failed, retried, cancelled, waits, runs, pending, oldest_due`
	minuteRowsSQL    = `SELECT minute, ` + minuteColumnsSQL + ` FROM event_minutes ORDER BY minute, canvas_id, module, name`
	hourRowsSQL      = `SELECT hour, ` + minuteColumnsSQL + ` FROM event_hours ORDER BY hour, canvas_id, module, name`
)

func scanMinute(row pgx.CollectableRow) (string, error) {
	var m memstore.MinuteRow
	err := row.Scan(&m.Begins, (*[16]byte)(&m.Canvas), &m.Module, &m.Name, &m.Emitted, &m.Completed, &m.Failed, &m.Retried, &m.Cancelled,
		(*[]int64)(&m.Wait), (*[]int64)(&m.Run), &m.Pending, &m.OldestDue)
	return minuteText(&m), err
}

// minuteText is a row in a form that can be compared by ==. All rows are compared after each step, so
// its numbers are formatted without package fmt.
func minuteText(m *memstore.MinuteRow) string {
	text := m.Begins.UTC().AppendFormat(make([]byte, 0, 256), time.RFC3339Nano)
	text = append(text, ' ')
	text = fmt.Append(text, m.Scope)
	add := func(name string, numbers ...int64) {
		text = append(text, name...)
		for _, n := range numbers {
			text = append(strconv.AppendInt(text, n, 10), ' ')
		}
	}
	add(" counts ", m.Emitted, m.Completed, m.Failed, m.Retried, m.Cancelled)
	add("waits ", m.Wait...)
	add("runs ", m.Run...)
	if m.Pending != nil {
		add("pending ", *m.Pending)
	}
	if m.OldestDue != nil {
		add("due for ", int64(*m.OldestDue))
	}
	if !m.AsOf.IsZero() {
		text = m.AsOf.UTC().AppendFormat(append(text, "as of "...), time.RFC3339Nano)
	}
	return string(text)
}

func minuteRowsOf(rows []memstore.MinuteRow) (texts []string) {
	for i := range rows {
		texts = append(texts, minuteText(&rows[i]))
	}
	return texts
}

// addMinutes hands in the counts of some scopes, each once, among them that of all further canvases and
// that of all further handlers.
func (w *world) addMinutes(t *rapid.T) {
	var counts []minutes.Counts
	for _, canvas := range append(canvases, eventqueue.CanvasID{}) {
		for _, name := range names {
			if !rapid.Bool().Draw(t, "counted") {
				continue
			}
			c := minutes.Counts{Scope: eventqueue.Scope{Canvas: canvas, Module: "WORKER", Name: name}}
			for _, n := range []*int64{&c.Emitted, &c.Completed, &c.Failed, &c.Retried, &c.Cancelled} {
				*n = rapid.Int64Range(0, 3).Draw(t, "n")
			}
			for range rapid.IntRange(0, 3).Draw(t, "runs") {
				c.Wait.Add(pick(t, "wait", durations))
				c.Run.Add(pick(t, "run", durations))
			}
			counts = append(counts, c)
		}
	}
	if rapid.Bool().Draw(t, "others") {
		counts = append(counts, minutes.Counts{Emitted: 1})
	}
	if len(counts) == 0 {
		return
	}
	pg, pgErr := w.store.AddMinutes(w.ctx, counts)
	mem, memErr := w.mem.AddMinutes(w.ctx, counts)
	w.sameErrors(t, pgErr, memErr, false)
	same(t, "AddMinutes", pg.UTC(), mem.UTC())
}

func (w *world) countPending(t *rapid.T) {
	after := pick(t, "after", []eventqueue.Scope{{}, {}, {Canvas: canvases[0], Module: "WORKER", Name: "bill"}})
	pg, pgErr := w.store.CountPending(w.ctx, after)
	mem, memErr := w.mem.CountPending(w.ctx, after)
	w.sameErrors(t, pgErr, memErr, false)
	same(t, "CountPending", pg, mem)
}

func (w *world) sumHour(t *rapid.T) {
	pg, pgErr := w.store.SumHour(w.ctx)
	mem, memErr := w.mem.SumHour(w.ctx)
	w.sameErrors(t, pgErr, memErr, false)
	same(t, "SumHour", pg, mem)
}

func (w *world) pruneMinutes(t *rapid.T) {
	minutesFor, hoursFor := pick(t, "minutesFor", durations), pick(t, "hoursFor", durations)
	limit := 1000 // which rows of one time a smaller page has, the order of the index does not say
	pg, pgErr := w.store.PruneMinutes(w.ctx, minutesFor, hoursFor, limit)
	mem, memErr := w.mem.PruneMinutes(w.ctx, minutesFor, hoursFor, limit)
	w.sameErrors(t, pgErr, memErr, false)
	same(t, "PruneMinutes", pg, mem)
}

func (w *world) readMinutes(t *rapid.T) {
	filter := pick(t, "filter", []inspect.Filter{{}, {Canvas: &canvases[0]}, {Module: "CRON"}, {Name: "bill"}})
	since := pick(t, "since", append([]time.Duration{100 * time.Hour}, durations...))
	resolution := pick(t, "resolution", []inspect.Resolution{inspect.PerMinute, inspect.PerHour})
	pg, pgErr := inspect.New(w.pool).Minutes(w.ctx, filter, since, resolution)
	mem, memErr := w.mem.Minutes(w.ctx, filter, since, resolution)
	w.sameErrors(t, pgErr, memErr, false)
	sameRows(t, "the minutes read", minuteRowsOf(pg), minuteRowsOf(mem))
}
