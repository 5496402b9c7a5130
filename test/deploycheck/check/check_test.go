package check_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"eventsv2/test/deploycheck/check"
)

const root = "../../.."

func TestDeployFilesPass(t *testing.T) {
	t.Parallel()
	report, programs := check.Files(root)
	for _, problem := range report.Problems {
		t.Error(problem)
	}
	if len(programs) < 15 || strings.Contains(report.Summary(), "=0 ") {
		t.Errorf("something is looked at no longer: %s", report.Summary())
	}
}

// TestProgramsStartAsDeployed with the command lines and the environments of the files.
func TestProgramsStartAsDeployed(t *testing.T) {
	t.Parallel()
	_, programs := check.Files(root)
	// One whose probe asks what is not there, and one that has an unknown flag.
	broken := slices.Clone(programs[:1])
	broken[0].Where, broken[0].Args = "broken", []string{"--no-such-flag"}
	for _, p := range programs {
		if len(p.Probes) > 0 {
			p.Where, p.Probes = "elsewhere", []check.Probe{{Name: "liveness", Path: "/health"}}
			broken = append(broken, p)
			break
		}
	}
	report := &check.Report{}
	if err := check.Run(t.Context(), report, root, t.TempDir(), slices.Concat(programs, broken)); err != nil {
		t.Fatal(err)
	}
	noticed := map[string]bool{}
	for _, problem := range report.Problems {
		where, _, _ := strings.Cut(problem, ":")
		if noticed[where] = true; where != "broken" && where != "elsewhere" {
			t.Error(problem)
		}
	}
	if !noticed["broken"] || !noticed["elsewhere"] {
		t.Errorf("what is broken is not noticed: %q", report.Problems)
	}
}

// TestBrokenFilesAreReported breaks one file at a time.
func TestBrokenFilesAreReported(t *testing.T) {
	t.Parallel()
	for name, c := range broken {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			directory := t.TempDir()
			for _, part := range []string{"deploy", "docs", "Dockerfile"} {
				copyTo(t, filepath.Join(root, part), filepath.Join(directory, part))
			}
			path := filepath.Join(directory, c.file)
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			changed := strings.Replace(string(text), c.old, c.new, 1)
			if changed == string(text) {
				t.Fatalf("%s has no %q", c.file, c.old)
			}
			if err := os.WriteFile(path, []byte(changed), 0o600); err != nil {
				t.Fatal(err)
			}
			report, _ := check.Files(directory)
			if !slices.ContainsFunc(report.Problems, func(p string) bool { return strings.Contains(p, c.want) }) {
				t.Errorf("no problem says %q: %q", c.want, report.Problems)
			}
		})
	}
}

// copyTo copies the texts of a directory, so that they can be changed.
func copyTo(t *testing.T, from, to string) {
	t.Helper()
	err := filepath.WalkDir(from, func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		target := to + strings.TrimPrefix(path, from)
		if entry.IsDir() {
			return os.MkdirAll(target, 0o700)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(target, text, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
}
