package webserver_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/access"
	"eventsv2/eventqueue/audit"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/test/testenv"
)

const (
	goodCanvas = "60000000-0000-4000-8000-000000000001"
	goodID     = "70000000-0000-4000-8000-000000000001"
)

// goodRows has for each table one row that programs wrote, or could have written.
var goodRows = []string{
	`INSERT INTO events_v2 (id, canvas_id, module, name, modifier, value, attributes) VALUES (1, $1, 'WORKER', 'send', '_', '{}', '{"a": "b"}')`,
	`INSERT INTO events_v2 (id, canvas_id, module, name, modifier, value, ordering_key, group_state) VALUES (2, $1, 'WORKER', 'keyed', '_', '{}', 'k', 1)`,
	`INSERT INTO event_groups (event_id, stage, canvas_id, group_key) VALUES (2, 1, $1, 'key k')`,
	`INSERT INTO event_log (id, canvas_id, module, name, modifier, value, status, retries, attempts, last_error, enqueued_at)
		VALUES (3, $1, 'WORKER', 'send', '_', '{}', 'FAILED', 1, 2, 'no luck', now())`,
	`INSERT INTO event_attempts (event_id, attempt, canvas_id, started_at, duration, worker, error) VALUES (1, 1, $1, now(), '1 s', 7, 'no luck')`,
	`INSERT INTO scheduling_rules (rule_type, canvas_id, handler_name, event_space, reason) VALUES ('pause', $1, 'send', 'WORKER', 'the bank is down')`,
	`INSERT INTO concurrency_limits (canvas_id, group_key, max_running) VALUES ($1, 'canvas', 3)`,
	`INSERT INTO rate_limits (canvas_id, module, name, per_minute) VALUES ($1, '', '', 5)`,
	`INSERT INTO cron_definitions (canvas_id, name, schedule) VALUES ($1, 'nightly', '0 3 * * *')`,
	`INSERT INTO cron_records (cron_id, slot, event_id) SELECT id, date_trunc('minute', now()), 1 FROM cron_definitions`,
	`INSERT INTO event_workers (number, host, pid, version, handlers, slots, busy, hung) VALUES (7, 'host', 1, 'v1', '[{"module": "WORKER", "name": "send", "modifier": "_"}]', 10, 1, 0)`,
	`INSERT INTO event_minutes (minute, canvas_id, module, name, emitted, waits, runs, pending, oldest_due)
		VALUES (date_trunc('minute', now()), $1, 'WORKER', 'send', 1, '{1,2}', '{1,2}', 1, '1 s')`,
	`INSERT INTO event_hours (hour, canvas_id, module, name, emitted, completed, failed, retried, waits, runs, pending, oldest_due)
		VALUES (date_trunc('hour', now()), $1, 'WORKER', 'send', 1, 1, 1, 1, '{1,2}', '{1,2}', 1, '1 s')`,
	`INSERT INTO event_minute_totals (minute, of_all, canvas_id, emitted, completed, failed, retried, cancelled, waits, pending, oldest_due)
		VALUES (date_trunc('minute', now()) - interval '5 minutes', true, '00000000-0000-0000-0000-000000000000', 1, 1, 1, 1, 0, '{1,2}', 1, '1 s')`,
	`INSERT INTO event_hour_totals (hour, of_all, canvas_id, emitted, completed, failed, retried, cancelled, waits, pending, oldest_due)
		VALUES (date_trunc('hour', now()) - interval '5 hours', true, '00000000-0000-0000-0000-000000000000', 1, 1, 1, 1, 0, '{1,2}', 1, '1 s')`,
	`INSERT INTO webhook_sources (source, canvas_id, scheme, served_at, received_at, refusals)
		VALUES ('github', $1, 'github', now(), now(), '[{"at": "2026-01-02T03:04:05Z", "outcome": "too old", "reason": "late"}]')`,
	`INSERT INTO webhook_minutes (minute, source, canvas_id, outcome, requests) VALUES (date_trunc('minute', now()), 'github', $1, 'accepted', 1)`,
	`INSERT INTO access_tokens (id, name, hash, verbs, created_by) VALUES ('` + goodID + `', 'mine', '\x01', '{read}', 'me')`,
	`INSERT INTO canvas_names (canvas_id, name) VALUES ($1, 'Acme Ltd')`,
	`INSERT INTO audit_log (actor, source, via, action, canvas_id, target, before, after)
		VALUES ('me', 'here', 'api', 'edit', $1, '{"events": [1]}', '{"1": {"value": "1"}}', '{"1": {"value": "2"}}')`,
	`INSERT INTO bulk_operations (id, counted_at, expires_at, identity, actor, source, via, canvas_id, change, counted, last_id, state)
		VALUES ('` + goodID + `', now(), now(), 'me', 'me', 'here', 'api', $1, '{"verb": "cancel"}', 1, 1, 'done')`,
}

// freshSQL makes the value of a column of a key that no other row has.
var freshSQL = map[string]string{
	"bigint": `1000 + $1::int`, "integer": `1000 + $1::int`, "uuid": `gen_random_uuid()`, "bytea": `int4send($1)`,
	"text": `t.%s || ' ' || $1::int`, "timestamp with time zone": `t.%s - $1::int * interval '1 minute'`,
}

// badSQL are values that no program writes, by the type of their columns.
var badSQL = map[string][]string{
	"timestamp with time zone":    {`'infinity'`, `'-infinity'`, `'200000-01-01'`, `'4000-01-01 BC'`},
	"timestamp without time zone": {`'infinity'`, `'-infinity'`, `'200000-01-01'`, `'4000-01-01 BC'`},
	"interval":                    {`'170000000 years'`, `'-170000000 years'`, `'-1 s'`},
	"jsonb": {`'{}'`, `'[]'`, `'1'`, `'"x"'`, `'null'`, `'[null]'`, `'[1]'`, `'[[]]'`, `'[{"at": 1}]'`, `'[{"at": "then"}]'`, `'{"events": 1}'`, `'{"events": ["x"]}'`, `'{"handler": 1}'`, `'{"1": []}'`,
		`'[{"module": 1, "name": {}}]'`},
	"text":     {`''`, `'{'`, `'[]'`, `'null'`, `E'\x1b[2J\u0085\u009b\u202e'`, `repeat('x', 2000)`, `'{"filter": 1, "verb": []}'`},
	"bigint":   {`9223372036854775807`, `9223372036854775806`, `-9223372036854775808`, `-1`, `0`},
	"integer":  {`-2147483648`, `2147483647`, `-1`, `0`},
	"smallint": {`-32768`, `32767`, `-1`, `0`},
	"boolean":  {`true`, `false`},
	"uuid":     {`'00000000-0000-0000-0000-000000000000'`},
	"uuid[]":   {`'{}'`, `'{NULL}'`, `'{{00000000-0000-0000-0000-000000000000}}'`},
	"text[]":   {`'{}'`, `'{NULL}'`, `'{{x,y},{z,x}}'`, `'{x}'`},
	"bigint[]": {`'{}'`, `'{NULL}'`, `'{{1,2},{3,4}}'`, `'[-3:-2]={1,2}'`, `'{9223372036854775807,9223372036854775807}'`, `'{-1}'`, `array_fill(1, '{100}')`},
	"bytea":    {`''`},
}

// columnsSQL reads the columns of a table, and which of them are of its key and which are drawn by the database.
const columnsSQL = `
SELECT a.attname, format_type(a.atttypid, a.atttypmod), a.attidentity <> '', NOT a.attnotnull,
    EXISTS (SELECT FROM pg_index i WHERE i.indrelid = a.attrelid AND i.indisunique AND a.attnum = ANY (i.indkey))
FROM pg_attribute a WHERE a.attrelid = $1::regclass AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum`

type column struct {
	Name, Type              string
	Identity, Nullable, Key bool
}

// addBadRows adds to each table that has a row a copy for each of its columns and bad values, and returns how many rows its constraints allowed.
func addBadRows(ctx context.Context, t *testing.T, pool *pgxpool.Pool) (added int) {
	t.Helper()
	rows, _ := pool.Query(ctx, `SELECT unnest(events_v2_tables())`)
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range tables {
		if table == "events_v2_settings" || table == "eventsv2_schema_version" {
			continue // one row, which the programs need
		}
		rows, _ := pool.Query(ctx, columnsSQL, table)
		columns, err := pgx.CollectRows(rows, pgx.RowToStructByPos[column])
		if err != nil {
			t.Fatal(err)
		}
		var first string
		if err := pool.QueryRow(ctx, `SELECT min(ctid)::text FROM `+table).Scan(&first); err != nil || first == "" {
			continue
		}
		n := 0 // so that minutes and hours are recent ones
		for _, bad := range columns {
			values := badSQL[bad.Type]
			if bad.Nullable {
				values = append(slices.Clone(values), "NULL")
			}
			for _, value := range values {
				n++
				if addBadRow(ctx, t, pool, table, first, columns, bad, value, n) {
					added++
				}
			}
		}
	}
	return added
}

// addBadRow adds one row, and reports whether the table's constraints allow it.
func addBadRow(ctx context.Context, t *testing.T, pool *pgxpool.Pool, table, first string, columns []column, bad column, value string, n int) bool {
	t.Helper()
	// The other columns of such a key name what the row is of, such as an event that has a page.
	varied := map[string]string{"event_attempts": "attempt", "cron_records": "slot", "event_minutes": "minute", "event_hours": "hour",
		"event_minute_totals": "minute", "event_hour_totals": "hour", "webhook_minutes": "minute"}[table]
	var names, exprs []string
	for _, c := range columns {
		expr := "t." + c.Name
		switch {
		case c.Name == bad.Name:
			expr = value
		case c.Identity:
			continue
		case c.Key && c.Name != "canvas_id" && (c.Name == varied || varied == ""):
			if fresh, is := freshSQL[c.Type]; is {
				expr = strings.ReplaceAll(fresh, "%s", c.Name)
			}
		}
		names, exprs = append(names, c.Name), append(exprs, expr)
	}
	sql := fmt.Sprintf(`WITH n AS (SELECT $1::int) INSERT INTO %s (%s) OVERRIDING SYSTEM VALUE SELECT %s FROM %s AS t WHERE t.ctid = $2::tid`,
		table, strings.Join(names, ", "), strings.Join(exprs, ", "), table)
	_, err := pool.Exec(ctx, sql, n, first)
	var refused *pgconn.PgError
	switch {
	case err == nil:
		return true
	case errors.As(err, &refused) && (refused.Code[:2] == "23" || refused.Code[:2] == "22"):
		return false
	default:
		t.Fatalf("%s: %v", sql, err)
		return false
	}
}

// paths are the paths of all pages, and of all reads of the API.
func (v *visitor) paths() (list []string) {
	v.t.Helper()
	list = []string{"/", "/?range=24h", "/?range=7d", "/handlers", "/events", "/events?state=failed", "/events?canvas=" + goodCanvas, "/events/1", "/events/2", "/events/3", "/failed", "/workers", "/events/1/edit",
		"/handler?canvas=" + goodCanvas + "&module=WORKER&name=send", "/groups", "/groups?canvas=" + goodCanvas, "/crons", "/crons?canvas=" + goodCanvas, "/webhooks", "/audit", "/audit?event=1",
		"/tokens", "/operations", "/operations/" + goodID}
	var api struct {
		Paths map[string]map[string]struct {
			Parameters []struct {
				Name, In string
				Required bool
			}
		}
	}
	if err := json.Unmarshal(v.open("/v1/openapi.json").Body.Bytes(), &api); err != nil {
		v.t.Fatal(err)
	}
	for _, path := range slices.Sorted(maps.Keys(api.Paths)) {
		operation, is := api.Paths[path]["get"]
		if !is {
			continue
		}
		id := "1"
		if strings.HasPrefix(path, "/v1/bulk") {
			id = goodID
		}
		path, query := strings.ReplaceAll(path, "{id}", id), "?"
		for _, p := range operation.Parameters {
			switch {
			case p.Name == "canvas_id":
				query += "canvas_id=" + goodCanvas + "&"
			case p.Name == "name" && p.Required:
				query += "name=nightly&"
			}
		}
		list = append(list, path+query)
	}
	return append(list, "/v1/stats?canvas_id="+goodCanvas+"&per=hour", "/v1/stats?canvas_id="+goodCanvas+"&per=hour&since_seconds=600000")
}

// visitor opens pages and asks the API with all rights.
type visitor struct {
	t       *testing.T
	handler http.Handler
	token   string
	session *http.Cookie
}

func (v *visitor) send(r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	r.Host, r.RemoteAddr = "127.0.0.1:8090", "127.0.0.1:4711"
	v.handler.ServeHTTP(w, r)
	return w
}

func (v *visitor) open(path string) *httptest.ResponseRecorder {
	v.t.Helper()
	r := httptest.NewRequestWithContext(testenv.Context(v.t), http.MethodGet, path, http.NoBody)
	if strings.HasPrefix(path, "/v1/") {
		r.Header.Set("Authorization", "Bearer "+v.token)
	} else {
		r.AddCookie(v.session)
	}
	return v.send(r)
}

// enter makes a visitor with a token of its own.
func enter(t *testing.T, handler http.Handler, tokens *access.Tokens) *visitor {
	t.Helper()
	_, token, err := tokens.Create(testenv.Context(t), audit.Actor{Name: "test", Via: "test"}, access.NewToken{Name: "all", Grant: access.Grant{Verbs: access.Verbs()}})
	if err != nil {
		t.Fatal(err)
	}
	v := &visitor{t: t, handler: handler, token: token}
	form := httptest.NewRequestWithContext(testenv.Context(t), http.MethodPost, "/login", strings.NewReader(url.Values{"token": {token}}.Encode()))
	form.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	form.Header.Set("Sec-Fetch-Site", "same-origin")
	w := v.send(form)
	cookies := w.Result().Cookies()
	if len(cookies) == 0 {
		t.Fatalf("the log-in is answered with %d: %s", w.Code, w.Body)
	}
	v.session = cookies[0]
	return v
}

// TestBadRowsFailNoPage (I15): whatever single rows the roles of a database can write, each page and each answer of the API is there.
func TestBadRowsFailNoPage(t *testing.T) {
	t.Parallel()
	ctx := testenv.Context(t)
	pool, err := pgstore.NewPool(testenv.DatabaseURL(t), "test", 4)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	for _, sql := range goodRows {
		var args []any
		if strings.Contains(sql, "$1") {
			args = append(args, goodCanvas)
		}
		if _, err := pool.Exec(ctx, sql, args...); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	server := listen(t, pool)
	v := enter(t, server.Handler, server.Access.Tokens)
	all := v.paths()
	for _, path := range all {
		if w := v.open(path); w.Code != http.StatusOK {
			t.Fatalf("with good rows alone, %s is %d: %s", path, w.Code, w.Body)
		}
	}
	added := addBadRows(ctx, t, pool)
	for _, path := range all {
		if w := v.open(path); w.Code != http.StatusOK {
			t.Errorf("with %d bad rows, %s is %d: %s", added, path, w.Code, w.Body)
		}
	}
	if _, err := pool.Exec(ctx, `SELECT events_v2_runnable()`); err != nil {
		t.Errorf("events_v2_runnable: %v", err)
	}
}
