package walls_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// namedFile matches code in a page that can only be a file of the repository: a path
// with a directory, which ends as sources do.
var namedFile = regexp.MustCompile("`((?:[a-z0-9_.-]+/)+[a-zA-Z0-9_.-]+\\.(?:go|sql|golden|txt|md|yml|yaml|mod))`")

// TestFilesNamedInPagesExist: paths without a top directory are in eventqueue, as
// docs/architecture.md says.
func TestFilesNamedInPagesExist(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil || len(pages) == 0 {
		t.Fatalf("no pages: %v", err)
	}
	named := 0
	for _, page := range append(pages, filepath.Join(root, "README.md")) {
		for _, match := range namedFile.FindAllStringSubmatch(readPage(t, page), -1) {
			named++
			if !exists(match[1]) && !exists(filepath.Join("eventqueue", match[1])) {
				t.Errorf("%s names %s, which does not exist", page, match[1])
			}
		}
	}
	if named < 50 || exists("eventqueue/none.go") {
		t.Errorf("%d files are named by the pages: this test reads them no longer", named)
	}
}

func exists(path string) bool {
	_, err := os.Stat(filepath.Join(root, path))
	return err == nil
}
