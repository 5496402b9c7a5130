package sim

import (
	"encoding/json"
	"time"

	"eventsv2/eventqueue"
)

// payload is the value of the events that emitters and handlers make. It says
// when the event was meant to be due, whatever became of that on its way.
type payload struct {
	Serial int           `json:"serial"`
	Depth  int           `json:"depth"`
	Delay  time.Duration `json:"delay"`
	Due    time.Time     `json:"due,omitzero"` // by the true clock
}

// payload writes the wish of an event into its payload and returns the value.
func (p *process) payload(e *eventqueue.NewEvent, wish payload) json.RawMessage {
	wish.Delay, wish.Due = e.Delay, p.fromClock(e.DelayUntil)
	value, err := json.Marshal(wish)
	if err != nil {
		panic(err)
	}
	return value
}

// serialOf is the serial number in a payload.
func serialOf(value string) int {
	var wish payload
	if err := json.Unmarshal([]byte(value), &wish); err != nil {
		panic(err)
	}
	return wish.Serial
}

// meant is when an event that is emitted now has to be due; of an event that says
// nothing of it, such as one by cron, what its row says.
func meant(value json.RawMessage, now, row time.Time) time.Time {
	var wish payload
	switch err := json.Unmarshal(value, &wish); {
	case err != nil || wish.Serial == 0:
		return row
	case wish.Due.After(now):
		return wish.Due.Truncate(time.Microsecond)
	default:
		return now.Add(wish.Delay)
	}
}
