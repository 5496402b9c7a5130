package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// laterCommits is how many commits of the original a fork takes at once.
const laterCommits = 20

// fork is a clone of the repository with a module path of its own.
type fork struct {
	git
	t *testing.T
}

func (f fork) must(args ...string) string {
	f.t.Helper()
	said, err := f.run(f.t.Context(), append([]string{"-c", "user.name=me", "-c", "user.email=me@example.com"}, args...)...)
	if err != nil {
		f.t.Fatal(err)
	}
	return said
}

// program runs setmodule in the fork.
func (f fork) program(args ...string) (status int, said string) {
	f.t.Helper()
	var out strings.Builder
	status = run(f.t.Context(), args, string(f.git), &out, &out)
	return status, out.String()
}

func (f fork) appendTo(name, text string) {
	f.t.Helper()
	path := filepath.Join(string(f.git), name)
	was, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		f.t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		f.t.Fatal(err)
	}
	if err := os.WriteFile(path, append(was, text...), 0o644); err != nil {
		f.t.Fatal(err)
	}
}

// TestForkTakesLaterVersions does what docs/install.md says to a fork that is 20 commits behind: none conflicts, and
// what it has then is the later version with its own path and its own changes. What it takes next conflicts with
// nothing but a change of its own to the same line.
func TestForkTakesLaterVersions(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	here := git(root)
	count, err := here.run(ctx, "rev-list", "--count", "--first-parent", "HEAD")
	if n, mistake := strconv.Atoi(count); err != nil || mistake != nil || n <= laterCommits {
		t.Skipf("it needs %d commits of history: %s, %v", laterCommits, count, err)
	}
	top, err := here.run(ctx, "rev-parse", "--show-toplevel")
	if err != nil {
		t.Fatal(err)
	}
	parent := t.TempDir()
	original, mine := fork{git(filepath.Join(parent, "original")), t}, fork{git(filepath.Join(parent, "mine")), t}
	fork{git(parent), t}.must("clone", "--quiet", top, string(original.git))
	fork{git(parent), t}.must("clone", "--quiet", "--origin", "original", string(original.git), string(mine.git))
	latest := original.must("rev-parse", "HEAD")

	const path = "example.com/me/eventsv2"
	mine.must("checkout", "--quiet", "-B", "mine", latest+"~"+strconv.Itoa(laterCommits))
	if status, said := mine.program(path); status != 0 {
		t.Fatal(said)
	}
	mine.must("commit", "--quiet", "--all", "--message", "The module has a path")
	mine.appendTo("mine/mine.go", "package mine\n\nimport _ \""+path+"/eventqueue\"\n")
	mine.appendTo("docs/glossary.md", "\nOur own words.\n")
	mine.must("add", "--all")
	mine.must("commit", "--quiet", "--message", "Ours")

	if status, said := mine.program("take", latest); status != 0 || !strings.Contains(said, latest+" is merged") {
		t.Fatalf("exit status %d: %s", status, said)
	}
	mine.must("commit", "--quiet", "--no-edit")
	want, err := mine.rewritten(ctx, latest, path)
	if err != nil {
		t.Fatal(err)
	}
	if ours := mine.must("diff", "--name-only", want, "HEAD"); ours != "docs/glossary.md\nmine/mine.go" {
		t.Errorf("beside its own changes the fork differs from the later version in\n%s", ours)
	}
	(&goCommand{t: t, dir: string(mine.git)}).run("list", "-deps", "./...")
	if status, said := mine.program("take", latest); status != 0 || !strings.Contains(said, "was taken already") {
		t.Errorf("once more: exit status %d: %s", status, said)
	}

	original.appendTo("docs/glossary.md", "\nTheir own words.\n")
	original.appendTo("docs/faq.md", "\nMore of `eventsv2/service`.\n")
	original.must("commit", "--quiet", "--all", "--message", "Theirs")
	mine.must("fetch", "--quiet", "original")
	next := original.must("rev-parse", "HEAD")
	if status, said := mine.program("take", next); status != 1 || !strings.Contains(said, "docs/glossary.md") || strings.Contains(said, "docs/faq.md") {
		t.Errorf("exit status %d: %s", status, said)
	}
	if status, said := mine.program("take", next); status != 1 || !strings.Contains(said, "not committed") {
		t.Errorf("before it is resolved: exit status %d: %s", status, said)
	}
	mine.must("checkout", "--ours", "docs/glossary.md")
	mine.must("commit", "--quiet", "--all", "--no-edit")
	if parents := mine.must("log", "-1", "--format=%P"); !strings.HasSuffix(parents, " "+next) {
		t.Errorf("the parents are %s", parents)
	}
	if added := mine.must("show", "HEAD:docs/faq.md"); !strings.Contains(added, "More of `"+path+"/service`.") {
		t.Error("what came with the next version does not have the path of the fork")
	}
	if left := mine.must("worktree", "list"); strings.Contains(left, "\n") {
		t.Errorf("work trees are left: %s", left)
	}
}

func TestTakeRefusesWhatIsNoLaterVersion(t *testing.T) {
	t.Parallel()
	mine := fork{git(t.TempDir()), t}
	write(t, string(mine.git), small("one.org/words"))
	if status, said := mine.program("take", "HEAD"); status != 1 || !strings.Contains(said, "not a git repository") {
		t.Errorf("exit status %d: %s", status, said)
	}
	mine.must("init", "--quiet")
	mine.must("add", "--all")
	mine.must("commit", "--quiet", "--message", "First")
	if status, said := mine.program("take", "v9"); status != 1 || !strings.Contains(said, `"v9" is no commit here`) {
		t.Errorf("exit status %d: %s", status, said)
	}
	first := mine.must("rev-parse", "HEAD")
	mine.must("checkout", "--quiet", "--orphan", "another")
	mine.must("commit", "--quiet", "--message", "Another")
	if status, said := mine.program("take", first); status != 1 || !strings.Contains(said, "no commit in common") {
		t.Errorf("exit status %d: %s", status, said)
	}
	if status, said := mine.program("take"); status != 2 || !strings.Contains(said, "make take VERSION=") {
		t.Errorf("exit status %d: %s", status, said)
	}
}
