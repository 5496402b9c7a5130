package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// mutant is one wrong change of the protocol: a text that stands exactly once in its file (of a migration: in what
// brings a database up) is replaced.
type mutant struct {
	name   string
	breaks string // the invariants that do not hold with it
	file   string // from the root of the module
	old    string
	new    string
}

// dir returns the directory of the file that the mutant changes.
func (m *mutant) dir() string { return filepath.ToSlash(filepath.Dir(m.file)) }

// goDown begins the part of a migration that takes it back.
const goDown = "-- +goose Down"

// applies reports how the text of the file that a mutant changes lacks what it replaces.
func (m *mutant) applies(root string) error {
	source, err := os.ReadFile(filepath.Join(root, m.file))
	if err != nil {
		return fmt.Errorf("the mutant %s no longer applies: %w", m.name, err)
	}
	text, _, _ := strings.Cut(string(source), goDown)
	if n := strings.Count(text, m.old); n != 1 {
		return fmt.Errorf("the mutant %s no longer applies: %s has %d times, not once, the text\n%s\nmove the mutant to where the text is now, or take it out if its rule is gone",
			m.name, m.file, n, m.old)
	}
	return nil
}

// inGo returns the edit of Go code that a mutant makes. The roles are changed where they are read.
func (m *mutant) inGo() (file, from, to string) {
	if filepath.Base(m.file) == "roles.sql" {
		const read = "strings.ReplaceAll(roles,"
		return "migrations/roles.go", read, fmt.Sprintf("strings.ReplaceAll(strings.Replace(roles, %q, %q, 1),", m.old, m.new)
	}
	return m.file, m.old, m.new
}

// isMigration reports whether the mutant changes a migration.
func (m *mutant) isMigration() bool {
	return m.dir() == "migrations" && filepath.Ext(m.file) == ".sql"
}

// The file that embeds the migrations, and what it says.
const (
	embedding = "migrations/source.go"
	embedded  = "var fsys embed.FS"
)

// migrationFiles returns the text of a Go file that has the migrations with a mutant.
func migrationFiles(mutants []*mutant) string {
	var edits strings.Builder
	for _, m := range mutants {
		fmt.Fprintf(&edits, "\t{%q, %q, %q, %q},\n", m.name, filepath.Base(m.file), m.old, m.new)
	}
	return `package migrations

import (
	"embed"
	"io/fs"
	"strings"
	"testing/fstest"
)

var fsys = mutated(embedded_)

func mutated(files embed.FS) fs.FS {
	all := fstest.MapFS{}
	entries, err := files.ReadDir(".")
	for _, entry := range entries {
		var text []byte
		if text, err = files.ReadFile(entry.Name()); err != nil {
			break
		}
		for _, m := range migrationMutants {
			if m.name == ` + selected + ` && m.file == entry.Name() {
				text = []byte(strings.Replace(string(text), m.from, m.to, 1))
			}
		}
		all[entry.Name()] = &fstest.MapFile{Data: text}
	}
	if err != nil {
		panic(err)
	}
	return all
}

var migrationMutants = []struct{ name, file, from, to string }{
` + edits.String() + "}\n"
}
