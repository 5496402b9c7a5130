package buildinfo

import (
	"os"
	"os/exec"
	"regexp"
	"runtime/debug"
	"strings"
	"testing"
)

func TestDescribeNamesVersionAndRevision(t *testing.T) {
	t.Parallel()
	commit := []debug.BuildSetting{{Key: "vcs.revision", Value: "0123abc"}, {Key: "vcs.time", Value: "2030-01-31T09:00:00Z"}}
	for want, info := range map[string]*debug.BuildInfo{
		"(devel) (go1.26.11)": {GoVersion: "go1.26.11"},
		"v1.2.3 (go1.26.11)":  {GoVersion: "go1.26.11", Main: debug.Module{Version: "v1.2.3"}},
		"v1.2.3 (commit 0123abc, 2030-01-31T09:00:00Z, go1.26.11)": {GoVersion: "go1.26.11", Main: debug.Module{Version: "v1.2.3"}, Settings: commit},
		"(devel) (commit 0123abc with changes, 2030-01-31T09:00:00Z, go1.26.11)": {GoVersion: "go1.26.11",
			Settings: append(commit[:2:2], debug.BuildSetting{Key: "vcs.modified", Value: "true"})},
	} {
		if got := describe(info, "", ""); got != want {
			t.Errorf("described is %q, want %q", got, want)
		}
	}
	set := &debug.BuildInfo{GoVersion: "go1.26.11", Main: debug.Module{Version: "(devel)"}, Settings: commit[:1]}
	if got, want := describe(set, "v2", "4567def"), "v2 (commit 4567def, go1.26.11)"; got != want {
		t.Errorf("with what the linker has set it is %q, want %q", got, want)
	}
	if v := Version(); !strings.Contains(v, "go1.") {
		t.Errorf("this build is %q", v)
	}
}

// TestBuildsSetVersionAndRevision builds a program with the linker flags of the Dockerfile and of make build: the linker
// says nothing of a variable that does not exist.
func TestBuildsSetVersionAndRevision(t *testing.T) {
	t.Parallel()
	dockerfile, err := os.ReadFile("../../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	makeBuild := exec.CommandContext(t.Context(), "make", "--no-print-directory", "--dry-run", "build", "VERSION=v7", "REVISION=0123abc")
	makeBuild.Dir = "../.."
	shown, err := makeBuild.Output()
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"Dockerfile": string(dockerfile), "make build": string(shown)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			flags := regexp.MustCompile(`-ldflags "[^"]+"`).FindString(text)
			if flags == "" {
				t.Fatalf("no -ldflags in\n%s", text)
			}
			run := exec.CommandContext(t.Context(), "sh", "-c", "go run "+flags+" ./testdata/version")
			run.Env = append(os.Environ(), "VERSION=v7", "REVISION=0123abc")
			if out, err := run.CombinedOutput(); err != nil || !strings.HasPrefix(string(out), "v7 (commit 0123abc, go1.") {
				t.Errorf("a program built with %s is %q, %v", flags, out, err)
			}
		})
	}
}
