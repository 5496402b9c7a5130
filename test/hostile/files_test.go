package hostile_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"eventsv2/access"
	"eventsv2/test/programs"
	"eventsv2/test/testenv"
)

const (
	// messageBytes is how much a program may say about a file.
	messageBytes = 64 << 10
	// fileMiB is how much memory it may take, itself included.
	fileMiB = 400
)

// hostileFiles returns what no program can use, by its description. list is the key of the list that a file of the kind has.
func hostileFiles(list string) map[string]string {
	bomb := "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
	for i := range 9 {
		bomb += fmt.Sprintf("a%d: &a%d [%s*a%d]\n", i+1, i+1, times(9, fmt.Sprintf("*a%d, ", i)), i)
	}
	return map[string]string{
		"bomb of aliases":         bomb + list + ": *a9\n",
		"bomb of merged mappings": "m: &m {" + times(1_000, "a: &x b, ") + "}\n" + list + ":\n" + times(1_000, "  - {<<: *m}\n"),
		"alias of itself":         list + ": &a [*a]\n",
		"an anchor many times":    "x: &x " + times(100_000, "y") + "\n" + list + ": [" + times(2_000, "*x, ") + "]\n",
		"deep lists":              list + ": " + times(50_000, "[") + times(50_000, "]") + "\n",
		"deep mappings":           list + ": " + times(20_000, "{a: ") + times(20_000, "}") + "\n",
		"open lists":              times(200_000, "["),
		"deep indents":            deepIndents(1_000),
		"10 MB":                   list + ": " + times(10<<20, "x"),
		"many items":              list + ":\n" + times(100_000, "  - 1\n"),
		"many mappings":           list + ":\n" + times(50_000, "  - {a: 1, b: 2}\n"),
		"many keys":               manyLines(50_000, "key%d: 1\n"),
		"the same key":            times(100_000, list+": 1\n"),
		"many documents":          times(100_000, "---\n"),
		"many mistakes":           times(50_000, "a: b: c\n"),
		"a long line":             list + ": [{name: \"" + times(500_000, "x") + "\"}]\n",
		"a long key":              "\"" + times(1_000, "k") + "\": 1\n",
		"binary":                  "\x7fELF\x02\x01\x01" + times(1_000, "\x00\xff"),
		"NUL":                     list + ": \"a\x00b\"\n",
		"escaped controls":        list + ": " + times(5_000, `["\x1b[2J\u0085", `),
		"tabs":                    list + ":\n" + times(10_000, "\t"),
		"a tag":                   list + ": !!binary " + times(100_000, "A") + "\n",
		"a huge number":           list + ": 1" + times(100_000, "0") + "\n",
	}
}

func manyLines(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

func deepIndents(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(times(i, " ") + "a:\n")
	}
	return b.String()
}

// TestHostileFilesAreRefused has each program that reads a file refuse hostile ones, in few words and with little memory.
func TestHostileFilesAreRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	database := r.pool.Config().ConnString()
	valid := r.file("handlers.yaml", "handlers: [{module: WORKER, name: greet, modifier: _, url: 'http://127.0.0.1:9/'}]\n")
	r.token(access.Grant{Verbs: access.Verbs()})
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	worker, ctl := filepath.Join(binaries, programs.Worker), filepath.Join(binaries, programs.Ctl)
	environment := map[string]string{"DATABASE_URL": database, "NOTIFIER": "postgres", "PORT": "0", "HANDLERS_FILE": valid}
	for _, reader := range []struct {
		name, list string
		command    func(path string) (env map[string]string, words []string)
	}{
		{"access file", "issuers", func(path string) (map[string]string, []string) {
			return map[string]string{"ACCESS_FILE": path, "API_LISTEN": "127.0.0.1:0"}, []string{worker}
		}},
		{"handlers file", "handlers", func(path string) (map[string]string, []string) {
			return map[string]string{"HANDLERS_FILE": path}, []string{worker}
		}},
		{"checked handlers file", "handlers", func(path string) (map[string]string, []string) {
			return nil, []string{worker, "check", path}
		}},
		{"cron definitions", "definitions", func(path string) (map[string]string, []string) {
			return nil, []string{ctl, "cron", "apply", path}
		}},
		{"grid", "actions", func(path string) (map[string]string, []string) {
			return map[string]string{gridVariable: path}, []string{self}
		}},
	} {
		for what, text := range hostileFiles(reader.list) {
			env, words := reader.command(r.file("hostile.yaml", text))
			command := exec.CommandContext(testenv.Context(t), words[0], words[1:]...)
			command.Env = programs.Environment(environment, env)
			refused(t, reader.name+", "+what, command)
		}
	}
}

// refused runs a program, which has to end with a short message.
func refused(t *testing.T, what string, command *exec.Cmd) {
	t.Helper()
	var said bytes.Buffer
	command.Stdout, command.Stderr = &said, &said
	err := command.Run()
	exit := (*exec.ExitError)(nil)
	if !errors.As(err, &exit) || exit.ExitCode() < 1 || exit.ExitCode() > 2 || strings.Contains(said.String(), "unknown command") {
		t.Errorf("%s: the program ended with %v:\n%.2000s", what, err, said.String())
		return
	}
	if said.Len() > messageBytes || said.Len() == 0 || strings.Contains(said.String(), "goroutine ") {
		t.Errorf("%s: the program says %d bytes: %.1000s", what, said.Len(), said.String())
	}
	// A new process begins with the memory of this one, which is small.
	if used, is := exit.SysUsage().(*syscall.Rusage); is && used.Maxrss>>10 >= fileMiB {
		t.Errorf("%s: the program took %d MiB", what, used.Maxrss>>10)
	}
}
