package pgsession

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Schema is the schema of Postgres that holds a queue: its tables, sequences, types and functions.
// "" is [DefaultSchema]. The statements of this module name what is theirs without a schema;
// SQL adds it before they are sent. So no search path leads them to tables of an application that
// have the same names, and an application may keep whatever search path it has.
type Schema string

// DefaultSchema is the schema of a queue that has no other.
const DefaultSchema Schema = "public"

// maxSchemaBytes leaves room for the names of channels, which have 63 bytes at most.
const maxSchemaBytes = 40

// Name returns the name of the schema.
func (s Schema) Name() string {
	if s == "" {
		return string(DefaultSchema)
	}
	return string(s)
}

// Identifier returns the name of the schema as SQL.
func (s Schema) Identifier() string { return pgx.Identifier{s.Name()}.Sanitize() }

// Validate returns an error for a name that no queue can have: one of Postgres' own schemas, or one
// that is too long for the channels of the queue.
func (s Schema) Validate() error {
	name := s.Name()
	switch {
	case len(name) > maxSchemaBytes:
		return fmt.Errorf("the name of the schema is %d bytes long: use at most %d", len(name), maxSchemaBytes)
	case strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == '"' || r == '\'' || r == '\x7f' || r == '�' }):
		return fmt.Errorf("the name of the schema is %q: leave out quotes and control characters", name)
	case strings.HasPrefix(name, "pg_"), name == "information_schema":
		return fmt.Errorf("the schema %s is Postgres' own: make one for the queue", name)
	default:
		return nil
	}
}

// Channel returns the name of a channel of the queue: that of the default schema is the name itself, and
// others begin with their schema, so that queues in one database do not wake each other.
func (s Schema) Channel(name string) string {
	if s.Name() == string(DefaultSchema) {
		return name
	}
	return s.Name() + "." + name
}

// Listen returns the statement that listens to a channel of the queue.
func (s Schema) Listen(channel string) string {
	return "LISTEN " + pgx.Identifier{s.Channel(channel)}.Sanitize()
}

// Objects returns the names of everything that the queue has in its schema and that statements may name.
func Objects() []string { return slices.Clone(objects) }

// objects are the relations, types and functions of the queue; a test holds the list to the
// migrations. None of these names may be an alias, a CTE or a column of a statement.
var objects = []string{
	// tables
	"events_v2", "scheduling_rules", "event_log", "cron_definitions", "cron_records", "events_v2_notifications", "unique_keys", "unique_expiries",
	"concurrency_limits", "event_groups", "cleanups", "grid_outputs", "rate_limits", "rate_counters", "claim_barrier", "event_group_locks",
	"events_v2_settings", "eventsv2_schema_version", "event_attempts", "event_workers", "event_minutes", "event_hours",
	"access_tokens", "audit_log", "bulk_operations", "webhook_minutes", "webhook_sources", "event_minute_totals", "ended_sessions", "unique_heirs", "event_hour_totals", "event_emits", "canvas_names",
	// sequences
	"events_id_seq", "scheduling_rules_id_seq", "cron_definitions_id_seq", "cleanups_id_seq", "events_v2_notifications_place_seq",
	"eventsv2_schema_version_id_seq", "audit_log_id_seq",
	// types
	"scheduling_rule_type", "event_log_status", "cron_missed_policy", "event_cancellation", "event_progress", "event_priority", "event_run_log",
	// functions
	"events_mistake_in_key", "events_mistake_in_delay", "events_mistake_in_value", "events_mistake_in_origin", "events_depth",
	"events_emit_from", "events_emit_attributes", "events_emit", "send_to_outbox",
	"events_v2_group_key", "events_v2_max_running", "events_v2_advance", "events_v2_needs_read_committed", "events_v2_rate_room", "events_v2_room", "events_v2_runnable", "events_v2_tables", "events_v2_channel",
	"events_v2_lock_keys", "events_v2_emit_keyed", "events_v2_emit_ending", "events_v2_emitted", "events_mistake_in_keys", "events_prioritize", "events_mistake_in_arguments", "events_key_of_row", "events_v2_notify", "events_v2_notify_limit", "events_v2_queue_id",
	"rate_limit_changed",
}

// DB runs statements: a pool, a connection or a transaction.
type DB interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	SendBatch(ctx context.Context, batch *pgx.Batch) pgx.BatchResults
	CopyFrom(ctx context.Context, table pgx.Identifier, columns []string, rows pgx.CopyFromSource) (int64, error)
}

// On returns db for statements of the queue: what is sent to it is sent with the schema. Statements
// of an application do not belong on it.
func (s Schema) On(db DB) DB { return inSchema{watch(db), s.SQL} }

// inSchema sends statements with their schema.
type inSchema struct {
	DB
	qualify func(sql string) string
}

func (d inSchema) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	return d.DB.Exec(ctx, d.qualify(sql), args...)
}

func (d inSchema) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	return d.DB.Query(ctx, d.qualify(sql), args...)
}

func (d inSchema) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	return d.DB.QueryRow(ctx, d.qualify(sql), args...)
}

func (d inSchema) SendBatch(ctx context.Context, batch *pgx.Batch) pgx.BatchResults {
	qualifyBatch(batch, d.qualify)
	return d.DB.SendBatch(ctx, batch)
}

func qualifyBatch(batch *pgx.Batch, qualify func(sql string) string) {
	for _, q := range batch.QueuedQueries {
		q.SQL = qualify(q.SQL)
	}
}

// schemaSQL finds which tables of the queue are missing in the schema $1, and other schemas that have them.
// These are in every queue; a table of a later version may be missing where the schema is older than this program.
const schemaSQL = `
SELECT to_regnamespace(quote_ident($1)) IS NOT NULL,
    ARRAY(SELECT name FROM unnest(ARRAY['events_v2', 'scheduling_rules', 'event_log', 'eventsv2_schema_version']) AS name
        WHERE NOT EXISTS (SELECT FROM pg_class WHERE relname = name AND relnamespace = to_regnamespace(quote_ident($1)))),
    ARRAY(SELECT relnamespace::regnamespace::text FROM pg_class WHERE relname = 'events_v2' AND relkind = 'r' ORDER BY 1 LIMIT 10)`

// CheckSchema returns an error unless the schema holds a queue. It reads the catalog, so it
// needs no right on a table;
// db sends its statement as it is.
func CheckSchema(ctx context.Context, db interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}, s Schema) error {
	var exists bool
	var missing, elsewhere []string
	if err := db.QueryRow(ctx, schemaSQL, s.Name()).Scan(&exists, &missing, &elsewhere); err != nil {
		return fmt.Errorf("find the tables of the queue: %w", err)
	}
	if len(missing) == 0 {
		return nil
	}
	problem := fmt.Sprintf("the schema %s of the database has no table %s", s.Name(), strings.Join(missing, ", "))
	if !exists {
		problem = fmt.Sprintf("the database has no schema %s", s.Name())
	}
	remedy := "run eventctl migrate up"
	if len(elsewhere) > 0 {
		remedy += fmt.Sprintf(", or set EVENTS_SCHEMA (Schema) to the schema of the queue: there is a table events_v2 in %s", strings.Join(elsewhere, ", "))
	}
	return errors.New(problem + ": " + remedy)
}
