package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// mutant is one wrong change of the protocol.
type mutant struct {
	name string

	// breaks are the invariants that do not hold with it.
	breaks string

	// file is the file that it changes, from the root of the module.
	file  string
	edits []edit

	// judges are the tests of which one must notice, tried in this order.
	judges []judge
}

// edit replaces a text that stands exactly once in the file.
type edit struct{ old, new string }

// judge names tests of one package.
type judge struct {
	pkg   string // as for the go command, from the root of the module
	tests []string
}

// notApplicable says that the source has changed under a mutant.
type notApplicable struct {
	mutant, file, old string
	count             int
}

func (e *notApplicable) Error() string {
	return fmt.Sprintf("the mutant %s no longer applies: %s has %d times, not once, the text\n%s\nmove the mutant to where the text is now, or take it out if its rule is gone",
		e.mutant, e.file, e.count, e.old)
}

// apply returns the changed text of the mutant's file.
func (m *mutant) apply(root string) (string, error) {
	source, err := os.ReadFile(filepath.Join(root, m.file))
	if err != nil {
		return "", fmt.Errorf("the mutant %s no longer applies: %w", m.name, err)
	}
	text := string(source)
	for _, e := range m.edits {
		if n := strings.Count(text, e.old); n != 1 {
			return "", &notApplicable{m.name, m.file, e.old, n}
		}
		text = strings.Replace(text, e.old, e.new, 1)
	}
	return text, nil
}
