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

// edit replaces a text that stands exactly once in the file; of a migration, in what
// brings a database up.
type edit struct{ old, new string }

// withItsLines is the new text, with as many lines as the old one where whole lines were
// taken out: what stands below is then where it was, and the package looks the same from
// outside.
func (e edit) withItsLines() string {
	if fewer := strings.Count(e.old, "\n") - strings.Count(e.new, "\n"); fewer > 0 && strings.HasSuffix(e.old, "\n") {
		return e.new + strings.Repeat("\n", fewer)
	}
	return e.new
}

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
	text, down, migration := strings.Cut(string(source), goDown)
	for _, e := range m.edits {
		if n := strings.Count(text, e.old); n != 1 {
			return "", &notApplicable{m.name, m.file, e.old, n}
		}
		text = strings.Replace(text, e.old, e.withItsLines(), 1)
	}
	if migration {
		text += goDown + down
	}
	return text, nil
}

// goDown begins the part of a migration that takes it back.
const goDown = "-- +goose Down"
