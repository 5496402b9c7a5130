package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"
)

// The exit statuses; see doc.go.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// run is the program without its process: it returns the exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	opts, err := parseOptions(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitOK
	case err != nil:
		return fail(stderr, err, exitUsage)
	case runtime.GOOS != "linux":
		return fail(stderr, errors.New("the processes are measured through /proc, which only Linux has"), exitFailed)
	}
	dir, err := os.MkdirTemp("", "eventsv2-soak-")
	if err != nil {
		return fail(stderr, fmt.Errorf("make a directory for logs: %w", err), exitFailed)
	}
	tell := &teller{out: stdout, began: time.Now()}
	found, err := play(ctx, opts, dir, tell)
	if err != nil {
		fail(stderr, err, exitFailed)
	}
	if found != nil {
		if opts.report != "" {
			if failure := os.WriteFile(opts.report, []byte(found.markdown()), 0o644); failure != nil {
				err = errors.Join(err, failure)
				fail(stderr, failure, exitFailed)
			}
		}
		tell.print(found.details())
	}
	good := err == nil && found.good()
	if good && !opts.keep {
		if err := os.RemoveAll(dir); err != nil {
			fail(stderr, err, exitFailed)
			good = false
		}
	} else {
		keepLogs(dir, stderr)
	}
	if found != nil {
		tell.print(found.line() + "\n")
	}
	if !good {
		return exitFailed
	}
	return exitOK
}

func fail(stderr io.Writer, err error, status int) int {
	_, _ = fmt.Fprintln(stderr, "soak:", err) // nowhere else to say it
	return status
}

// keepLogs removes what is of no use beside the logs.
func keepLogs(dir string, stderr io.Writer) {
	for _, name := range []string{programWorker, programCron} {
		_ = os.Remove(filepath.Join(dir, name)) // what cannot be removed only takes up room
	}
	_, _ = fmt.Fprintln(stderr, "soak: the logs of all processes are kept in", dir) // nowhere else to say it
}

// teller says what happens, with the time since the beginning. It is safe for
// concurrent use.
type teller struct {
	mu    sync.Mutex
	out   io.Writer
	began time.Time
}

func (t *teller) say(format string, args ...any) {
	t.print(fmt.Sprintf("%9s %s\n", time.Since(t.began).Round(time.Second), fmt.Sprintf(format, args...)))
}

func (t *teller) print(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, _ = io.WriteString(t.out, text) // nowhere else to say it
}
