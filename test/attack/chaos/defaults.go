package main

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// defaults are the settings that other programs may give a database or a role, by name, with values
// that would matter to a queue that relied on those of Postgres. synchronous_commit is not among
// them: beside kill -9 of Postgres it loses what docs/database.md names.
func defaults() map[string][]string {
	return map[string][]string{
		"default_transaction_isolation":       {"serializable", "repeatable read"},
		"default_transaction_deferrable":      {"on"},
		"idle_in_transaction_session_timeout": {"1s"},
		"statement_timeout":                   {"2s"},
		"lock_timeout":                        {"500ms"},
		"search_path":                         {"pg_catalog, public", "nowhere, public"},
		"TimeZone":                            {"Asia/Kathmandu", "America/St_Johns"},
		"DateStyle":                           {"German, DMY", "SQL, MDY"},
		"IntervalStyle":                       {"sql_standard"},
		"bytea_output":                        {"escape"},
		"enable_indexscan":                    {"off"},
		"enable_seqscan":                      {"off"},
		"jit_above_cost":                      {"0"},
		"plan_cache_mode":                     {"force_generic_plan"},
		"work_mem":                            {"64kB"},
	}
}

// others are those who share the server, and set defaults of their own. They are safe for concurrent use.
type others struct {
	mu  sync.Mutex
	set map[string]string // in force on new connections
}

// draw sets one default, or takes it back, of the database or of the role.
func (o *others) draw(ctx context.Context, db *pgxpool.Pool, random *rand.Rand) error {
	names := slices.Sorted(maps.Keys(defaults()))
	name := names[random.IntN(len(names))]
	value := defaults()[name][random.IntN(len(defaults()[name]))]
	whose := []string{"DATABASE", "ROLE"}
	at := random.IntN(len(whose))
	if random.IntN(4) == 0 {
		value = ""
	}
	return o.apply(ctx, db, whose[at], whose[1-at], name, value)
}

// apply sets a default of a DATABASE or a ROLE, and takes back what the other one had: that of a role
// would win. The value "" is taken back from both.
func (o *others) apply(ctx context.Context, db *pgxpool.Pool, whose, other, name, value string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, one := range []string{other, whose} {
		var of string
		err := db.QueryRow(ctx, map[string]string{"DATABASE": `SELECT current_database()`, "ROLE": `SELECT current_user`}[one]).Scan(&of)
		if err != nil {
			return fmt.Errorf("ask whose defaults these are: %w", err)
		}
		action := "RESET " + name
		if one == whose && value != "" {
			action = fmt.Sprintf("SET %s = %s", name, literals(value, name == "search_path"))
		}
		if _, err := db.Exec(ctx, fmt.Sprintf("ALTER %s %s %s", one, pgx.Identifier{of}.Sanitize(), action)); err != nil {
			return fmt.Errorf("change a default: %w", err)
		}
	}
	if o.set == nil {
		o.set = map[string]string{}
	}
	delete(o.set, name)
	if value != "" {
		o.set[name] = value
	}
	return nil
}

// literals is a value in SQL. That of search_path is a list of names.
func literals(value string, list bool) string {
	if list {
		return value
	}
	return "'" + value + "'"
}

// missing are the defaults of others that a new connection does not have: then the run shows nothing.
func (o *others) missing(ctx context.Context, databaseURL string) (lacks []string, err error) {
	conn, err := pgx.Connect(ctx, databaseURL)
	if err != nil {
		return nil, fmt.Errorf("connect as other programs do: %w", err)
	}
	defer func() { _ = conn.Close(ctx) }() // it was only read
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(o.set)) {
		var value string
		// Not a SELECT, which may be compiled by now, and exceed a timeout that others have set.
		if err := conn.QueryRow(ctx, "SHOW "+pgx.Identifier{name}.Sanitize()).Scan(&value); err != nil {
			return nil, fmt.Errorf("read a default: %w", err)
		}
		if value != o.set[name] {
			lacks = append(lacks, fmt.Sprintf("%s is %s: it was set to %s", name, value, o.set[name]))
		}
	}
	return lacks, nil
}
