package cronchecker

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"eventsv2/eventqueue"
)

// Module and Modifier belong to the handler key of every event that is emitted for a
// slot. The key has the name of the definition.
const (
	Module   = "CRON"
	Modifier = "_"
)

// CronID identifies a definition. It is never used again for another one.
type CronID int64

// String returns the id in decimal, as it is in the database.
func (id CronID) String() string { return strconv.FormatInt(int64(id), 10) }

// Missed is a policy for slots that passed while no checker ran.
type Missed string

// The policies for missed slots.
const (
	// MissedLatest emits an event for the latest slot that is due, and none for
	// earlier ones. It is the default.
	MissedLatest Missed = "latest"
	// MissedAll emits an event for every slot that is due, the oldest first.
	MissedAll Missed = "all"
	// MissedNone emits an event for the latest slot that is due, unless it is late
	// by more than two intervals of the checker (or two minutes, if that is longer).
	MissedNone Missed = "none"
)

// ParseMissed reads a policy; empty is MissedLatest.
func ParseMissed(text string) (Missed, error) {
	switch m := Missed(text); m {
	case "":
		return MissedLatest, nil
	case MissedLatest, MissedAll, MissedNone:
		return m, nil
	default:
		return "", fmt.Errorf("missed %q is unknown: use latest, all or none", text)
	}
}

// NewDefinition is a definition that is to be added.
type NewDefinition struct {
	// Canvas and Name identify the definition. They are also the canvas and the name
	// of its events.
	Canvas eventqueue.CanvasID
	Name   string

	// Schedule is the text for ParseSchedule.
	Schedule string

	// TimeZone is the IANA name of the time zone of the schedule. Default (""): UTC.
	TimeZone string

	// Missed is the policy for missed slots. Default (""): MissedLatest.
	Missed Missed

	Skips
}

// Skips are when a slot is recorded as skipped in place of an event. Default (false): never.
type Skips struct {
	// SkipIfPaused skips a slot that comes while a rule would hold its event back.
	SkipIfPaused bool
	// SkipIfRunning skips a slot that comes while an earlier event of the definition has not ended: it
	// waits or runs.
	SkipIfRunning bool
}

// Skip is why a slot was skipped.
type Skip string

// The reasons for which slots are skipped. The empty one is of a slot with an event.
const (
	SkippedPaused  Skip = "paused"
	SkippedRunning Skip = "running"
)

// Met lists obstacles for the slots of a definition. The zero value has none.
type Met struct {
	// Paused and Running are why all of them are skipped, and Alone that no slot gets an event after
	// one that did.
	Paused, Running, Alone bool
}

// Next returns why the next slot is skipped; empty: it gets an event, and so the one after it may meet that.
func (m *Met) Next() Skip {
	switch {
	case m == nil:
		return ""
	case m.Paused:
		return SkippedPaused
	case m.Running:
		return SkippedRunning
	}
	m.Running = m.Alone
	return ""
}

// Definition is a cron definition in the database.
type Definition struct {
	ID       CronID
	Canvas   eventqueue.CanvasID
	Name     string
	Schedule string
	TimeZone string
	Missed   Missed
	Enabled  bool
	Skips

	// StartsAt is when the definition was added, replaced or enabled again. Only
	// slots after it are due.
	StartsAt time.Time

	// LastSlot is the newest slot that has an event or was skipped; zero if there is none.
	LastSlot time.Time

	// badStart is the text in the database if StartsAt cannot be read from it.
	badStart string
}

// Handler returns the key of the handler of the definition's events.
func (d Definition) Handler() eventqueue.HandlerKey {
	return eventqueue.HandlerKey{Module: Module, Name: d.Name, Modifier: Modifier}
}

// Slot is one time at which a definition is due, with the event to emit for it.
type Slot struct {
	Cron  CronID
	At    time.Time
	Event eventqueue.NewEvent
}

// slotValue is the value of the event.
type slotValue struct {
	CronID   CronID `json:"cron_id"`
	Name     string `json:"name"`
	Slot     string `json:"slot"`
	Schedule string `json:"schedule"`
	TimeZone string `json:"time_zone"`
}

// Event returns the event of the slot at a time.
func (d Definition) Event(at time.Time) eventqueue.NewEvent { return d.slot(at).Event }

// slot makes the definition's Slot at a time.
func (d Definition) slot(at time.Time) Slot {
	value, err := json.Marshal(slotValue{d.ID, d.Name, at.UTC().Format(time.RFC3339), d.Schedule, d.TimeZone})
	if err != nil {
		panic(fmt.Sprintf("cronchecker: strings and a number do not become JSON: %v", err))
	}
	return Slot{
		Cron: d.ID,
		At:   at,
		Event: eventqueue.NewEvent{
			Canvas: d.Canvas, Module: Module, Name: d.Name, Modifier: Modifier, Value: value,
		},
	}
}
