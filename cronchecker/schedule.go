package cronchecker

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Schedule is a set of times, its slots. The package documentation describes the text
// of a schedule, and what happens when clocks change. A Schedule is immutable and safe
// for concurrent use. ParseSchedule makes one; the methods of the zero value panic.
type Schedule struct {
	text     string
	zone     *time.Location
	calendar *calendar
}

// ParseSchedule reads an interval ("every 12 hours") or an expression of five fields
// ("30 9 * * mon-fri"). zone is a time zone of the IANA database; empty means UTC. The
// error names the field and the problem. An unknown zone is refused, and so is an
// expression that never matches (30 February).
func ParseSchedule(text, zone string) (Schedule, error) {
	text = strings.Join(strings.Fields(text), " ")
	calendar, err := parseCalendar(text)
	if err == nil && !calendar.everMatches() {
		err = errors.New("never comes true: no such date exists")
	}
	if err != nil {
		return Schedule{}, fmt.Errorf("schedule %q: %w", text, err)
	}
	location, err := loadZone(zone)
	if err != nil {
		return Schedule{}, err
	}
	return Schedule{text: text, zone: location, calendar: calendar}, nil
}

// String returns the schedule's text, with single spaces.
func (s Schedule) String() string { return s.text }

// Zone returns the time zone of the schedule.
func (s Schedule) Zone() *time.Location { return s.zone }

// Next returns the first slot after a time, in the schedule's zone. Its cost grows
// only with the number of clock changes until then, not with the time.
func (s Schedule) Next(after time.Time) time.Time {
	from := after.Unix() + 1
	p := periodAt(s.zone, from)
	for {
		if slot, ok := s.firstIn(p, from); ok {
			return time.Unix(slot, 0).In(s.zone)
		}
		// This ends: a calendar that is not empty has a minute in the last period of
		// every zone.
		from = p.end
		p = periodAt(s.zone, from)
	}
}

// Latest returns the last slot in (after, now] and whether there is one. It searches
// backwards from now, so it is fast even if after is years ago.
func (s Schedule) Latest(after, now time.Time) (time.Time, bool) {
	to := now.Unix()
	for {
		p := periodAt(s.zone, to)
		if slot, ok := s.lastIn(p, to); ok {
			latest := time.Unix(slot, 0).In(s.zone)
			return latest, latest.After(after)
		}
		if p.start <= after.Unix() {
			return time.Time{}, false
		}
		to = p.start - 1
	}
}

// All returns the slots in (after, now], the oldest first, at most limit of them.
func (s Schedule) All(after, now time.Time, limit int) []time.Time {
	var slots []time.Time
	for len(slots) < limit {
		slot := s.Next(after)
		if slot.After(now) {
			break
		}
		slots = append(slots, slot)
		after = slot
	}
	return slots
}

// firstIn returns the first slot of a period that is not before from.
func (s Schedule) firstIn(p period, from int64) (int64, bool) {
	shown := max(from, p.start) + p.offset
	if !s.calendar.floating {
		reached := p.reached()
		if from <= p.start && s.jumpedOver(reached, p) {
			return p.start, true
		}
		shown = max(shown, reached)
	}
	minute, ok := s.calendar.next(minuteNotBefore(shown), minuteNotBefore(p.end+p.offset))
	return minute*60 - p.offset, ok
}

// lastIn returns the last slot of a period that is not after to.
func (s Schedule) lastIn(p period, to int64) (int64, bool) {
	first, reached := p.start+p.offset, int64(0)
	if !s.calendar.floating {
		reached = p.reached()
		first = max(first, reached)
	}
	last, _ := divide(to+p.offset, 60)
	if minute, ok := s.calendar.previous(last, minuteNotBefore(first)); ok {
		return minute*60 - p.offset, true
	}
	if !s.calendar.floating && s.jumpedOver(reached, p) {
		return p.start, true
	}
	return 0, false
}

// jumpedOver reports whether the clock skipped a minute of the schedule when the
// period began.
func (s Schedule) jumpedOver(reached int64, p period) bool {
	if p.start == -always {
		return false
	}
	_, ok := s.calendar.next(minuteNotBefore(reached), minuteNotBefore(p.start+p.offset))
	return ok
}

// minuteNotBefore turns seconds into minutes, rounded up.
func minuteNotBefore(seconds int64) int64 {
	minute, rest := divide(seconds, 60)
	if rest > 0 {
		minute++
	}
	return minute
}
