package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// write writes files below dir.
func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func small(module string) map[string]string {
	return map[string]string{
		"go.mod":        "module " + module + "\n\ngo 1.26\n",
		"a/a.go":        "package a\n",
		"b/b.go":        "package b\n\nimport (\n\t\"" + module + "/a\"\n\n\t\"fmt\"\n)\n\nvar _, _ = a.X, fmt.Sprint(\"" + module + "/b.(*T).f\", \"words-b\", \"/etc/words/a\")\n",
		"c/go.mod":      "// Why.\nmodule " + module + "/c\n\ngo 1.26\n\nrequire (\n\t" + module + " v0.0.0\n\tzeta.org/words v1.0.0\n)\n\nreplace " + module + " => ../\n",
		".golangci.yml": "allow: [" + module + "/a$]\nlocal-prefixes: [" + module + "]\n",
		"docs/page.md":  "`" + module + "/a`, `go run " + module + "/b/... " + module + "/a`, the image words, [a](words/a.md)s, others.org/" + module + "/a\n",
	}
}

// TestRewriteIsRepeatable gives a small repository a path, another one, and that once more.
func TestRewriteIsRepeatable(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, small("words"))
	for _, to := range []string{"one.org/me/words", "two.org/words/v2", "two.org/words/v2"} {
		var stdout, stderr strings.Builder
		if status := run(t.Context(), []string{to}, dir, &stdout, &stderr); status != 0 {
			t.Fatalf("exit status %d: %s", status, &stderr)
		}
		for name, want := range small(to) {
			if name == "docs/page.md" {
				want = strings.ReplaceAll(want, "others.org/"+to, "others.org/words")
			}
			if strings.HasSuffix(to, "/v2") {
				want = strings.ReplaceAll(want, "v0.0.0", "v2.0.0")
			}
			got, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil || string(got) != want {
				t.Errorf("with the path %s %s is (%v)\n%s\nwant\n%s", to, name, err, got, want)
			}
		}
	}
}

func TestInvalidPathChangesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, small("words"))
	for path, want := range map[string]string{"": "give the new module path", "words2": "no module path", "one.org/ä": "no module path", "one.org/x/": "no module path"} {
		var stdout, stderr strings.Builder
		if status := run(t.Context(), []string{path}, dir, &stdout, &stderr); status == 0 || !strings.Contains(stderr.String(), want) {
			t.Errorf("%q: exit status %d, %s", path, status, &stderr)
		}
	}
	if text, err := os.ReadFile(filepath.Join(dir, "go.mod")); err != nil || !strings.HasPrefix(string(text), "module words\n") {
		t.Errorf("go.mod is %s, %v", text, err)
	}
}
