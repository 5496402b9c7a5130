package main

import (
	"strings"
	"testing"

	"eventsv2/internal/buildinfo"
)

// TestBinaryRunsUnderItsInstalledName runs the binary under the name that it is installed with.
func TestBinaryRunsUnderItsInstalledName(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args           string
		status         int
		stdout, stderr string // parts of what is printed
	}{
		{"--version", 0, "eventsv2 " + buildinfo.Version() + "\n", ""},
		{"--help", 0, "ln -s eventsv2 worker", ""},
		{"completion bash", 0, "# bash completion V2 for eventsv2", ""},
		{"completion zsh", 0, "#compdef eventsv2", ""},
		{"completion fish", 0, "# fish completion for eventsv2", ""},
		{"", 1, "", "eventsv2: call it by the name of a program, worker, cron or eventctl: eventsv2 --help\n"},
		{"worker check", 1, "", "eventsv2: call it by the name of a program, worker, cron or eventctl: eventsv2 --help\n"},
		{"--port 1", 1, "", "eventsv2: unknown flag: --port\n"},
	} {
		status, stdout, stderr := call(t, "eventsv2", c.args)
		if status != c.status || !strings.Contains(stdout, c.stdout) || stderr != c.stderr || c.stdout == "" && stdout != "" {
			t.Errorf("eventsv2 %s: exit status %d, stdout %q, stderr %q; want %+v", c.args, status, stdout, stderr, c)
		}
	}
}

func TestLinkNameChoosesTheProgram(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"worker", "cron", "eventctl"} {
		if status, stdout, stderr := call(t, name, "--version"); status != 0 || !strings.HasPrefix(stdout, name+" ") || stderr != "" {
			t.Errorf("%s --version: exit status %d, stdout %q, stderr %q", name, status, stdout, stderr)
		}
	}
}

func call(t *testing.T, name, args string) (status int, stdout, stderr string) {
	t.Helper()
	var out, errors strings.Builder
	status = run(t.Context(), name, strings.Fields(args), nil, strings.NewReader(""), &out, &errors)
	return status, out.String(), errors.String()
}
