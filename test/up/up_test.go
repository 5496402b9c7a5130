package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"eventsv2/test/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// TestMakeUpRunsALocalEnvironment does what a newcomer does: make up, the command that it prints, a changed handlers
// file with and without a mistake, and Ctrl-C, after which nothing is left.
func TestMakeUpRunsALocalEnvironment(t *testing.T) {
	t.Parallel()
	testenv.Promised(t, 30*time.Second) // it compiles first
	cmd := exec.CommandContext(t.Context(), "make", "--no-print-directory", "up", "NOTIFIER=postgres")
	cmd.Dir = "../.."
	cmd.Env = append(os.Environ(), "DATABASE_URL="+testenv.EmptyDatabaseURL(t))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var said strings.Builder
	var reading sync.WaitGroup
	reading.Go(func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			mu.Lock()
			said.WriteString(lines.Text() + "\n")
			mu.Unlock()
		}
	})
	text := func() string {
		mu.Lock()
		defer mu.Unlock()
		return said.String()
	}
	defer func() {
		if t.Failed() {
			_ = cmd.Cancel()
			t.Logf("make up said:\n%s", text())
		}
	}()
	await := func(what string) {
		t.Helper()
		testenv.Eventually(t, what, func() bool { return strings.Contains(text(), what) })
	}
	await("Ctrl-C")
	line := func(label string) string {
		t.Helper()
		found := regexp.MustCompile(`(?m)^  ` + label + ` +(.*)$`).FindStringSubmatch(text())
		if found == nil {
			t.Fatalf("it does not say %s", label)
		}
		return found[1]
	}
	shell := func(command string) (printed string, err error) {
		cmd := exec.CommandContext(testenv.Context(t), "sh", "-c", command)
		cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	emit := func(name string) {
		t.Helper()
		if printed, err := shell(strings.Replace(line("emit an event"), "--name hello", "--name "+name+" --attribute order=17", 1)); err != nil {
			t.Fatalf("the printed command: %v\n%s", err, printed)
		}
	}
	emit("hello")
	await(`for WORKER/hello/_: "{\"name\": \"Ada\"}"`)
	eventctl, _, _ := strings.Cut(line("emit an event"), " emit ")
	testenv.Eventually(t, "the event is found, and has completed", func() bool {
		found, err := shell(eventctl + " find --attribute order=17 --json")
		return err == nil && strings.Contains(found, `"state":"completed"`)
	})
	if printed, err := shell(eventctl + " find --attribute order=18"); err == nil || !strings.Contains(printed, "no event is found") {
		t.Errorf("an order without events: %v\n%s", err, printed)
	}

	handlers, _, _ := strings.Cut(line("handlers file"), " ")
	sample, err := os.ReadFile(handlers)
	if err != nil {
		t.Fatal(err)
	}
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(handlers+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(handlers+".new", handlers); err != nil {
			t.Fatal(err)
		}
	}
	write(string(sample) + "    retries: 5\n")
	await("the new handlers file is refused, and the worker goes on with the old one:\nworker: " + handlers + ":6: unknown key \"retries\"")
	write(string(sample) + strings.Replace(strings.TrimPrefix(string(sample), "handlers:\n"), "name: hello", "name: bye", 1))
	await("worker-2 runs: " + handlers + ": ok, 2 handlers")
	emit("bye")
	await("for WORKER/bye/_:")

	dir := filepath.Dir(handlers)
	if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGINT); err != nil { // as the terminal does
		t.Fatal(err)
	}
	reading.Wait()
	_ = cmd.Wait() // make says that it was interrupted
	if !strings.Contains(text(), "everything is stopped, and its data is removed") {
		t.Error("it does not say that everything is stopped")
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the directory is left: %v", err)
	}
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range lines {
		if words, err := os.ReadFile(path); err == nil && strings.Contains(string(words), dir) {
			t.Errorf("a process is left: %s", fmt.Sprintf("%q", words))
		}
	}
}
