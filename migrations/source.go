package migrations

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// fsys holds the migrations; embedding is the one thing that Go offers for this
// only at package level. Nothing writes to it.
//
//go:embed *.sql
var fsys embed.FS

const (
	markUp     = "-- +goose Up"
	markDown   = "-- +goose Down"
	markPrefix = "-- +goose"
)

// source is one migration file.
type source struct {
	version int64
	name    string // the file's name
	text    string
}

// sources reads the migrations of files in the order of their versions, and
// refuses a set with a gap, a duplicate or a file that is not named NNNNN_what.sql.
func sources(files fs.FS) ([]source, error) {
	names, err := fs.Glob(files, "*.sql")
	if err != nil {
		return nil, fmt.Errorf("list the migration files: %w", err)
	}
	list := make([]source, 0, len(names))
	for i, name := range names { // Glob sorts by name, and the numbers are padded
		digits, _, found := strings.Cut(path.Base(name), "_")
		version, err := strconv.ParseInt(digits, 10, 64)
		if !found || err != nil || len(digits) != 5 {
			return nil, fmt.Errorf("migration file %q: its name must be five digits, an underscore and what it does", name)
		}
		if want := int64(i + 1); version != want {
			return nil, fmt.Errorf("migration file %q has number %d where %d must follow: number the files without gap or duplicate", name, version, want)
		}
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, fmt.Errorf("read migration file %q: %w", name, err)
		}
		list = append(list, source{version: version, name: name, text: string(text)})
	}
	return list, nil
}

// embedded returns the migrations of this binary. They were fixed when it was
// built and a test reads them all, so failing here is a programmer's error.
func embedded() []source {
	list, err := sources(fsys)
	if err != nil {
		panic(fmt.Sprintf("migrations: this binary was built from a broken set of files: %v", err))
	}
	return list
}

// up returns the statements that apply the migration, with their comments and
// without the annotations of the migration library.
func (s source) up() string {
	text, _, _ := strings.Cut(s.text, markDown)
	var b strings.Builder
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(strings.TrimSpace(line), markPrefix) {
			b.WriteString(line)
		}
	}
	return strings.TrimSpace(b.String())
}

// Latest returns the version of the schema that this binary was built for.
func Latest() int64 { return int64(len(embedded())) }
