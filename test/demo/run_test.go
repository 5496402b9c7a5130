package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"eventsv2/test/command"
)

// e2eLimit is generous: it covers compiling both programs on a busy machine.
const e2eLimit = 6 * time.Minute

func TestDemoPrintsItsCounts(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), e2eLimit)
	defer cancel()
	const events = 40
	var stdout, stderr strings.Builder
	status := run(ctx, []string{"-notifier", notifierMemory, "-input", smallInput(t, events)}, &stdout, &stderr)
	if status != command.ExitOK {
		t.Fatalf("exit status %d\n%s\n%s", status, stdout.String(), stderr.String())
	}
	lines := strings.Split(strings.TrimSpace(stdout.String()), "\n")
	last := regexp.MustCompile(fmt.Sprintf(`^demo: emitted=%d completed=%d failed=0 lost=0 duplicates=\d+ seconds=\d+\.\d$`, events, events))
	if !last.MatchString(lines[len(lines)-1]) {
		t.Errorf("the last line is %q, want %s", lines[len(lines)-1], last)
	}
	for _, want := range []string{"paused ", "unpaused ", "kill -9 worker-", "on purpose", "byte for byte"} {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("the output lacks %q:\n%s", want, stdout.String())
		}
	}
}

func TestInterruptedDemoStops(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	// The first line is printed before anything is started.
	out := &stopper{stop: cancel}
	var stderr strings.Builder
	status := run(ctx, []string{"-notifier", notifierMemory, "-input", smallInput(t, 2)}, out, &stderr)
	if status != exitStopped || !strings.Contains(out.String(), "stopped by a signal") || stderr.Len() > 0 {
		t.Errorf("exit status %d\n%s\n%s", status, out, stderr.String())
	}
}

// stopper ends a context as soon as something is printed.
type stopper struct {
	strings.Builder
	stop context.CancelFunc
}

func (s *stopper) Write(p []byte) (int, error) {
	s.stop()
	return s.Builder.Write(p)
}

// smallInput makes a file with a number of events of three handlers.
func smallInput(t *testing.T, events int) string {
	t.Helper()
	var text strings.Builder
	for i := range events {
		fmt.Fprintf(&text, `{"canvas_id":"7f0c2a4e-5b1d-4c8e-9a36-2d1f0e4b8c71","module":"WORKER","name":"händler %d","modifier":"_","value":{ "n" : %d.0e0,"x":"\u00e9"}}`+"\n", i%3, i)
	}
	path := filepath.Join(t.TempDir(), "small.ndjson")
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// The dashboard of the demo can be opened until a signal comes, which is no failure after the verdict.
func TestDemoServesTheDashboard(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), e2eLimit)
	defer cancel()
	out, in := io.Pipe()
	ended := make(chan int, 1)
	var stderr strings.Builder
	go func() {
		defer func() { _ = in.Close() }()
		ended <- run(ctx, []string{"-notifier", notifierMemory, "-ui", "-input", smallInput(t, 2)}, in, &stderr)
	}()
	var printer strings.Builder
	address := ""
	for lines := bufio.NewScanner(io.TeeReader(out, &printer)); lines.Scan(); {
		if _, at, found := strings.Cut(lines.Text(), "the dashboard is at "); found {
			address = at
		}
		if strings.Contains(lines.Text(), "Ctrl-C") {
			if status := answer(t, address); status != http.StatusOK {
				t.Errorf("the dashboard at %q answers %d", address, status)
			}
			cancel()
		}
	}
	lines := strings.Split(strings.TrimSpace(printer.String()), "\n")
	if status := <-ended; status != command.ExitOK || !strings.HasPrefix(lines[len(lines)-1], "demo: emitted=2 ") {
		t.Errorf("exit status %d\n%s\n%s", status, &printer, &stderr)
	}
	if status := answer(t, address); status != 0 {
		t.Errorf("the dashboard still answers %d", status)
	}
}

// answer asks for a page, and returns the status; 0: nothing answers.
func answer(t *testing.T, address string) int {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		return 0
	}
	if err := response.Body.Close(); err != nil {
		t.Error(err)
	}
	return response.StatusCode
}
