package cronchecker

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"eventsv2/eventqueue"
)

// Module and Modifier are those of every event that is emitted for a slot; its
// name is that of the definition.
const (
	Module   = "CRON"
	Modifier = "_"
)

// CronID identifies a definition for ever.
type CronID int64

// String returns the id in decimal, as it stands in the database.
func (id CronID) String() string { return strconv.FormatInt(int64(id), 10) }

// Missed says what becomes of slots that passed while no checker ran.
type Missed string

// The policies for missed slots.
const (
	// MissedLatest emits for the latest slot that is due and for none before
	// it. It is the default.
	MissedLatest Missed = "latest"
	// MissedAll emits for every slot that is due, the oldest first.
	MissedAll Missed = "all"
	// MissedNone emits for the latest slot that is due if it is hardly late
	// (two intervals of the checker, at least two minutes), else for none.
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

// NewDefinition is what an operator hands in.
type NewDefinition struct {
	// Canvas and Name are where the events go, and identify the definition.
	Canvas eventqueue.CanvasID
	Name   string

	// Schedule is the text for ParseSchedule.
	Schedule string

	// TimeZone is the IANA name of the zone whose clock counts. Default (""):
	// UTC.
	TimeZone string

	// Missed is the policy for missed slots. Default (""): MissedLatest.
	Missed Missed
}

// Definition is a cron definition as it stands in the database.
type Definition struct {
	ID       CronID
	Canvas   eventqueue.CanvasID
	Name     string
	Schedule string
	TimeZone string
	Missed   Missed
	Enabled  bool

	// StartsAt is when the definition was made, replaced or enabled again: only
	// slots after it are due.
	StartsAt time.Time

	// LastSlot is the newest slot that has been emitted; zero if there is none.
	LastSlot time.Time

	// badStart is what stands in the database in place of a StartsAt.
	badStart string
}

// Handler is the key of the handler that the definition's events are for.
func (d Definition) Handler() eventqueue.HandlerKey {
	return eventqueue.HandlerKey{Module: Module, Name: d.Name, Modifier: Modifier}
}

// Slot is one point in time at which a definition is due, with the event that
// is to be emitted for it.
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

// slot makes the Slot of the definition at a time that is due.
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
