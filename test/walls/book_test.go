package walls_test

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// pageLink is a link of a page to a file of the repository, with an anchor or without. Links to
// other sites have a colon.
var pageLink = regexp.MustCompile(`\]\(([^)#: ]*)(?:#([^) ]*))?\)`)

// TestIndexLinksEachPageOnce holds docs/README.md to the pages of docs: each is the subject of one row of
// its tables.
func TestIndexLinksEachPageOnce(t *testing.T) {
	t.Parallel()
	rows := regexp.MustCompile(`(?m)^\| \[[^\]]+\]\(([a-z0-9-]+\.md)\) \| .+ \|$`)
	linked := map[string]int{}
	for _, row := range rows.FindAllStringSubmatch(readPage(t, filepath.Join(root, "docs", "README.md")), -1) {
		linked[row[1]]++
	}
	for _, page := range bookPages(t) {
		if name := filepath.Base(page); name != "README.md" && linked[name] != 1 {
			t.Errorf("docs/README.md has %d rows of %s, want 1: add a row that says what the page is for", linked[name], name)
		}
	}
	if !strings.Contains(readPage(t, filepath.Join(root, "README.md")), "](docs/README.md)") {
		t.Error("README.md does not link docs/README.md")
	}
}

// TestLinksOfPagesResolve to files that exist, and to headings that these files have.
func TestLinksOfPagesResolve(t *testing.T) {
	t.Parallel()
	checked := 0
	for _, page := range append(bookPages(t), filepath.Join(root, "README.md"), filepath.Join(root, "CHANGELOG.md")) {
		text := regexp.MustCompile("`[^`\n]*`").ReplaceAllString(withoutCode(readPage(t, page)), "")
		for _, link := range pageLink.FindAllStringSubmatch(text, -1) {
			checked++
			if problem := brokenLink(t, page, link[1], link[2]); problem != "" {
				t.Errorf("%s: %s", page, problem)
			}
		}
	}
	if checked < 300 {
		t.Errorf("the pages have %d links: this test reads them no longer", checked)
	}
}

// TestBrokenLinkIsFound shows what the other test would find.
func TestBrokenLinkIsFound(t *testing.T) {
	t.Parallel()
	page := filepath.Join(root, "docs", "README.md")
	for _, c := range []struct {
		file, anchor string
		broken       bool
	}{
		{"unique.md", "", false},
		{"none.md", "", true},
		{"configuration.md", "when-postgres-or-pubsub-is-away", false},
		{"configuration.md", "no-such-heading", true},
		{"", "the-code", false},
		{"../deploy/alerts/eventsv2.yaml", "", false},
	} {
		if problem := brokenLink(t, page, c.file, c.anchor); problem != "" != c.broken {
			t.Errorf("%s#%s: %q", c.file, c.anchor, problem)
		}
	}
}

func bookPages(t *testing.T) []string {
	t.Helper()
	pages, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil || len(pages) == 0 {
		t.Fatalf("no pages: %v", err)
	}
	return pages
}

// brokenLink says what is wrong with a link of a page; it is empty if the link leads somewhere.
func brokenLink(t *testing.T, page, file, anchor string) string {
	t.Helper()
	to := page
	if file != "" {
		to = filepath.Join(filepath.Dir(page), file)
	}
	if path, err := filepath.Rel(root, to); err != nil || !exists(path) {
		return "there is no " + to
	}
	if anchor != "" && strings.HasSuffix(to, ".md") && !slices.Contains(anchors(readPage(t, to)), anchor) {
		return to + " has no heading of the anchor #" + anchor
	}
	return ""
}

// anchors are the anchors that GitHub gives the headings of a page.
func anchors(page string) (found []string) {
	for line := range strings.Lines(withoutCode(page)) {
		level := len(line) - len(strings.TrimLeft(line, "#"))
		if level == 0 || !strings.HasPrefix(line[level:], " ") {
			continue
		}
		found = append(found, strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-', r == '_', unicode.IsLetter(r), unicode.IsDigit(r):
				return unicode.ToLower(r)
			}
			return -1
		}, strings.TrimSpace(line[level:])))
	}
	return found
}

var codeBlock = regexp.MustCompile("(?ms)^ *```.*?^ *```$")

// withoutCode is a page without its blocks of code. Its headings may have code within a line.
func withoutCode(page string) string {
	return codeBlock.ReplaceAllString(page, "")
}
