package migrations

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue/pgsession"
)

// TruncatedError says that a schema has the objects of the queue, and that the table which records its
// migrations has been emptied, as a test suite does that truncates all tables. Up and UpTx return it, and have
// written nothing.
type TruncatedError struct {
	// Schema is the name of the schema.
	Schema string

	// Version is the latest one whose objects are all there.
	Version int64
}

// Error says what happened and what to do.
func (e *TruncatedError) Error() string {
	return fmt.Sprintf("the schema %s has all tables of the queue of version %d, and its table %s is empty, as after a TRUNCATE of all tables: nothing was written; "+
		"leave that table out when you truncate, and record the versions again: %s; then run: eventctl migrate up", e.Schema, e.Version, versionTable, e.remedy())
}

// remedy is the statement that records the versions.
func (e *TruncatedError) remedy() string {
	return fmt.Sprintf("INSERT INTO %s.%s (version_id, is_applied) SELECT version, true FROM generate_series(0, %d) AS version",
		pgsession.Schema(e.Schema).Identifier(), versionTable, e.Version)
}

// refuseTruncated returns a *TruncatedError if the schema has all that a version has of objects. Its table of versions is there,
// and has none.
func refuseTruncated(ctx context.Context, tx pgx.Tx, schema pgsession.Schema) error {
	rows, err := tx.Query(ctx, objectsSQL, schema.Name(), nil)
	found := map[string]bool{}
	if err == nil {
		var kind, name string
		_, err = pgx.ForEachRow(rows, []any{&kind, &name}, func() error {
			found[strings.TrimSpace(name)] = true
			return nil
		})
	}
	if err != nil {
		return fmt.Errorf("look for objects of the queue in the schema %s: %w", schema.Name(), err)
	}
	if version := versionOf(nameChanges(names), found); version > 0 {
		return &TruncatedError{Schema: schema.Name(), Version: version}
	}
	return nil
}

// versionOf returns the latest version whose names are all found; 0: none.
func versionOf(changes []nameChange, found map[string]bool) (version int64) {
	for _, c := range changes {
		if c.version <= version {
			continue
		}
		ours, _ := namesFrom(changes, c.version+1)
		complete := true
		for name := range ours {
			complete = complete && found[name]
		}
		if complete {
			version = c.version
		}
	}
	return version
}
