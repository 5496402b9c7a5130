package eventctl

import (
	"fmt"
	"io"

	"eventsv2/internal/view"
	"eventsv2/migrations"
)

type migrationDoc struct {
	Version int64  `json:"version"`
	Name    string `json:"name"`
}

// writeMigrations reports the migrations that were done, even if a later one failed.
func (p *program) writeMigrations(verb, nothing string, done []migrations.Applied, err error) error {
	doc := struct {
		Items []migrationDoc `json:"items"`
	}{view.All(done, func(m migrations.Applied) migrationDoc { return migrationDoc{m.Version, m.Name} })}
	writeErr := p.write(doc, func(w io.Writer) {
		for _, m := range done {
			_, _ = fmt.Fprintf(w, "%s %s\n", verb, m.Name)
		}
		if len(done) == 0 && err == nil {
			_, _ = fmt.Fprintln(w, nothing)
		}
	})
	if err != nil {
		return failed(err)
	}
	return writeErr
}

// writeSQL writes SQL unchanged, for psql.
func (p *program) writeSQL(sql string) error {
	return p.write(struct {
		SQL string `json:"sql"`
	}{sql}, func(w io.Writer) { _, _ = io.WriteString(w, sql) })
}
