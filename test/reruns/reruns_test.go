package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"eventsv2/test/command"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// begins is a test file of which first reports whether this is the first run.
const begins = `package p

import (
	"os"
	"testing"
)

func first() bool {
	_, err := os.Stat("ran")
	_ = os.WriteFile("ran", nil, 0o644)
	return err != nil
}

func TestPasses(*testing.T) {}
`

// TestWhatTryingAgainProves runs packages that fail once as make test RERUN=2 runs those of the repository. gotestsum is
// content with each when it has tried again.
func TestWhatTryingAgainProves(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		source string
		status int
		says   string
	}{
		"a test": {`func TestFails(t *testing.T) {
	if first() { t.Error("too slow") }
}`, command.ExitOK, `^FAILED BESIDE OTHERS, TRIED AGAIN:\np\.TestFails\n$`},
		"outside the tests": {`func TestMain(m *testing.M) {
	status := m.Run()
	if first() { status = 1 }
	os.Exit(status)
}`, command.ExitFailed, `PROVES NOTHING:\np: it failed outside its tests`},
		"the process": {`func TestDies(t *testing.T) {
	if first() { os.Exit(1) }
}`, command.ExitFailed, `PROVES NOTHING:\np: its process ended during TestDies`},
		"input that is drawn": {`func TestDraws(t *testing.T) {
	if first() { t.Run("rapid", func(t *testing.T) { t.Error("[rapid] failed: -rapid.seed=7") }) }
}`, command.ExitFailed, `PROVES NOTHING:\np\.TestDraws/rapid: it draws its input`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reports := tried(t, begins+test.source)
			var out, failure bytes.Buffer
			if status := run(t.Context(), []string{reports}, &out, &failure); status != test.status {
				t.Errorf("status %d, want %d: %s", status, test.status, failure.String())
			}
			if !regexp.MustCompile(test.says).MatchString(out.String()) {
				t.Errorf("it says\n%swant %s", out.String(), test.says)
			}
		})
	}
}

// tried runs the tests of a source as the Makefile does and returns the directory with what they did.
func tried(t *testing.T, source string) (reports string) {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	if found, err := filepath.Glob(filepath.Join(root, "bin", "gotestsum-*")); err != nil || len(found) == 0 {
		t.Skip("SKIPPED, NOT TESTED: bin/ has no gotestsum; make test installs it")
	}
	dir, reports := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{"go.mod": "module p\n\ngo 1.26\n", "p_test.go": source} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "make", "--no-print-directory", "-C", root, "--eval", "probe: ; @cd '"+dir+"' && $(call run_tests,probe,./...)",
		"probe", "RERUN=2", "RERUNS="+reports)
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "MAKE") && !strings.HasPrefix(variable, "MFLAGS") { // of the make that runs this test
			cmd.Env = append(cmd.Env, variable)
		}
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("gotestsum: %v\n%s", err, out)
	}
	return reports
}

// TestNothingToJudgeIsAFailure: a name that changed in one place only must not pass everything.
func TestNothingToJudgeIsAFailure(t *testing.T) {
	t.Parallel()
	for name, file := range map[string]string{"no file": "", "another format": "p.TestFails: 2 runs\n"} {
		dir := t.TempDir()
		if file != "" {
			if err := os.WriteFile(filepath.Join(dir, "race.json"), []byte(file), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if status := run(t.Context(), []string{dir}, &bytes.Buffer{}, &bytes.Buffer{}); status != command.ExitFailed {
			t.Errorf("%s: status %d", name, status)
		}
	}
}
