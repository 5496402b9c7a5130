package view

import (
	"time"

	"eventsv2/cronchecker"
	"eventsv2/eventqueue"
	"eventsv2/internal/humantime"
)

// Cron is a cron definition.
type Cron struct {
	ID       cronchecker.CronID  `json:"id"`
	Canvas   eventqueue.CanvasID `json:"canvas_id" format:"uuid"`
	Name     string              `json:"name" doc:"Of the definition and of its events, whose module is CRON."`
	Schedule string              `json:"schedule"`
	TimeZone string              `json:"time_zone"`
	Missed   cronchecker.Missed  `json:"missed" enum:"latest,all,none" doc:"Which of the slots that passed while no checker ran are emitted late."`

	SkipIfPaused  bool `json:"skip_if_paused,omitempty" doc:"Slots are skipped that come while the handler is paused or blocked."`
	SkipIfRunning bool `json:"skip_if_running,omitempty" doc:"Slots are skipped that come while an earlier event of the definition waits or runs."`

	Enabled  bool             `json:"enabled"`
	StartsAt time.Time        `json:"starts_at" doc:"Only slots after it are due."`
	LastSlot *time.Time       `json:"last_slot,omitempty"`
	Skipped  cronchecker.Skip `json:"last_slot_skipped,omitempty" enum:"paused,running" doc:"Why the last slot was skipped; absent: it was not."`
}

// CronOf is a definition. Its records are the newest, the newest first.
func CronOf(d cronchecker.Definition, records []cronchecker.Record) Cron {
	c := Cron{d.ID, d.Canvas, d.Name, d.Schedule, d.TimeZone, d.Missed, d.SkipIfPaused, d.SkipIfRunning, d.Enabled, d.StartsAt.UTC(), Time(d.LastSlot), ""}
	if len(records) > 0 {
		c.Skipped = records[0].Skipped
	}
	return c
}

// CronChange is the result of switching or removing a definition.
type CronChange struct {
	Canvas  eventqueue.CanvasID `json:"canvas_id" format:"uuid"`
	Name    string              `json:"name"`
	Enabled bool                `json:"enabled" doc:"False as well of one that was removed."`
	Removed bool                `json:"removed,omitempty"`
}

// CronsOf is a list of definitions with their newest records.
func CronsOf(list []cronchecker.Definition, records map[cronchecker.CronID][]cronchecker.Record) Page[Cron] {
	return ListOf(list, func(d cronchecker.Definition) Cron { return CronOf(d, records[d.ID]) })
}

// CronIDs are the ids of definitions.
func CronIDs(list []cronchecker.Definition) []cronchecker.CronID {
	return All(list, func(d cronchecker.Definition) cronchecker.CronID { return d.ID })
}

// Words is the schedule in words.
func (c Cron) Words() string { return scheduleWords(c.Schedule) }

// EnabledText is yes or no.
func (c Cron) EnabledText() string {
	if c.Enabled {
		return "yes"
	}
	return "no"
}

// SkipsText is when slots are skipped; "" for never.
func (c Cron) SkipsText() string {
	switch {
	case c.SkipIfPaused && c.SkipIfRunning:
		return "paused, running"
	case c.SkipIfPaused:
		return "paused"
	case c.SkipIfRunning:
		return "running"
	default:
		return ""
	}
}

// LastSlotText is the last slot, and whether it was skipped; "" if there was none.
func (c Cron) LastSlotText() string {
	if c.LastSlot == nil {
		return ""
	}
	text := humantime.Time(*c.LastSlot)
	if c.Skipped != "" {
		text += " (skipped: " + string(c.Skipped) + ")"
	}
	return text
}

// Slot is a slot of a schedule: one to come, or one that has passed.
type Slot struct {
	Slot    time.Time          `json:"slot"`
	Local   string             `json:"local,omitempty" doc:"The same time by the clock of the schedule's time zone."`
	Note    string             `json:"note,omitempty" doc:"What a change of that clock does to the slot."`
	Event   eventqueue.EventID `json:"event_id,omitempty" doc:"The event that was emitted for it."`
	Skipped cronchecker.Skip   `json:"skipped,omitempty" enum:"paused,running" doc:"Why it was skipped."`
}

// SlotOf is a slot to come.
func SlotOf(s cronchecker.PreviewedSlot) Slot {
	return Slot{Slot: s.At.UTC(), Local: s.At.Format(time.RFC3339), Note: s.Note}
}

// PassedSlotOf is a slot that has a record.
func PassedSlotOf(r cronchecker.Record) Slot {
	return Slot{Slot: r.Slot.UTC(), Event: r.Event, Skipped: r.Skipped}
}

// SkippedText is why a slot was skipped.
func (s Slot) SkippedText() string {
	switch s.Skipped {
	case cronchecker.SkippedPaused:
		return "its handler was paused or blocked"
	case cronchecker.SkippedRunning:
		return "an earlier event ran or waited"
	default:
		return ""
	}
}
