package cronchecker

import (
	"errors"
	"fmt"
	"time"

	"eventsv2/eventqueue"
)

// maxPerDefinition bounds the slots of one definition in one pass. They go into
// one batch.
const maxPerDefinition = MaxBatch

// due decides for which slots of a definition an event is emitted at a time:
// those after the last recorded one and after StartsAt, up to now, as the policy
// for missed slots has it. more tells that the bound cut some off; they come in
// the next pass. late is how late a slot may be under MissedNone.
func due(d Definition, schedule Schedule, now time.Time, late time.Duration) (slots []Slot, more bool) {
	after := d.StartsAt
	if d.LastSlot.After(after) {
		after = d.LastSlot
	}
	if d.Missed == MissedAll {
		times := schedule.All(after, now, maxPerDefinition+1)
		if more = len(times) > maxPerDefinition; more {
			times = times[:maxPerDefinition]
		}
		for _, at := range times {
			slots = append(slots, d.slot(at))
		}
		return slots, more
	}
	latest, ok := schedule.Latest(after, now)
	if !ok || d.Missed == MissedNone && now.Sub(latest) > late {
		return nil, false
	}
	return []Slot{d.slot(latest)}, false
}

// check refuses a definition for which no event can be emitted: it may have been
// written with SQL, and must not fail the transaction of the others.
func (d Definition) check() error {
	if d.Canvas == (eventqueue.CanvasID{}) {
		return errors.New("canvas_id: is missing")
	}
	if field, err := eventqueue.CheckHandler(d.Handler()); err != nil {
		return fmt.Errorf("%s: %w", field, err)
	}
	if d.badStart != "" {
		return fmt.Errorf("starts_at: is %s: it must be a time in the years 1 to 9999", d.badStart)
	}
	return nil
}

// schedules parses each schedule of one pass once. It is not reused in the next pass,
// so that a new time zone database is noticed.
type schedules map[[2]string]parsedSchedule

type parsedSchedule struct {
	schedule Schedule
	err      error
}

func (s schedules) of(d Definition) (Schedule, error) {
	key := [2]string{d.Schedule, d.TimeZone}
	parsed, known := s[key]
	if !known {
		parsed.schedule, parsed.err = ParseSchedule(d.Schedule, d.TimeZone)
		s[key] = parsed
	}
	return parsed.schedule, parsed.err
}
