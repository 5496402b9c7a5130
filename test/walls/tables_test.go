package walls_test

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestTablesOfPagesAreWellFormed: each row of a table has as many cells as its header, and no row stands outside of one.
func TestTablesOfPagesAreWellFormed(t *testing.T) {
	t.Parallel()
	tables := 0
	for _, page := range append(bookPages(t), filepath.Join(root, "README.md"), filepath.Join(root, "CHANGELOG.md")) {
		found, problems := brokenTables(readPage(t, page))
		tables += found
		for _, problem := range problems {
			t.Errorf("%s: %s", page, problem)
		}
	}
	if tables < 50 {
		t.Errorf("the pages have %d tables: this test reads them no longer", tables)
	}
}

// TestBrokenTableIsFound shows what the other test would find.
func TestBrokenTableIsFound(t *testing.T) {
	t.Parallel()
	const head = "| a | b |\n|---|--:|\n"
	for page, want := range map[string]string{
		head + "| `x\\|y` \\| z | 2 |\n":           "",
		head + "| `x|y` | 2 |\n":                   "3: the row has 3 cells, its header 2: | `x|y` | 2 |",
		"```\n| a shell | pipe\n```\n":             "",
		head + "| 1 |\n":                           "3: the row has 1 cells, its header 2: | 1 |",
		head + "| 1 | 2 | 3 |\n":                   "3: the row has 3 cells, its header 2: | 1 | 2 | 3 |",
		head + "| 1 | 2 |\n\n| 3 | 4 |\n":          "5: the row has no header: | 3 | 4 |",
		head + "| 1 | 2 |\n\n| 3 | 4 |\n| 5 | 6 |": "5: the row has no header: | 3 | 4 |",
		"| a | b |\n|---|\n":                       "2: the row has 1 cells, its header 2: |---|",
	} {
		if _, problems := brokenTables(page); strings.Join(problems, "\n") != want {
			t.Errorf("the problems of\n%s\nare %q, want %q", page, problems, want)
		}
	}
}

var tableRule = regexp.MustCompile(`^\|(?: *:?-+:? *\|)+$`)

// brokenTables counts the tables of a page, and says which of their rows are wrong.
func brokenTables(page string) (tables int, problems []string) {
	lines := strings.Split(blankCode(page), "\n")
	cells := 0 // of the table that the line before is in
	for i, line := range lines {
		row := strings.TrimSpace(line)
		if !strings.HasPrefix(row, "|") {
			cells = 0
			continue
		}
		// A bar divides cells within code, too, unless it is escaped.
		n := strings.Count(strings.Trim(strings.ReplaceAll(row, `\|`, ""), "|"), "|") + 1
		switch {
		case cells == 0 && (i+1 == len(lines) || !tableRule.MatchString(strings.TrimSpace(lines[i+1]))):
			problems = append(problems, fmt.Sprintf("%d: the row has no header: %s", i+1, row))
			cells = n
		case cells == 0:
			tables, cells = tables+1, n
		case n != cells:
			problems = append(problems, fmt.Sprintf("%d: the row has %d cells, its header %d: %s", i+1, n, cells, row))
		}
	}
	return tables, problems
}

// blankCode is withoutCode, with as many lines as the page.
func blankCode(page string) string {
	return codeBlock.ReplaceAllStringFunc(page, func(code string) string { return strings.Repeat("\n", strings.Count(code, "\n")) })
}
