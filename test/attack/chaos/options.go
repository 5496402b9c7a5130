package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"eventsv2/test/command"
)

// options is the command line.
type options struct {
	minutes float64
	seed    int64
	rate    int
	report  string
	settle  time.Duration
	keep    bool
}

// load is how long events are emitted.
func (o options) load() time.Duration { return time.Duration(o.minutes * float64(time.Minute)) }

func parseOptions(args []string, stderr io.Writer) (options, error) {
	var o options
	flags := command.Flags("chaos")
	flags.Float64Var(&o.minutes, "minutes", 5, "how long to emit and attack, in `minutes`")
	flags.Int64Var(&o.seed, "seed", 1, "`seed` of the plan and of the events; the same seed plans the same")
	flags.IntVar(&o.rate, "rate", 240, "events `per second` to emit")
	flags.StringVar(&o.report, "report", "", "`file` for a report in Markdown")
	flags.DurationVar(&o.settle, "settle", 2*time.Minute, "how `long` the number of events that are left may stand still after the last fault")
	flags.BoolVar(&o.keep, "keep", false, "keep logs and journals though nothing was found")
	if err := command.Parse(flags, args, stderr); err != nil {
		return o, err
	}
	switch {
	case !(o.minutes > 0 && o.minutes <= 24*60): // NaN, too
		return o, fmt.Errorf("-minutes is %g: it must be more than 0 and at most a day", o.minutes)
	case o.rate < 1:
		return o, fmt.Errorf("-rate is %d: it must be positive", o.rate)
	case o.settle <= 0:
		return o, fmt.Errorf("-settle is %s: it must be positive", o.settle)
	}
	if o.report != "" {
		// Known now, and not after half an hour.
		if _, err := os.Stat(filepath.Dir(o.report)); err != nil {
			return o, fmt.Errorf("-report: the folder of %s: %w", o.report, err)
		}
	}
	return o, nil
}
