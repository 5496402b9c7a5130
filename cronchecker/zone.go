package cronchecker

import (
	"fmt"
	"math"
	"strings"
	"time"
	_ "time/tzdata" // an image made FROM scratch has no zones of its own
)

// loadZone finds a time zone by its name in the IANA database; empty is UTC.
// Names that mean another zone on another machine, and the variants that count
// leap seconds, are refused.
func loadZone(name string) (*time.Location, error) {
	const advice = "use a name of the IANA database, as in Europe/Berlin, or UTC"
	switch {
	case name == "":
		return time.UTC, nil
	case name == "Local" || name == "localtime" || name == "posixrules" || strings.HasPrefix(name, "right/"):
		return nil, fmt.Errorf("time zone %q does not name one place: %s", name, advice)
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("time zone %q is unknown: %s: %w", name, advice, err)
	}
	return zone, nil
}

// always stands for the ends of time, with room for an offset beyond it.
const always = math.MaxInt64 / 4

// period is a time during which a zone's offset does not change: from start to
// before end, in seconds of Unix time. An offset is what the clock on the wall
// is ahead of UTC, in seconds.
type period struct {
	zone               *time.Location
	start, end, offset int64
}

// periodAt returns the period in which t lies.
func periodAt(zone *time.Location, t int64) period {
	at := time.Unix(t, 0).In(zone)
	_, offset := at.Zone()
	p := period{zone: zone, start: -always, end: always, offset: int64(offset)}
	start, end := at.ZoneBounds()
	if !start.IsZero() {
		p.start = start.Unix()
	}
	if !end.IsZero() {
		p.end = end.Unix()
	}
	return p
}

// reached returns how far the zone's clock had come before the period began:
// every wall-clock time before it had been shown or jumped over. It is in wall
// clock seconds. After a jump forwards it is less than what the clock shows at
// the start of the period; after one backwards it is more.
func (p period) reached() int64 {
	// No two offsets are further apart than this, so that what the clock showed
	// earlier than this before the period is before anything in it.
	const lookBack = 2 * secondsPerDay
	reached := int64(-always)
	for before := p; before.start != -always && before.start > p.start-lookBack; {
		before = periodAt(p.zone, before.start-1)
		reached = max(reached, before.end+before.offset)
	}
	return reached
}
