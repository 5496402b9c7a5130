package migrations_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"eventsv2/migrations"
	"eventsv2/test/testenv"
	"eventsv2/test/walls"
)

// TestNamesInTheDatabaseHaveNoRetiredWord reads the names of the migrated schema: tables,
// columns, indexes, sequences, constraints, functions with their arguments, triggers, types and the
// labels of enums.
func TestNamesInTheDatabaseHaveNoRetiredWord(t *testing.T) {
	t.Parallel()
	const selectNames = `
SELECT 'relation ' || relname FROM pg_class WHERE relnamespace = 'public'::regnamespace
UNION SELECT 'column ' || relname || ' ' || attname FROM pg_attribute JOIN pg_class c ON c.oid = attrelid
 WHERE relnamespace = 'public'::regnamespace AND attnum > 0 AND NOT attisdropped
UNION SELECT 'constraint ' || conname FROM pg_constraint WHERE connamespace = 'public'::regnamespace
UNION SELECT concat_ws(' ', 'function', proname, array_to_string(proargnames, ' ')) FROM pg_proc WHERE pronamespace = 'public'::regnamespace
UNION SELECT 'trigger ' || tgname FROM pg_trigger WHERE NOT tgisinternal
UNION SELECT 'type ' || typname FROM pg_type WHERE typnamespace = 'public'::regnamespace
UNION SELECT 'enum ' || enumtypid::regtype || ' ' || enumlabel FROM pg_enum
ORDER BY 1`
	rows, err := testenv.Pool(t).Query(t.Context(), selectNames)
	if err != nil {
		t.Fatal(err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]bool{}
	for _, name := range names {
		kind, _, _ := strings.Cut(name, " ")
		kinds[kind] = true
		if write := walls.Replacement(name); write != "" {
			t.Errorf("the %s has a retired word: write %s (docs/glossary.md)", name, write)
		}
	}
	for _, kind := range []string{"relation", "column", "constraint", "function", "trigger", "type", "enum"} {
		if !kinds[kind] {
			t.Errorf("no %s was found", kind)
		}
	}
}

// TestNamesOfMigrationsHaveNoRetiredWord: eventctl migrate status prints them.
func TestNamesOfMigrationsHaveNoRetiredWord(t *testing.T) {
	t.Parallel()
	list, err := migrations.Status(testenv.Context(t), testenv.EmptyDatabaseURL(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range list {
		if write := walls.Replacement(m.Name); write != "" {
			t.Errorf("the migration %s has a retired word: write %s (docs/glossary.md)", m.Name, write)
		}
	}
	if walls.Replacement("00009_lines.sql") == "" {
		t.Error("a retired word of a name is not found")
	}
}
