package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"eventsv2/test/command"
)

// name is that of the program.
const name = "chaos"

// options is the command line.
type options struct {
	minutes float64
	rate    int
	drain   time.Duration
	report  string
	retain  bool
	seed    int64
	steady  bool
}

// load is how long events are emitted.
func (o options) load() time.Duration { return time.Duration(o.minutes * float64(time.Minute)) }

// What is more than any machine bears: events a second, and minutes that are remembered until they are checked.
const (
	maxRate    = 10_000
	maxMinutes = 24 * 60
)

func parseOptions(args []string, stderr io.Writer) (o options, err error) {
	flags := command.Flags(name)
	flags.Float64Var(&o.minutes, "minutes", 5, "how long to emit and attack, in `minutes`; fractions are allowed")
	flags.Func("hours", "-minutes in `hours`", func(text string) error {
		hours, err := strconv.ParseFloat(text, 64)
		o.minutes = 60 * hours
		return err
	})
	flags.IntVar(&o.rate, "rate", 240, "events `per second` to emit")
	flags.DurationVar(&o.drain, "drain", 2*time.Minute, "how `long` the number of events that are left may stand still after the last fault")
	flags.StringVar(&o.report, "report", "", "`file` for a report in Markdown")
	flags.BoolVar(&o.retain, "retain", false, "retain the logs though nothing was found")
	flags.Int64Var(&o.seed, "seed", 1, "`seed` of the plan and of the events; the same seed plans the same")
	flags.BoolVar(&o.steady, "steady", false, "a fault a minute, of which some programs live through all, and find what grows; see package growth")
	if err := command.Parse(flags, args, stderr); err != nil {
		return o, err
	}
	switch {
	case !(o.minutes > 0 && o.minutes <= maxMinutes): // NaN, too
		return o, fmt.Errorf("-minutes is %g: it must be more than 0 and at most %d", o.minutes, maxMinutes)
	case o.rate < 1 || o.rate > maxRate:
		return o, fmt.Errorf("-rate is %d: it must be from 1 to %d", o.rate, maxRate)
	case o.drain <= 0:
		return o, fmt.Errorf("-drain is %s: it must be positive", o.drain)
	case o.steady && runtime.GOOS != "linux":
		return o, errors.New("-steady measures processes through /proc, which only Linux has")
	case o.report != "":
		// Known now, and not after half an hour.
		if _, err := os.Stat(filepath.Dir(o.report)); err != nil {
			return o, fmt.Errorf("-report: the folder of %s: %w", o.report, err)
		}
	}
	return o, nil
}
