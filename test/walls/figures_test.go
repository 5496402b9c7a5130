package walls_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// figuresAge is by how much the figures of a page may be older than the code that they are about: a change of the
// queue does not have to wait for a quiet machine, but the pages do not stay behind for long.
const figuresAge = 14 * 24 * time.Hour

var figuresDate = regexp.MustCompile(`(?m)^\| date \| (.+?) \|$`)

// The pages with measured figures were written not long before the queue changed last.
func TestFiguresAreOfTheQueueAsItIs(t *testing.T) {
	t.Parallel()
	git := func(args ...string) string {
		command := exec.CommandContext(t.Context(), "git", args...)
		command.Dir = root
		out, err := command.Output()
		if err != nil {
			t.Skipf("the history of the files is not there: %v", err) // as in an archive of the sources
		}
		return strings.TrimSpace(string(out))
	}
	if git("rev-parse", "--is-shallow-repository") == "true" {
		t.Skip("a shallow clone does not know when files changed")
	}
	changed, err := time.Parse(time.DateOnly, git("log", "-1", "--format=%cs", "--", "eventqueue"))
	if err != nil {
		t.Fatal(err)
	}
	for page, command := range map[string]string{"benchmarks.md": "make bench", "growth.md": "make bench-growth"} {
		text, err := os.ReadFile(filepath.Join(root, "docs", page))
		if err != nil {
			t.Fatal(err)
		}
		row := figuresDate.FindSubmatch(text)
		if row == nil {
			t.Errorf("docs/%s does not say when its figures were measured: write them with %q", page, command)
			continue
		}
		measured, err := time.Parse("2 January 2006", string(row[1]))
		if err != nil {
			t.Errorf("docs/%s: %v", page, err)
			continue
		}
		if age := changed.Sub(measured); age > figuresAge {
			t.Errorf("the figures of docs/%s are of %s, and eventqueue/ changed %d days later: write them anew with %q on a quiet machine",
				page, row[1], age/(24*time.Hour), command)
		}
	}
}
