package service_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/service"
	"eventsv2/test/testenv"
)

var update = flag.Bool("update", false, "write the golden files anew")

// lines holds the output of a logger. It is safe for concurrent use.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// varies matches what differs from run to run.
var varies = regexp.MustCompile(`\b\d+(\.\d+)?(µs|ms|s)\b|\b\d+m\d+(\.\d+)?s\b|claim_id=\d+`)

// TestProgramLogsThroughSlog embeds the queue in a program with a logger of log/slog: a run
// that is tried again, one that fails for good, and the start and end of the program.
func TestProgramLogsThroughSlog(t *testing.T) {
	t.Parallel()
	var out lines
	logger := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
	s, err := service.Open(testenv.Context(t), service.Config{DatabaseURL: testenv.DatabaseURL(t), Notifier: service.Memory, SlogLogger: logger,
		NoRelay: true, NoCron: true, NoPruner: true})
	if err != nil {
		t.Fatal(err)
	}
	ran, policy := make(chan string, 10), eventqueue.Policy{MaxRetries: new(2), Backoff: eventqueue.Exponential(time.Millisecond, time.Millisecond)}
	for name, handler := range map[string]eventqueue.HandlerFunc{
		"flaky": func(_ context.Context, run *eventqueue.Run) error {
			if run.Retries == 0 {
				return errors.New("the shop does not answer")
			}
			ran <- "flaky"
			return nil
		},
		"broken": func(context.Context, *eventqueue.Run) error {
			defer func() { ran <- "broken" }()
			return eventqueue.Permanent(errors.New("no such order"))
		},
	} {
		if err := s.Register(eventqueue.HandlerKey{Name: name}, handler, policy); err != nil {
			t.Fatal(err)
		}
	}
	stop := run(t, s)
	for _, name := range []string{"flaky", "broken"} {
		if _, err := s.Emit(testenv.Context(t), eventqueue.NewEvent{Name: name, Canvas: eventqueue.CanvasID{1}, Value: []byte(`1`)}); err != nil {
			t.Fatal(err)
		}
		expect(t, ran, name)
	}
	testenv.Eventually(t, "the end of the failed one is logged", func() bool { return strings.Contains(out.String(), "no such order") })
	if err := errors.Join(stop(), s.Close()); err != nil {
		t.Error(err)
	}

	all := strings.Split(strings.TrimSpace(varies.ReplaceAllString(out.String(), "<time>")), "\n")
	// A database that is slow in the last moment is none of the program's lines.
	all = slices.DeleteFunc(all, func(line string) bool { return strings.Contains(line, "could not record that the worker has stopped") })
	slices.Sort(all) // the parts of a program run side by side
	got := strings.Join(all, "\n") + "\n"
	const golden = "testdata/slog.golden"
	if *update {
		if err := errors.Join(os.MkdirAll("testdata", 0o755), os.WriteFile(golden, []byte(got), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil || string(want) != got {
		t.Errorf("%v: the log is\n%s\nwant\n%s", err, got, want)
	}
}
