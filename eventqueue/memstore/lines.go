package memstore

import (
	"context"
	"slices"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
)

// The line of a row, as in the column of that name.
const (
	lineNone  = 0 // it has no OrderingKey
	lineWaits = 1
	lineTurn  = 2
	lineLater = 3 // it takes its place when it is due and somebody looks at it
)

// orderingLine names a line.
type orderingLine struct {
	canvas eventqueue.CanvasID
	key    string
}

func (r *Row) orderingLine() orderingLine { return orderingLine{r.Canvas, r.OrderingKey} }

// TakeTurns implements eventqueue.ClaimStore. There are no limits of running events
// in memory, so only who is gone gives a turn back here.
func (s *Store) TakeTurns(ctx context.Context, left, arrived []eventqueue.EventID, _ time.Duration) (turns []eventqueue.Event, err error) {
	err = s.inTx(ctx, nil, OpTakeTurns, func(tx *Tx) error {
		lines := tx.handOver(left)
		for _, id := range sortedOnce(arrived) {
			row, ok := tx.row(id)
			if !ok || row.Line == lineNone || row.Line == lineTurn || !row.LockedAt.IsZero() || !tx.mayWrite(id) {
				continue
			}
			lines = append(lines, row.orderingLine())
			if row.Line == lineLater {
				row.Line = lineWaits
				tx.write(id, &row)
			}
		}
		turns = tx.takeTurns(lines)
		return nil
	})
	return resultOf(turns, err)
}

// handOver frees the places of events that are gone, and returns their lines.
func (tx *Tx) handOver(gone []eventqueue.EventID) (lines []orderingLine) {
	for _, id := range gone {
		if line, ok := tx.store.db.left[id]; ok {
			lines = append(lines, line)
			tx.handed[id] = true
		}
	}
	return lines
}

// takeTurns gives the turn of each line that nobody has to the first that waits.
func (tx *Tx) takeTurns(lines []orderingLine) (turns []eventqueue.Event) {
	for _, line := range lines {
		next, taken := eventqueue.EventID(0), tx.isLeft(line)
		for _, id := range tx.eventsOf(line) {
			row, there := tx.row(id)
			switch {
			case there && row.Line == lineTurn:
				taken = true
			case there && row.Line == lineWaits && next == 0:
				next = id
			}
		}
		if taken || next == 0 || !tx.mayWrite(next) {
			continue
		}
		row, _ := tx.row(next)
		row.Line, row.NotifiedAt = lineTurn, tx.store.db.now()
		tx.write(next, &row)
		turns = append(turns, eventqueue.Event{ID: next, Canvas: row.Canvas, Module: row.Module, Name: row.Name, Modifier: row.Modifier})
	}
	return turns
}

// isLeft tells whether an event that is gone still has the turn of a line.
func (tx *Tx) isLeft(line orderingLine) bool {
	for id, of := range tx.store.db.left {
		if of == line && !tx.handed[id] {
			return true
		}
	}
	return false
}

// eventsOf lists the events of a line that the transaction or others can see, by id.
func (tx *Tx) eventsOf(line orderingLine) (ids []eventqueue.EventID) {
	for id, r := range tx.store.db.events {
		if r.orderingLine() == line {
			ids = append(ids, id)
		}
	}
	for id, row := range tx.writes {
		if row != nil && row.orderingLine() == line {
			ids = append(ids, id)
		}
	}
	return sortedOnce(ids)
}

// turnsAfter gives on the turns of ended events; had are the lines in which they
// had one.
func (tx *Tx) turnsAfter(ends []eventqueue.End, had map[eventqueue.EventID]orderingLine) []eventqueue.Event {
	var lines []orderingLine
	for i := range ends {
		end := &ends[i]
		line, turn := had[end.Event]
		row, there := tx.row(end.Event)
		switch {
		case !turn:
		case !there:
			tx.handed[end.Event] = true
			lines = append(lines, line)
		case end.Passes && end.Label != machine.ExecutesToCompletion && row.LockedAt.IsZero() && tx.mayWrite(end.Event):
			row.Line = lineLater
			tx.write(row.ID, &row)
			lines = append(lines, line)
		}
	}
	return tx.takeTurns(lines)
}

// turnsOf are the lines in which events have turns before they end, and those of
// events that have ended already.
func (tx *Tx) turnsOf(ends []eventqueue.End) map[eventqueue.EventID]orderingLine {
	had := map[eventqueue.EventID]orderingLine{}
	for i := range ends {
		id := ends[i].Event
		if !ends[i].InLine {
			continue
		}
		if line, ok := tx.store.db.left[id]; ok {
			had[id] = line
		}
		if row, there := tx.row(id); there && row.Line == lineTurn {
			had[id] = row.orderingLine()
		}
	}
	return had
}

// applyTurns notes who has ended with a turn that has not been given on.
func (tx *Tx) applyTurns(before *Row, after *Row) {
	if before != nil && after == nil && before.Line == lineTurn && before.OrderingKey != "" {
		tx.store.db.left[before.ID] = before.orderingLine()
	}
}

// mend gives a turn in the lines of a page where it was lost. last is the end of
// the page, or 0. It looks at no more places than a page of events may have.
func (s *Store) mend(page []*record, after, last eventqueue.EventID, limit int) (taken []eventqueue.Notification) {
	tx := s.begin()
	defer tx.end(true)
	var places []eventqueue.EventID
	for id := range s.db.left {
		if id > after && (last == 0 || id <= last) {
			places = append(places, id)
		}
	}
	for _, r := range page {
		if r.OrderingKey != "" && r.Line != lineLater {
			places = append(places, r.ID)
		}
	}
	places = sortedOnce(places)
	lines := tx.handOver(places[:min(len(places), 3*limit)])
	for _, r := range page {
		if r.Line == lineWaits && !slices.Contains(lines, r.orderingLine()) {
			lines = append(lines, r.orderingLine())
		}
	}
	for _, e := range tx.takeTurns(lines) {
		taken = append(taken, eventqueue.Notification{Event: e.ID, Canvas: e.Canvas})
	}
	tx.apply()
	return taken
}
