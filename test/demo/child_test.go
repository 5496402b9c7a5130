package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// script makes an executable shell script.
func script(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o700); err != nil { //nolint:gosec // a program of the test
		t.Fatal(err)
	}
	return path
}

func start(t *testing.T, text string) *child {
	t.Helper()
	c, err := startChild("child", script(t, text), filepath.Join(t.TempDir(), "log"), os.Environ())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

const sleeper = "echo child started\nexec sleep 600\n"

func TestChildDiesWithTheDemo(t *testing.T) {
	t.Parallel()
	c := start(t, sleeper)
	if err := c.ready(t.Context(), "child started"); err != nil {
		t.Fatal(err)
	}
	// The end of the pipe is all that the keeper sees of the demo's death.
	if err := c.pipe.Close(); err != nil {
		t.Fatal(err)
	}
	<-c.exited
	if c.status != 128+9 {
		t.Errorf("exit status %d, want that of SIGKILL", c.status)
	}
}

func TestChildIsKilled(t *testing.T) {
	t.Parallel()
	c := start(t, sleeper)
	c.kill()
	c.kill()
	if err := c.remove(); err != nil || c.status != 128+9 {
		t.Errorf("exit status %d and error %v, want that of SIGKILL and none", c.status, err)
	}
}

func TestChildStops(t *testing.T) {
	t.Parallel()
	c := start(t, "sleep 600 &\nnap=$!\ntrap 'kill $nap; exit 0' TERM\necho child started\nwait\n")
	if err := c.ready(t.Context(), "child started"); err != nil {
		t.Fatal(err)
	}
	if err := c.stop(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestChildThatStopsBadly(t *testing.T) {
	t.Parallel()
	c := start(t, sleeper)
	if err := c.ready(t.Context(), "child started"); err != nil {
		t.Fatal(err)
	}
	if err := c.stop(t.Context()); err == nil || !strings.Contains(err.Error(), "exit status 143") {
		t.Errorf("got %v, want the status of an unhandled SIGTERM", err)
	}
}

func TestChildThatEndsByItself(t *testing.T) {
	t.Parallel()
	c := start(t, "echo this is why\nexit 3\n")
	err := c.ready(t.Context(), "child started")
	if err == nil || !strings.Contains(err.Error(), "exit status 3") || !strings.Contains(err.Error(), "this is why") {
		t.Errorf("got %v, want its status and its last words", err)
	}
	if err := c.stop(t.Context()); err != nil {
		t.Errorf("the same failure is reported twice: %v", err)
	}
}

func TestCleanEnvironment(t *testing.T) {
	t.Parallel()
	got := cleanEnvironment([]string{"PATH=/bin", "DATABASE_URL=x", "WORKER_CONCURRENCY=1", "PGPASSWORD=y"})
	if strings.Join(got, " ") != "PATH=/bin PGPASSWORD=y" {
		t.Errorf("got %v", got)
	}
}
