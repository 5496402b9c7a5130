package harness

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

	"eventsv2/test/services"
)

// The exit statuses of the attacking programs.
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

// Cleanups are steps that undo what a program has set up. They are for one goroutine.
type Cleanups struct{ steps []func(context.Context) error }

// OnCleanup adds a step.
func (c *Cleanups) OnCleanup(step func(context.Context) error) { c.steps = append(c.steps, step) }

// CleanUp does all steps, the last first, also after ctx has ended, within a time.
func (c *Cleanups) CleanUp(ctx context.Context, limit time.Duration) (err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	for _, step := range slices.Backward(c.steps) {
		err = errors.Join(err, step(ctx))
	}
	c.steps = nil
	return err
}

// Servers starts a Postgres with fsync and a Pub/Sub emulator of the program's own, which
// can be killed.
func (c *Cleanups) Servers(ctx context.Context) (postgres, emulator *services.Service, err error) {
	if postgres, err = services.Postgres(ctx, services.Durable(), services.Private()); err != nil {
		return nil, nil, err
	}
	c.OnCleanup(postgres.Stop)
	if emulator, err = services.Emulator(ctx, services.Private()); err != nil {
		return nil, nil, err
	}
	c.OnCleanup(emulator.Stop)
	if postgres.PID == 0 || emulator.PID == 0 {
		return nil, nil, errors.New("Postgres and the emulator must be started from binaries, so that they can be killed: install both")
	}
	return postgres, emulator, nil
}
