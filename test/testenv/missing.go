package testenv

import (
	"os"
	"os/exec"
	"testing"
)

// Missing ends a test that needs what this machine lacks. The test is skipped with a message that
// begins with SKIPPED, NOT TESTED; where the environment has CI, it fails: the skips
// of a green run would go unread.
func Missing(t testing.TB, format string, args ...any) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatalf("NOT TESTED, and CI may skip nothing: "+format, args...)
	}
	t.Skipf("SKIPPED, NOT TESTED: "+format, args...)
}

// Program returns the path of the first of some programs that is installed; it calls Missing if
// none is. The package is the one to install: make test does, on Debian and Ubuntu as root.
func Program(t testing.TB, pkg string, names ...string) string {
	t.Helper()
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	Missing(t, "there is no %s on this machine: apt-get install %s", names[0], pkg)
	return ""
}
