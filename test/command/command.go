package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"
)

// The exit statuses.
const (
	ExitOK     = 0 // nothing was found
	ExitFailed = 1 // something was, or the program could not do its work
	ExitUsage  = 2 // wrong options
)

// Main runs a program until a signal ends its context, and ends the process with its
// status. A second signal kills.
func Main(run func(ctx context.Context, args []string, stdout, stderr io.Writer) int) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// Flags are the options of a program.
func Flags(name string) *flag.FlagSet {
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	return flags
}

// Parse reads options. When help is asked for it writes it and returns flag.ErrHelp.
func Parse(flags *flag.FlagSet, args []string, help io.Writer) error {
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		flags.SetOutput(help)
		flags.Usage()
		return err
	case err != nil:
		return fmt.Errorf("%w (-help lists the options)", err)
	case flags.NArg() > 0:
		return fmt.Errorf("%q is no option (-help lists them)", flags.Arg(0))
	default:
		return nil
	}
}

// Usage says why a command line was refused by Parse, and returns the exit status. Help that was
// asked for is none.
func Usage(program string, err error, stderr io.Writer) int {
	if errors.Is(err, flag.ErrHelp) {
		return ExitOK
	}
	return Fail(program, err, ExitUsage, stderr)
}

// Fail says what went wrong, and returns the exit status.
func Fail(program string, err error, status int, stderr io.Writer) int {
	_, _ = fmt.Fprintf(stderr, "%s: %v\n", program, err) // nowhere else to say it
	return status
}

// Logged runs a program that needs a directory for the logs of what it starts. The directory is
// removed when play finds nothing and nothing fails, unless it is to be kept; otherwise the
// binaries are removed from it, and stderr says where it is. The last that Logged does is to call
// conclude, for the last line. It returns the exit status.
func Logged(program string, keep bool, binaries []string, stderr io.Writer, play func(dir string) (good bool, err error), conclude func()) int {
	dir, err := os.MkdirTemp("", "eventsv2-"+program+"-")
	if err != nil {
		return Fail(program, fmt.Errorf("make a directory for logs: %w", err), ExitFailed, stderr)
	}
	good, err := play(dir)
	if err != nil {
		good = false
		Fail(program, err, ExitFailed, stderr)
	}
	if !good || keep {
		RetainLogs(program, dir, binaries, stderr)
	} else if err := os.RemoveAll(dir); err != nil {
		good = false
		Fail(program, err, ExitFailed, stderr)
	}
	conclude()
	if !good {
		return ExitFailed
	}
	return ExitOK
}

// RetainLogs removes the binaries from a directory, as they are of no use beside the logs,
// and says where those are.
func RetainLogs(program, dir string, binaries []string, stderr io.Writer) {
	for _, name := range binaries {
		_ = os.RemoveAll(filepath.Join(dir, name)) // what cannot be removed only takes up room
	}
	_, _ = fmt.Fprintf(stderr, "%s: the logs of all programs are kept in %s\n", program, dir) // nowhere else to say it
}

// Reporter prints what happens, with the time since the beginning. It is safe for concurrent
// use.
type Reporter struct {
	mu    sync.Mutex
	out   io.Writer
	began time.Time
}

// NewReporter makes a Reporter whose time begins now.
func NewReporter(out io.Writer) *Reporter { return &Reporter{out: out, began: time.Now()} }

// Report writes a line with the time.
func (t *Reporter) Report(format string, args ...any) {
	t.Print(fmt.Sprintf("%7.1fs %s\n", time.Since(t.began).Seconds(), fmt.Sprintf(format, args...)))
}

// Print writes a text as it is.
func (t *Reporter) Print(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, _ = io.WriteString(t.out, text) // nowhere else to say it
}

// Cleanups are steps that undo what a program has set up. They are safe for concurrent use.
type Cleanups struct {
	mu    sync.Mutex
	steps []func(context.Context) error
}

// OnCleanup adds a step.
func (c *Cleanups) OnCleanup(step func(context.Context) error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.steps = append(c.steps, step)
}

// CleanUp does all steps, the last first, also after ctx has ended, within a time.
func (c *Cleanups) CleanUp(ctx context.Context, limit time.Duration) (err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, step := range slices.Backward(c.steps) {
		err = errors.Join(err, step(ctx))
	}
	c.steps = nil
	return err
}
