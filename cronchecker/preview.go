package cronchecker

import (
	"fmt"
	"strings"
	"time"
)

// PreviewedSlot is a slot to come.
type PreviewedSlot struct {
	// At is when the slot is due, in the schedule's zone.
	At time.Time
	// Note says in sentences what a change of the zone's clock does to the slot, or that it
	// leaves out times between the slot before and this one. It is empty for most slots.
	Note string
}

// Preview returns the first n slots after a time: those of Next, each with a note if a change
// of the zone's clock moves, joins, repeats or leaves out times of the schedule.
func (s Schedule) Preview(after time.Time, n int) []PreviewedSlot {
	slots := make([]PreviewedSlot, max(n, 0))
	for i := range slots {
		at := s.Next(after)
		slots[i] = PreviewedSlot{at, strings.Join(s.notes(after.Unix(), at.Unix()), " ")}
		after = at
	}
	return slots
}

// notes explains the changes in (after, slot], and whether the clock shows the slot's time
// twice.
func (s Schedule) notes(after, slot int64) (notes []string) {
	p := periodAt(s.zone, after)
	for p.end <= slot {
		change := clockChange{p, periodAt(s.zone, p.end)}
		if due := s.dueOfSkipped(change, slot); due != "" {
			notes = append(notes, fmt.Sprintf("%s: %s.", change, due))
		}
		p = change.after
	}
	if change, ok := s.repeats(p, slot+p.offset); ok {
		due := "is due the first time only"
		if s.calendar.floating {
			due = "is due both times"
		}
		notes = append(notes, fmt.Sprintf("%s: %s comes twice, and %s.", change, change.clock(slot+p.offset), due))
	}
	return notes
}

// dueOfSkipped says what becomes of the times of the schedule that the clock skips. It is empty
// if there are none, or if they have no part in the slot.
func (s Schedule) dueOfSkipped(c clockChange, slot int64) string {
	if s.calendar.floating {
		text, n := c.list(s.calendar.between(c.from(), c.to()))
		switch n {
		case 0:
			return ""
		case 1:
			return text + " is left out"
		}
		return text + " are left out"
	}
	reached := c.after.reached()
	if slot != c.after.start || !s.jumpedOver(reached, c.after) {
		return ""
	}
	// What the clock shows right after the change may be a time of the schedule, too.
	text, n := c.list(s.calendar.between(reached, c.to()+1))
	if n == 1 {
		return fmt.Sprintf("%s is due at %s instead", text, c.clock(c.to()))
	}
	return fmt.Sprintf("%s are due once, at %s", text, c.clock(c.to()))
}

// repeats returns the change backwards because of which the clock shows a time of the period
// in another one as well.
func (s Schedule) repeats(p period, shown int64) (clockChange, bool) {
	if p.end != always {
		if c := (clockChange{p, periodAt(s.zone, p.end)}); shown >= c.to() {
			return c, true
		}
	}
	if p.start != -always {
		if c := (clockChange{periodAt(s.zone, p.start-1), p}); shown < c.from() {
			return c, true
		}
	}
	return clockChange{}, false
}

// clockChange is a change of a zone's clock between two periods.
type clockChange struct{ before, after period }

// from is what the clock would show at the moment of the change, and to what it shows then, in
// wall-clock seconds.
func (c clockChange) from() int64 { return c.before.end + c.before.offset }
func (c clockChange) to() int64   { return c.after.start + c.after.offset }

func (c clockChange) String() string {
	direction := "forward"
	if c.to() < c.from() {
		direction = "back"
	}
	begins := "The"
	if c.withinADay() {
		begins = time.Unix(c.to(), 0).UTC().Format("On " + time.DateOnly + " the")
	}
	return fmt.Sprintf("%s clocks go %s from %s to %s", begins, direction, c.clock(c.from()), c.clock(c.to()))
}

func (c clockChange) withinADay() bool {
	from, _ := divide(c.from(), secondsPerDay)
	to, _ := divide(c.to(), secondsPerDay)
	return from == to
}

// clock writes what the clock shows: with the date, if the change has no date of its own.
func (c clockChange) clock(shown int64) string {
	layout := "15:04"
	if shown%60 != 0 { // until about 1970, offsets had seconds
		layout = time.TimeOnly
	}
	if !c.withinADay() {
		layout = time.DateOnly + " " + layout
	}
	return time.Unix(shown, 0).UTC().Format(layout)
}

// maxListed is how many times a note lists one by one.
const maxListed = 4

// list writes wall-clock minutes, and says how many they are.
func (c clockChange) list(minutes []int64) (text string, n int) {
	if n = len(minutes); n > maxListed {
		return fmt.Sprintf("the %d times from %s to %s", n, c.clock(minutes[0]*60), c.clock(minutes[n-1]*60)), n
	}
	for i, minute := range minutes {
		switch {
		case i > 0 && i == n-1:
			text += " and "
		case i > 0:
			text += ", "
		}
		text += c.clock(minute * 60)
	}
	return text, n
}

// between returns the minutes of the set from one wall-clock second to another. No clock was
// ever changed by more than a day.
func (c *calendar) between(from, to int64) (minutes []int64) {
	end := minuteNotBefore(to)
	for minute, ok := c.next(minuteNotBefore(from), end); ok; minute, ok = c.next(minute+1, end) {
		minutes = append(minutes, minute)
	}
	return minutes
}
