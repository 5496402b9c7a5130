package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
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
		_, _ = fmt.Fprintln(stderr, "chaos:", err) // nowhere else to say it
		return exitUsage
	}
	dir, err := os.MkdirTemp("", "eventsv2-chaos-")
	if err != nil {
		_, _ = fmt.Fprintln(stderr, "chaos: make a directory for logs:", err)
		return exitFailed
	}
	t := &teller{out: stdout, began: time.Now()}
	result, err := play(ctx, opts, dir, t)
	if err == nil && opts.report != "" {
		err = os.WriteFile(opts.report, []byte(result.report(opts)), 0o644)
	}
	if err != nil {
		_, _ = fmt.Fprintln(stderr, "chaos:", err)
	}
	good := err == nil && len(result.judgement.violations) == 0
	if good && !opts.keep {
		err = os.RemoveAll(dir)
	} else {
		keepLogs(dir, stderr)
	}
	if result != nil {
		result.tellViolations(stderr)
		t.last(result.line())
	}
	if !good || err != nil {
		return exitFailed
	}
	return exitOK
}

// keepLogs removes what is of no use beside the logs and journals.
func keepLogs(dir string, stderr io.Writer) {
	for _, name := range []string{programChaosWorker, programWorker, programCron} {
		_ = os.Remove(filepath.Join(dir, name)) // what cannot be removed only takes up room
	}
	_, _ = fmt.Fprintln(stderr, "chaos: the logs and journals of all processes are kept in", dir) // nowhere else to say it
}

// teller says what happens, with the time since the beginning. It is safe for
// concurrent use.
type teller struct {
	mu    sync.Mutex
	out   io.Writer
	began time.Time
}

func (t *teller) say(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, _ = fmt.Fprintf(t.out, "%7.1fs %s\n", time.Since(t.began).Seconds(), fmt.Sprintf(format, args...)) // nowhere else to say it
}

func (t *teller) last(line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, _ = fmt.Fprintln(t.out, strings.TrimSpace(line)) // nowhere else to say it
}
