package harness

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"eventsv2/test/command"
)

// Command is what the command lines of the programs that load a deployment have in common.
type Command struct {
	Name     string
	Unit     string        // of the length of a run, and the flag for it
	Each     time.Duration // one of these units
	Longest  float64       // in units
	Draining string        // what -drain is about
	Binaries []string      // in the directory of the logs, and not worth retaining beside them
}

// Options are what a command line asks for.
type Options struct {
	Length float64 // in units of the command
	Rate   int
	Drain  time.Duration
	Report string
	Retain bool
}

// Load is how long events are emitted.
func (c Command) Load(o Options) time.Duration { return time.Duration(o.Length * float64(c.Each)) }

// maxRate is more than any machine bears.
const maxRate = 10_000

// Parse reads a command line. o has the defaults; own adds the flags of the command itself.
func (c Command) Parse(args []string, stderr io.Writer, o Options, own func(*flag.FlagSet)) (Options, error) {
	flags := command.Flags(c.Name)
	flags.Float64Var(&o.Length, c.Unit, o.Length, "how long to emit and attack, in `"+c.Unit+"`; fractions are allowed")
	flags.IntVar(&o.Rate, "rate", o.Rate, "events `per second` to emit")
	flags.DurationVar(&o.Drain, "drain", o.Drain, "how `long` "+c.Draining)
	flags.StringVar(&o.Report, "report", o.Report, "`file` for a report in Markdown")
	flags.BoolVar(&o.Retain, "retain", o.Retain, "retain the logs though nothing was found")
	own(flags)
	if err := command.Parse(flags, args, stderr); err != nil {
		return o, err
	}
	switch {
	case !(o.Length > 0 && o.Length <= c.Longest): // NaN, too
		return o, fmt.Errorf("-%s is %g: it must be more than 0 and at most %g", c.Unit, o.Length, c.Longest)
	case o.Rate < 1 || o.Rate > maxRate:
		return o, fmt.Errorf("-rate is %d: it must be from 1 to %d", o.Rate, maxRate)
	case o.Drain <= 0:
		return o, fmt.Errorf("-drain is %s: it must be positive", o.Drain)
	case o.Report != "":
		// Known now, and not after half an hour.
		if _, err := os.Stat(filepath.Dir(o.Report)); err != nil {
			return o, fmt.Errorf("-report: the folder of %s: %w", o.Report, err)
		}
	}
	return o, nil
}

// Result is what a run came to.
type Result interface {
	Good() bool      // nothing was found
	Line() string    // the verdict, which is the last line
	Details() string // what stands before it
	Page() string    // the report in Markdown
}

// Run is a program without its process, once its command line is read: it returns the exit status.
// play has a directory for what it starts. Its result is nil when there is nothing to report.
func (c Command) Run(o Options, stdout, stderr io.Writer, play func(dir string, progress *command.Reporter) (Result, error)) int {
	progress := command.NewReporter(stdout)
	var found Result
	return command.Logged(c.Name, o.Retain, c.Binaries, stderr, func(dir string) (good bool, err error) {
		if found, err = play(dir, progress); found == nil {
			return false, err
		}
		if o.Report != "" {
			err = errors.Join(err, os.WriteFile(o.Report, []byte(found.Page()), 0o644))
		}
		return found.Good(), err
	}, func() {
		if found != nil {
			progress.Print(found.Details() + strings.TrimSpace(found.Line()) + "\n")
		}
	})
}
