package main

import (
	"context"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"eventsv2/test/services"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestExecutePassesServicesToTheCommand(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		args   []string
		status int
		fails  bool
	}{
		"success":           {[]string{"true"}, 0, false},
		"status":            {[]string{"sh", "-c", "exit 3"}, 3, false},
		"environment":       {[]string{"sh", "-c", `test "$DATABASE_URL" = here`}, 0, false},
		"killed":            {[]string{"sh", "-c", "kill -9 $$"}, 128 + 9, false},
		"no such command":   {[]string{"/nowhere/command"}, ownFailure, true},
		"status of a child": {[]string{"sh", "-c", "sh -c 'exit 4'"}, 4, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			status, err := execute(test.args, append(os.Environ(), "DATABASE_URL=here"), nil)
			if status != test.status || (err != nil) != test.fails {
				t.Errorf("got status %d and %v, want status %d", status, err, test.status)
			}
		})
	}
}

func TestSignalsArePassedOn(t *testing.T) {
	t.Parallel()
	signals := make(chan os.Signal, 1)
	signals <- syscall.SIGTERM
	// It becomes the sleep, which would otherwise outlive its shell.
	status, err := execute([]string{"sh", "-c", "exec sleep 3600"}, os.Environ(), signals)
	if status != 128+15 || err != nil {
		t.Errorf("got status %d and %v, want 143", status, err)
	}
}

func TestRunNeedsACommand(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{nil, {"--"}} {
		status, err := run(t.Context(), args, nil, io.Discard)
		if status != ownFailure || err == nil || !strings.Contains(err.Error(), "say what to run") {
			t.Errorf("with %q: status %d, %v", args, status, err)
		}
	}
}

// The command finds both services in its environment, or is told in capitals.
func TestRunReportsMissingServices(t *testing.T) {
	t.Parallel()
	var report strings.Builder
	script := `test -n "$DATABASE_URL" && { test -n "$PUBSUB_EMULATOR_HOST" || exit 9; } && exit 5`
	status, err := run(t.Context(), []string{"--", "sh", "-c", script}, nil, &report)
	if err != nil {
		t.Fatal(err)
	}
	said := report.String()
	missing := strings.Contains(said, "THE PUB/SUB EMULATOR IS MISSING: ALL TESTS THAT NEED IT WILL BE SKIPPED")
	if want := map[bool]int{true: 9, false: 5}[missing]; status != want {
		t.Errorf("status %d, want %d; it said:\n%s", status, want, said)
	}
	if !strings.Contains(said, "withservices: Postgres: ") || strings.Count(said, "\n") != 2 {
		t.Errorf("it said:\n%s", said)
	}
}

func TestStopAllStopsNothingTwice(t *testing.T) {
	t.Parallel()
	if err := stopAll(context.Background(), []*services.Service{{Origin: "elsewhere"}}); err != nil {
		t.Error(err)
	}
}
