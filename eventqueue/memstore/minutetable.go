package memstore

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/inspect"
	"eventsv2/eventqueue/minutes"
)

// minuteScopes bounds the rows of a minute, and of an hour: so many are of handlers on canvases, and
// as many of handlers on all further canvases.
const minuteScopes = 1000

// MinuteRow is a row of event_minutes or of event_hours. It has no time at which it was read.
type MinuteRow = inspect.Minute

// minuteTable is event_minutes or event_hours.
type minuteTable map[minuteKey]*MinuteRow

// minuteTables are both.
type minuteTables struct{ minutes, hours minuteTable }

// minuteKey is the primary key of both.
type minuteKey struct {
	begins time.Time
	eventqueue.Scope
}

func keyOfMinute(row *MinuteRow) minuteKey { return minuteKey{row.Begins, row.Scope} }

// rows returns copies of the rows of a time, by their keys.
func (t minuteTable) rows(within func(begins time.Time) bool) []MinuteRow {
	rows := []MinuteRow{}
	for _, row := range t {
		if within(row.Begins) {
			rows = append(rows, copyOfMinute(row))
		}
	}
	slices.SortFunc(rows, compareMinutes)
	return rows
}

func copyOfMinute(row *MinuteRow) MinuteRow {
	c := *row
	c.Wait, c.Run = slices.Clone(row.Wait), slices.Clone(row.Run)
	return c
}

func compareMinutes(a, b MinuteRow) int {
	return cmp.Or(a.Begins.Compare(b.Begins), compareScopes(a.Scope, b.Scope))
}

// placedCounts are a row that is merged with others. Rows of one scope have the same place, and
// those with the lowest places get rows of their own.
type placedCounts struct {
	place int
	there bool // there is a row with its scope
	MinuteRow
}

// minuteRoom says for how many scopes, and for how many handlers, there may be new rows.
type minuteRoom struct{ scopes, handlers int }

// mergeMinutes merges rows of one time, those by one scope and those for which there is no room: the
// latter have the zero Canvas, or the zero Scope. The rows are in the order of their places. What is
// pending is retained of rows that keep their canvas.
func mergeMinutes(given []placedCounts, room minuteRoom) minuteTable {
	scopes := room.withoutCanvas(given)
	room.withoutHandler(given, scopes)
	merged := minuteTable{}
	for i := range given {
		g := &given[i]
		key := minuteKey{g.Begins, scopes[i]}
		row := merged[key]
		if row == nil {
			row = &MinuteRow{Begins: g.Begins, Counts: minutes.Counts{Scope: key.Scope}}
			merged[key] = row
		}
		row.Merge(&g.Counts)
		if key.Canvas == g.Canvas {
			row.Pending, row.OldestDue = higher(row.Pending, g.Pending), higher(row.OldestDue, g.OldestDue)
		}
	}
	return merged
}

// withoutCanvas returns the scope of each row, with the zero Canvas where its own has no room.
func (room minuteRoom) withoutCanvas(given []placedCounts) []eventqueue.Scope {
	scopes := make([]eventqueue.Scope, len(given))
	taken, last := 0, -1
	for i := range given {
		g := &given[i]
		scopes[i] = g.Scope
		if g.there || g.Canvas == (eventqueue.CanvasID{}) {
			continue
		}
		if g.place != last {
			taken, last = taken+1, g.place
		}
		if taken > room.scopes {
			scopes[i].Canvas = eventqueue.CanvasID{}
		}
	}
	return scopes
}

// withoutHandler leaves the module and name out of the scopes without a canvas for whose handlers
// there is no room.
func (room minuteRoom) withoutHandler(given []placedCounts, scopes []eventqueue.Scope) {
	there := map[eventqueue.Scope]bool{}
	for i := range given {
		if given[i].there {
			there[given[i].Scope] = true
		}
	}
	handlers := map[eventqueue.Scope]bool{} // whether there is room
	for i, scope := range scopes {
		if scope.Canvas != (eventqueue.CanvasID{}) || scope.Module == "" || there[scope] {
			continue
		}
		if _, known := handlers[scope]; !known {
			handlers[scope] = len(handlers) < room.handlers
		}
		if !handlers[scope] {
			scopes[i] = eventqueue.Scope{}
		}
	}
}

func higher[T cmp.Ordered](a, b *T) *T {
	if a == nil || b != nil && *b > *a {
		return b
	}
	return a
}

// hoursSince returns the hours from a time on; those that have not been summed up are made of their
// minutes.
func (t minuteTables) hoursSince(from time.Time) []MinuteRow {
	summed := t.firstUnsummed()
	hours := t.hours.rows(func(begins time.Time) bool { return !begins.Before(from) })
	latest := minuteTable{}
	for _, m := range t.minutes.rows(func(begins time.Time) bool { return !begins.Before(from) && !begins.Before(summed) }) {
		m.Begins = m.Begins.Truncate(time.Hour)
		if hour := latest[keyOfMinute(&m)]; hour != nil {
			hour.Merge(&m.Counts)
			hour.Pending, hour.OldestDue = higher(hour.Pending, m.Pending), higher(hour.OldestDue, m.OldestDue)
			continue
		}
		latest[keyOfMinute(&m)] = &m
	}
	for _, hour := range latest {
		hours = append(hours, *hour)
	}
	slices.SortFunc(hours, compareMinutes)
	return hours
}

// firstUnsummed is the end of the last hour in event_hours.
func (t minuteTables) firstUnsummed() (first time.Time) {
	for begins := range maps.Keys(t.hours) {
		if end := begins.begins.Add(time.Hour); end.After(first) {
			first = end
		}
	}
	return first
}

// byVolume places rows by their scopes, those with the most events first.
func byVolume(rows []MinuteRow) []placedCounts {
	volume := map[eventqueue.Scope]int64{}
	for i := range rows {
		volume[rows[i].Scope] += rows[i].Events()
	}
	scopes := slices.SortedFunc(maps.Keys(volume), func(a, b eventqueue.Scope) int {
		return cmp.Or(cmp.Compare(volume[b], volume[a]), compareScopes(a, b))
	})
	place := map[eventqueue.Scope]int{}
	for i, scope := range scopes {
		place[scope] = i
	}
	placed := make([]placedCounts, len(rows))
	for i := range rows {
		placed[i] = placedCounts{place: place[rows[i].Scope], MinuteRow: rows[i]}
	}
	slices.SortStableFunc(placed, func(a, b placedCounts) int { return cmp.Compare(a.place, b.place) })
	return placed
}
