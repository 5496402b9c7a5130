package migrations

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"eventsv2/eventqueue/pgsession"
)

// ForeignError says that a schema has objects that are not the queue's and have the names of what
// migrations would create. Up and UpTx return it, and have written nothing.
type ForeignError struct {
	// Schema is the name of the schema.
	Schema string

	// Objects are the names, each with its kind, such as "table event_log".
	Objects []string
}

// Error says what is in the way and what to do.
func (e *ForeignError) Error() string {
	return fmt.Sprintf("the schema %s already has, of another application: %s: nothing was written; "+
		"give the queue a schema of its own (EVENTS_SCHEMA=events, or Migrator.Schema), or rename what is in the way",
		e.Schema, strings.Join(e.Objects, ", "))
}

// creates finds what a migration creates, under the name that it has at the end of the migration's own text.
var creates = regexp.MustCompile(`(?mi)^\s*CREATE (?:OR REPLACE )?(?:UNIQUE )?(?:UNLOGGED )?(TABLE|SEQUENCE|TYPE|FUNCTION|INDEX) ([a-z0-9_]+)`)

// foreignSQL finds objects of the kinds $2 and the names $3 in the schema $1. The types of tables are tables.
const foreignSQL = `
SELECT kind || ' ' || name
FROM unnest($2::text[], $3::text[]) WITH ORDINALITY AS wanted (kind, name, place)
WHERE EXISTS (
        SELECT FROM pg_class WHERE kind <> 'function' AND relname = name AND relnamespace = to_regnamespace(quote_ident($1)))
   OR EXISTS (
        SELECT FROM pg_type WHERE kind IN ('type', 'table') AND typname = name AND typnamespace = to_regnamespace(quote_ident($1)))
   OR EXISTS (
        SELECT FROM pg_proc WHERE kind = 'function' AND proname = name AND pronamespace = to_regnamespace(quote_ident($1)))
ORDER BY place`

// refuseForeign returns a *ForeignError if something in the schema is in the way of migrations that
// it has not had. What an earlier migration has created is the queue's.
func refuseForeign(ctx context.Context, db Querier, schema pgsession.Schema, missing []source) error {
	if len(missing) == 0 {
		return nil
	}
	ours := map[string]bool{}
	for _, s := range embedded()[:missing[0].version-1] {
		for _, found := range creates.FindAllStringSubmatch(s.up(), -1) {
			ours[found[2]] = true
		}
	}
	var kinds, names []string
	for _, s := range missing {
		for _, found := range creates.FindAllStringSubmatch(s.up(), -1) {
			if name := found[2]; !ours[name] && !slices.Contains(names, name) {
				kinds, names = append(kinds, strings.ToLower(found[1])), append(names, name)
			}
		}
	}
	var objects []string
	if err := db.QueryRow(ctx, `SELECT ARRAY(`+foreignSQL+`)`, schema.Name(), kinds, names).Scan(&objects); err != nil {
		return fmt.Errorf("look for objects of other applications in the schema %s: %w", schema.Name(), err)
	}
	if len(objects) > 0 {
		return &ForeignError{Schema: schema.Name(), Objects: objects}
	}
	return nil
}
