package cronchecker

import (
	"errors"
	"fmt"
	"time"

	"eventsv2/eventqueue"
)

// maxPerDefinition bounds the slots of one definition in one pass, so that they fit
// into one batch.
const maxPerDefinition = MaxBatch

// due returns the slots of a definition that get an event now: those up to now that
// are after StartsAt and after the last recorded slot, and that the policy for missed
// slots includes. more reports that there are more of them than maxPerDefinition; the
// next pass emits these. late is how late a slot may be under MissedNone.
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

// check refuses a definition for which no event can be emitted. It may have been
// written with SQL, and must not make the transaction of the others fail.
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

// schedules parses each schedule once per pass. The next pass parses it again, and so
// uses an updated time zone database.
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
