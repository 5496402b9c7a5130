package migrations

import (
	"context"
	_ "embed" // for names.txt
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

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

// objectsSQL finds the objects of the schema $1: their kinds and names, those of functions with the types of their arguments. Of
// $2 they have one of these names, if it is not NULL. The types of rows and of arrays come with others.
const objectsSQL = `
SELECT kind, name
FROM (
    SELECT CASE relkind WHEN 'S' THEN 'sequence' WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view' WHEN 'c' THEN 'type'
            WHEN 'i' THEN 'index' WHEN 'I' THEN 'index' ELSE 'table' END AS kind,
        relname::text AS name, relname::text AS bare
    FROM pg_catalog.pg_class WHERE relnamespace = to_regnamespace(quote_ident($1))
    UNION ALL
    SELECT 'type', typname, typname
    FROM pg_catalog.pg_type AS t
    WHERE typnamespace = to_regnamespace(quote_ident($1)) AND typrelid = 0
      AND NOT EXISTS (SELECT FROM pg_catalog.pg_type AS element WHERE element.typarray = t.oid)
    UNION ALL
    SELECT 'function', proname || '(' || array_to_string(ARRAY(
            SELECT typname FROM unnest(proargtypes) WITH ORDINALITY AS argument (type, place)
            JOIN pg_catalog.pg_type AS t ON t.oid = argument.type ORDER BY place), ', ') || ')', proname
    FROM pg_catalog.pg_proc WHERE pronamespace = to_regnamespace(quote_ident($1))
) AS object
WHERE $2::text[] IS NULL OR bare = ANY ($2)
ORDER BY kind, name`

// names.txt has what each migration brings into the schema, and takes from it, as a database has it: also what has its name from a
// renaming or a constraint, and what a later statement drops. The version 0 is the table of the versions. A test writes it.
//
//go:embed names.txt
var names string

// nameChange is a line of names.txt.
type nameChange struct {
	version int64
	brings  bool // or takes
	name    string
}

func nameChanges(text string) []nameChange {
	var list []nameChange
	for line := range strings.Lines(text) {
		var c nameChange
		var sign, kind string
		if _, err := fmt.Sscan(line, &c.version, &sign, &kind); err != nil {
			panic(fmt.Sprintf("migrations: this binary was built from a broken names.txt: %q: %v", line, err))
		}
		c.brings = sign == "+"
		_, c.name, _ = strings.Cut(strings.TrimSpace(line), " "+kind+" ")
		list = append(list, c)
	}
	return list
}

// namesFrom returns the names that a schema has before a version, and those that this version and later ones bring, in their order.
func namesFrom(changes []nameChange, version int64) (ours map[string]bool, wanted []string) {
	ours = map[string]bool{}
	for _, c := range changes {
		switch {
		case c.version < version && c.brings:
			ours[c.name] = true
		case c.version < version:
			delete(ours, c.name)
		case c.brings && !ours[c.name] && !slices.Contains(wanted, c.name):
			wanted = append(wanted, c.name)
		}
	}
	return ours, wanted
}

// bare returns the name of a function without its brackets, and other names as they are.
func bare(name string) string {
	name, _, _ = strings.Cut(name, "(")
	return name
}

// inTheWay returns whether a name that is found keeps the wanted from being made. Relations and types have their names
// together, as a table is a type as well. Migrations look for some functions by their name alone, so that
// others of the name are in their way, whatever the arguments are.
func inTheWay(ours map[string]bool, wanted []string) func(name string) bool {
	taken := map[string]bool{}
	for _, name := range wanted {
		taken[anyArguments(name)] = true
	}
	return func(name string) bool { return !ours[name] && taken[anyArguments(name)] }
}

// anyArguments returns the name of a function without its arguments, and other names as they are.
func anyArguments(name string) string {
	before, _, isFunction := strings.Cut(name, "(")
	if isFunction {
		return before + "()"
	}
	return before
}

// refuseForeign returns a *ForeignError if something in the schema is in the way of the migrations from a version on. What those
// before it have made is the queue's.
func refuseForeign(ctx context.Context, tx pgx.Tx, schema pgsession.Schema, from int64) error {
	ours, wanted := namesFrom(nameChanges(names), from)
	conflicts := inTheWay(ours, wanted)
	for i, name := range wanted {
		wanted[i] = bare(name)
	}
	rows, err := tx.Query(ctx, objectsSQL, schema.Name(), wanted)
	var objects []string
	if err == nil {
		var kind, name string
		_, err = pgx.ForEachRow(rows, []any{&kind, &name}, func() error {
			if object := kind + " " + bare(name); conflicts(name) && !slices.Contains(objects, object) {
				objects = append(objects, object)
			}
			return nil
		})
	}
	if err != nil {
		return fmt.Errorf("look for objects of other applications in the schema %s: %w", schema.Name(), err)
	}
	if len(objects) > 0 {
		return &ForeignError{Schema: schema.Name(), Objects: objects}
	}
	return nil
}
