package main

import (
	"fmt"
	"io"
	"time"

	"eventsv2/test/command"
)

// options is the command line.
type options struct {
	hours  float64
	rate   int
	every  time.Duration
	settle time.Duration
	report string
	keep   bool
}

// load is how long events are emitted.
func (o options) load() time.Duration { return time.Duration(o.hours * float64(time.Hour)) }

// maxHours is a week.
const maxHours = 7 * 24

func parseOptions(args []string, stderr io.Writer) (options, error) {
	var o options
	flags := command.Flags("soak")
	flags.Float64Var(&o.hours, "hours", 1, "how long to emit, in `hours`; fractions are allowed")
	flags.IntVar(&o.rate, "rate", 100, "events `per second` to emit")
	flags.DurationVar(&o.every, "every", time.Minute, "`time` between two faults, at least 5s")
	flags.DurationVar(&o.settle, "settle", 5*time.Minute, "how `long` the queue may take to come to rest at the end")
	flags.StringVar(&o.report, "report", "", "`file` for a report in Markdown")
	flags.BoolVar(&o.keep, "keep", false, "keep the logs though nothing was found")
	if err := command.Parse(flags, args, stderr); err != nil {
		return o, err
	}
	switch {
	case !(o.hours > 0 && o.hours <= maxHours):
		return o, fmt.Errorf("-hours is %g: it must be more than 0 and at most a week (%d)", o.hours, maxHours)
	case o.rate < 1 || o.rate > 10_000:
		return o, fmt.Errorf("-rate is %d: it must be from 1 to 10000", o.rate)
	case o.every < 5*time.Second:
		return o, fmt.Errorf("-every is %s: it must be at least 5s", o.every)
	case o.settle <= 0:
		return o, fmt.Errorf("-settle is %s: it must be positive", o.settle)
	}
	return o, nil
}
