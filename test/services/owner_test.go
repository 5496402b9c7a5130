package services

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// ownerVariable makes this test binary start a service and wait for its death.
const ownerVariable = "EVENTSV2_TEST_OWNER"

func TestMain(m *testing.M) {
	if what := os.Getenv(ownerVariable); what != "" {
		if err := own(what); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

// own starts a service, says where it is, and then does nothing until killed.
func own(what string) error {
	start := Postgres
	if what == "emulator" {
		start = Emulator
	}
	service, err := start(context.Background(), Private())
	if err != nil {
		return err
	}
	fmt.Println(service.PID, service.homeDir())
	_, err = io.Copy(io.Discard, os.Stdin)
	return errors.Join(err, service.Stop(context.Background()))
}

// homeDir is where a service that was started from binaries lives.
func (s *Service) homeDir() string {
	dir, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", s.PID))
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(dir, "/data")
}

// deadline is the overall limit of everything that a test waits for.
func deadline(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// eventually waits until the condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	err := poll(deadline(t), nil, func(context.Context) error {
		if holds() {
			return nil
		}
		return errors.New("not yet")
	})
	if err != nil {
		t.Fatalf("waiting until %s: %v", what, err)
	}
}

func processIsGone(pid int) bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

func directoryIsGone(dir string) bool {
	_, err := os.Stat(dir)
	return errors.Is(err, os.ErrNotExist)
}

// unlessAvailable skips a test of binaries where there are none.
func unlessAvailable(t *testing.T, what string) {
	t.Helper()
	switch what {
	case "postgres":
		if _, ok := findPostgres(); !ok {
			t.Skip("SKIPPED, NOT TESTED: no Postgres binaries on this machine")
		}
	case "emulator":
		if _, missing := findEmulator(t.Context()); missing != "" {
			t.Skip("SKIPPED, NOT TESTED: " + missing)
		}
	}
}

func TestNothingOutlivesTheOwner(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/proc/self/cwd"); err != nil {
		t.Skip("SKIPPED, NOT TESTED: no /proc to find the service's directory in")
	}
	for _, what := range []string{"postgres", "emulator"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			unlessAvailable(t, what)
			owner := exec.CommandContext(deadline(t), os.Args[0])
			// Only the owner may enter this directory; where that is root,
			// Postgres' user may not, and another place has to be found.
			owner.Env = append(os.Environ(), ownerVariable+"="+what, "TMPDIR="+t.TempDir())
			owner.Stderr = os.Stderr
			stdout, err := owner.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			stdin, err := owner.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			defer stdin.Close() // the owner is dead by then
			if err := owner.Start(); err != nil {
				t.Fatal(err)
			}
			line, err := bufio.NewReader(stdout).ReadString('\n')
			if err != nil {
				t.Fatalf("the owner has not started a service: %v", err)
			}
			var pid int
			var dir string
			if _, err := fmt.Sscan(line, &pid, &dir); err != nil || directoryIsGone(dir) || processIsGone(pid) {
				t.Fatalf("the owner says %q, which is not a process and its directory: %v", line, err)
			}
			if err := owner.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			if err := owner.Wait(); err == nil {
				t.Fatal("the owner was not killed")
			}
			eventually(t, "the server is gone", func() bool { return processIsGone(pid) })
			eventually(t, "its directory is gone", func() bool { return directoryIsGone(dir) })
		})
	}
}

func TestProcessOutputAndExitAreReported(t *testing.T) {
	t.Parallel()
	h, err := newHome("", "test", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx := deadline(t)
	p, err := h.run("TERM", "/bin/sh", "-c", "echo said; exit 7")
	if err != nil {
		t.Fatal(err)
	}
	<-p.exited
	if p.status != 7 || h.logTail() != "said" {
		t.Errorf("status %d and log %q, want 7 and said", p.status, h.logTail())
	}
	if p, err = h.run("TERM", "/nowhere/program"); err != nil {
		t.Fatal(err)
	}
	<-p.exited
	if p.status != 127 || !strings.Contains(h.logTail(), "/nowhere/program") {
		t.Errorf("status %d and log %q of a program that does not exist", p.status, h.logTail())
	}
	if p, err = h.run("TERM", "/bin/sleep", "3600"); err != nil {
		t.Fatal(err)
	}
	if directoryIsGone(h.dir) {
		t.Fatal("a watchdog that handed over has removed the directory")
	}
	if err := h.remove(ctx); err != nil {
		t.Fatal(err)
	}
	if !processIsGone(p.pid) || !directoryIsGone(h.dir) {
		t.Error("the process or its directory is still there")
	}
}

func TestPollEndsWithItsProcess(t *testing.T) {
	t.Parallel()
	never := func(context.Context) error { return errors.New("still asleep") }
	ended := make(chan struct{})
	close(ended)
	if err := poll(deadline(t), ended, never); !errors.Is(err, errEnded) {
		t.Errorf("got %v, want errEnded", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := poll(ctx, nil, never); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "still asleep") {
		t.Errorf("got %v, want the end of the context and the last error", err)
	}
}

// occupied returns a port that is taken until the test ends.
func occupied(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp", net.JoinHostPort(loopback, "0"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := listener.Close(); err != nil {
			t.Error(err)
		}
	})
	return listener.Addr().(*net.TCPAddr).Port
}
