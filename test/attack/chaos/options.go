package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"runtime"
	"strconv"
	"time"

	"eventsv2/test/attack/harness"
	"eventsv2/test/programs"
)

// chaos is this program's part of its command line that others have as well.
var chaos = harness.Command{Name: "chaos", Unit: "minutes", Each: time.Minute, Longest: 24 * 60,
	Draining: "the number of events that are left may stand still after the last fault",
	Binaries: []string{programChaosWorker, programs.Worker, programs.Cron}}

// options is the command line.
type options struct {
	harness.Options
	seed   int64
	steady bool
}

// load is how long events are emitted.
func (o options) load() time.Duration { return chaos.Load(o.Options) }

func parseOptions(args []string, stderr io.Writer) (o options, err error) {
	defaults := harness.Options{Length: 5, Rate: 240, Drain: 2 * time.Minute}
	o.Options, err = chaos.Parse(args, stderr, defaults, func(flags *flag.FlagSet) {
		flags.Int64Var(&o.seed, "seed", 1, "`seed` of the plan and of the events; the same seed plans the same")
		flags.BoolVar(&o.steady, "steady", false, "a fault a minute, of which some programs live through all, and find what grows; see package growth")
		flags.Func("hours", "-minutes in `hours`", func(text string) error {
			hours, err := strconv.ParseFloat(text, 64)
			return errors.Join(err, flags.Set("minutes", strconv.FormatFloat(60*hours, 'f', -1, 64)))
		})
	})
	if err == nil && o.steady && runtime.GOOS != "linux" {
		err = fmt.Errorf("-steady measures processes through /proc, which only Linux has")
	}
	return o, err
}
