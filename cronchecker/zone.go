package cronchecker

import (
	"fmt"
	"math"
	"strings"
	"time"
	_ "time/tzdata" // an image made FROM scratch has no zones of its own
)

// loadZone finds a time zone by its name in the IANA database; an empty name is UTC.
// It refuses names whose meaning depends on the machine, and the variants that count
// leap seconds.
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

// always stands for the end of time, and -always for its beginning. An offset can be
// added to either without an overflow.
const always = math.MaxInt64 / 4

// period is a time during which a zone's offset does not change: [start, end) in
// seconds of Unix time. The offset is how far the wall clock is ahead of UTC, in
// seconds.
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

// reached returns how far the zone's clock had advanced before the period began, in
// wall-clock seconds: it had shown or skipped every earlier time. After a change
// forwards the result is less than what the clock shows at the start of the period;
// after a change backwards it is more.
func (p period) reached() int64 {
	// No two offsets are further apart than this. So whatever the clock showed more
	// than this long before the period is earlier than everything within the period.
	const lookBack = 2 * secondsPerDay
	reached := int64(-always)
	for before := p; before.start != -always && before.start > p.start-lookBack; {
		before = periodAt(p.zone, before.start-1)
		reached = max(reached, before.end+before.offset)
	}
	return reached
}
