package check

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Report collects the findings of the checks.
type Report struct {
	Problems []string
	kinds    []string // in the order in which they were first counted
	counts   map[string]int
}

// problem notes what is wrong with a file, or with something in it.
func (r *Report) problem(where, format string, args ...any) {
	text := where + ": " + fmt.Sprintf(format, args...)
	if !slices.Contains(r.Problems, text) {
		r.Problems = append(r.Problems, text)
	}
}

// count notes that something has been looked at.
func (r *Report) count(kind string) {
	if r.counts == nil {
		r.counts = map[string]int{}
	}
	if !slices.Contains(r.kinds, kind) {
		r.kinds = append(r.kinds, kind)
	}
	r.counts[kind]++
}

// Summary is one line of what was looked at, and how much of it is wrong.
func (r *Report) Summary() string {
	var parts []string
	for _, kind := range r.kinds {
		parts = append(parts, fmt.Sprintf("%s=%d", kind, r.counts[kind]))
	}
	return "deploy-check: " + strings.Join(append(parts, fmt.Sprintf("problems=%d", len(r.Problems))), " ")
}

// tree is a directory that has the files of the repository which the checks read.
type tree string

func (t tree) path(name string) string { return filepath.Join(string(t), name) }

// read returns a file, and reports one that is missing.
func (t tree) read(r *Report, name string) string {
	text, err := os.ReadFile(t.path(name))
	if err != nil {
		r.problem(name, "it cannot be read: %v", err)
	}
	return string(text)
}

// files returns the files below a directory that end in one of the suffixes, without the directory of the tree.
func (t tree) files(r *Report, below string, suffixes ...string) (names []string) {
	err := filepath.WalkDir(t.path(below), func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		for _, suffix := range suffixes {
			if strings.HasSuffix(path, suffix) {
				name, err := filepath.Rel(string(t), path)
				names = append(names, name)
				return err
			}
		}
		return nil
	})
	if err != nil {
		r.problem(below, "its files cannot be listed: %v", err)
	}
	return names
}

// The values that a deployment gives what is written ${LIKE_THIS} in deploy/, as an example.
const (
	exampleProject = "my-project"
	exampleRegion  = "europe-west1"
	exampleTag     = "v1"
)

var placeholders = strings.NewReplacer("${PROJECT_ID}", exampleProject, "${REGION}", exampleRegion, "${TAG}", exampleTag)

// filledIn replaces the placeholders as envsubst does, and reports one that would stay unfilled.
func filledIn(r *Report, where, text string) string {
	text = placeholders.Replace(text)
	if at := strings.Index(text, "${"); at >= 0 {
		rest, _, _ := strings.Cut(text[at:], "\n")
		r.problem(where, "nothing fills in %s", rest)
	}
	return text
}
