package sim

import (
	"cmp"
	"context"
	_ "embed"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype/zeronull"
	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/eventqueue/queuetest"
)

//go:embed tables.sql
var tablesSQL string

// tables is the database: a Postgres whose clock is the bubble's. Virtual time stands still while a query is under way,
// and the controller waits for its answer.
//
// events is a copy of the committed rows of events_v2, of which a trigger says what changes.
type tables struct {
	clock *queuetest.Clock
	pool  *pgxpool.Pool
	store *pgstore.Store // of the controller

	noticed sync.Mutex
	notices []string // guarded by noticed

	mu        sync.Mutex
	own       *pgx.Conn // hears what commits
	kind      int64     // of the statement that follows; 0: one that no row refuses
	heard     []*pgconn.Notification
	open      []*transaction
	stale     bool                       // a statement has run since the last sync
	events    map[eventqueue.EventID]row // see event and rows
	unlocked  []eventqueue.EventID       // events whose locks have gone
	listeners []*listener
}

// row is a row of events_v2.
type row struct {
	ID                     eventqueue.EventID
	Canvas                 eventqueue.CanvasID
	Module, Name, Modifier string
	Retries, Attempts      int32
	Locked                 bool
	DelayUntil, LockedAt   time.Time
	Writes                 int // of the row
}

// strange are settings of a pool that the queue has not made, with which all is the same.
var strange = map[string]string{
	"default_transaction_isolation": "serializable",
	"DateStyle":                     "SQL, DMY",
	"IntervalStyle":                 "sql_standard",
	"TimeZone":                      "Pacific/Chatham",
	"standard_conforming_strings":   "off",
	"bytea_output":                  "escape",
	"extra_float_digits":            "-15",
	"row_security":                  "off",
	"quote_all_identifiers":         "on",
	"enable_hashjoin":               "off",
	"enable_mergejoin":              "off",
	"enable_bitmapscan":             "off",
}

// configure returns the settings of a pool that the queue has made, or of one of a program's own.
func configure(url string, own bool) *pgxpool.Config {
	if own {
		config, err := pgxpool.ParseConfig(url)
		must(err)
		maps.Copy(config.ConnConfig.RuntimeParams, strange)
		return config
	}
	pool, err := pgstore.NewPool(url, "sim", 0)
	must(err)
	defer pool.Close()
	return pool.Config()
}

// openTables prepares a fresh database of the queue, to which programs connect with a pool of the queue's or their own.
func openTables(ctx context.Context, url string, ownPool bool) *tables {
	t := &tables{events: map[eventqueue.EventID]row{}}
	var err error
	t.clock, err = queuetest.Start(ctx, url)
	must(err)
	config := configure(url, ownPool)
	config.MaxConns = 100
	t.clock.Follow(config)
	config.ConnConfig.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) {
		t.noticed.Lock()
		defer t.noticed.Unlock()
		t.notices = append(t.notices, n.Message)
	}
	prepare := config.AfterConnect
	config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		if err := prepare(ctx, conn); err != nil {
			return err
		}
		_, err := conn.Exec(ctx, settingsSQL)
		return err
	}
	own := configure(url, false).ConnConfig
	own.OnNotification = func(_ *pgconn.PgConn, n *pgconn.Notification) { t.heard = append(t.heard, n) }
	t.own, err = pgx.ConnectConfig(ctx, own)
	must(err)
	_, err = t.own.Exec(ctx, tablesSQL)
	must(err)
	_, err = t.own.Exec(ctx, listenSQL)
	must(err)
	t.pool, err = pgxpool.NewWithConfig(ctx, config)
	must(err)
	t.store = pgstore.New(t.pool)
	return t
}

const (
	// A statement that waits for a transaction which is open at the gate waits for ever, since nothing else
	// moves meanwhile: it may as well fail soon.
	settingsSQL = `SET lock_timeout = '200ms'; SET plan_cache_mode = force_generic_plan; SET client_min_messages = notice`
	listenSQL   = `LISTEN events_v2_pending; LISTEN events_v2_unpublished`
)

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func (t *tables) close() {
	t.pool.Close()
	_ = t.own.Close(context.Background())
	t.clock.Close()
}

// kindsOf are the writes that a row can refuse, as bits.
var kindsOf = map[string]int64{"Claim": 1, "Renew": 2, "BeginRuns": 2, "Finish": 4, "GiveBack": 8}

// name names the kind of statement that follows.
func (t *tables) name(kind int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if kind != t.kind {
		t.execLocked(`SELECT setval('sim.under_way', $1)`, kind)
	}
	t.kind, t.stale = kind, true
}

// now is what the database's clock shows.
func now() time.Time { return time.Now().Truncate(time.Microsecond) }

// exec runs a statement of the controller.
func (t *tables) exec(sql string, arguments ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.execLocked(sql, arguments...)
}

func (t *tables) execLocked(sql string, arguments ...any) {
	_, err := t.own.Exec(context.Background(), sql, arguments...)
	must(err)
}

// query runs a query of the controller.
func query[T any](t *tables, scan pgx.RowToFunc[T], sql string, arguments ...any) []T {
	t.mu.Lock()
	defer t.mu.Unlock()
	return queryLocked(t, scan, sql, arguments...)
}

func queryLocked[T any](t *tables, scan pgx.RowToFunc[T], sql string, arguments ...any) []T {
	rows, err := t.own.Query(context.Background(), sql, arguments...)
	must(err)
	list, err := pgx.CollectRows(rows, scan)
	must(err)
	return list
}

// changesSQL takes what has become of events.
const changesSQL = `
WITH taken AS (DELETE FROM sim.changes RETURNING n, id, row)
SELECT id, row IS NULL, coalesce((row).canvas_id, '00000000-0000-0000-0000-000000000000'), coalesce((row).module, ''), coalesce((row).name, ''), coalesce((row).modifier, ''),
    coalesce((row).retries, 0), coalesce((row).attempts, 0), coalesce(extract(epoch FROM (row).delay_until)::text, ''), coalesce(extract(epoch FROM (row).locked_at)::text, '')
FROM taken ORDER BY n`

// sync brings what has been committed and notified since the last call.
func (t *tables) sync() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.syncLocked()
}

func (t *tables) syncLocked() {
	if !t.stale {
		return
	}
	t.stale = false
	for _, c := range queryLocked(t, pgx.RowToStructByPos[change], changesSQL) {
		t.change(c)
	}
	heard := t.heard
	t.heard = nil
	for _, n := range heard {
		for _, l := range t.listeners {
			if l.channel == n.Channel {
				l.notify(n.Payload)
			}
		}
	}
}

// change is what has become of an event.
type change struct {
	ID                     eventqueue.EventID
	Gone                   bool
	Canvas                 eventqueue.CanvasID
	Module, Name, Modifier string
	Retries, Attempts      int32
	Due, LockedAt          string // seconds since 1970
}

func (t *tables) change(c change) {
	if c.Gone {
		delete(t.events, c.ID)
		return
	}
	if t.events[c.ID].Locked && c.LockedAt == "" {
		t.unlocked = append(t.unlocked, c.ID)
	}
	t.events[c.ID] = row{ID: c.ID, Canvas: c.Canvas, Module: c.Module, Name: c.Name, Modifier: c.Modifier,
		Retries: c.Retries, Attempts: c.Attempts, Locked: c.LockedAt != "", DelayUntil: epoch(c.Due), LockedAt: epoch(c.LockedAt), Writes: t.events[c.ID].Writes + 1}
}

// epoch reads seconds since 1970; nothing is the zero time.
func epoch(text string) time.Time {
	if text == "" {
		return time.Time{}
	}
	whole, part, _ := strings.Cut(text, ".")
	seconds, err := strconv.ParseInt(whole, 10, 64)
	must(err)
	micros, err := strconv.ParseInt((part + "000000")[:6], 10, 64)
	must(err)
	if strings.HasPrefix(text, "-") {
		micros = -micros
	}
	return time.Unix(seconds, micros*1000)
}

// event returns an event, or the zero row.
func (t *tables) event(id eventqueue.EventID) row {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.syncLocked()
	return t.events[id]
}

// writesBefore returns how often the row of an event had been written when the last call ended.
func (t *tables) writesBefore(id eventqueue.EventID) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.events[id].Writes
}

// rows returns the events, by id.
func (t *tables) rows() []row {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.syncLocked()
	return slices.SortedFunc(maps.Values(t.events), func(a, b row) int { return cmp.Compare(a.ID, b.ID) })
}

// forgetUnlocked empties unlocked.
func (t *tables) forgetUnlocked() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.unlocked = nil
}

// takeUnlocked returns the events whose locks have gone since forgetUnlocked.
func (t *tables) takeUnlocked() []eventqueue.EventID {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.syncLocked()
	return t.unlocked
}

// takeNotices returns what statements have raised since its last call.
func (t *tables) takeNotices() []string {
	t.noticed.Lock()
	defer t.noticed.Unlock()
	notices := t.notices
	t.notices = nil
	return notices
}

// disconnect ends the connections of a process: its open transactions, and what it listens to.
func (t *tables) disconnect(owner string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.open = slices.DeleteFunc(t.open, func(tx *transaction) bool {
		if tx.owner == owner {
			_ = tx.Rollback(context.Background())
		}
		return tx.owner == owner
	})
	t.listeners = slices.DeleteFunc(t.listeners, func(l *listener) bool {
		if l.owner == owner {
			close(l.cut)
		}
		return l.owner == owner
	})
}

// limited returns the events that a handler's or a canvas' limit has admitted.
func (t *tables) limited() []eventqueue.EventID {
	return query(t, pgx.RowTo[eventqueue.EventID], `SELECT DISTINCT event_id FROM event_groups WHERE stage > 1 AND admitted ORDER BY 1`)
}

// daily returns what is under a daily rate limit.
func (t *tables) daily() []eventqueue.Scope {
	return query(t, pgx.RowToStructByPos[eventqueue.Scope], `SELECT canvas_id, module, name FROM rate_limits WHERE per_day > 0 ORDER BY 1, 2, 3`)
}

// rules returns how to lift each of the rules.
func (t *tables) rules() []operate.Lift {
	return query(t, func(r pgx.CollectableRow) (lift operate.Lift, err error) {
		err = r.Scan((*string)(&lift.Type), &lift.Canvas, &lift.Module, &lift.Name, &lift.Modifier, &lift.Prefix)
		return lift, err
	}, `SELECT rule_type::text, canvas_id, event_space, handler_name, modifier, prefix FROM scheduling_rules ORDER BY id`)
}

// record is a row of cron_records.
type cronRecord struct {
	Cron  int64
	Slot  time.Time
	Event eventqueue.EventID // 0 of a slot that was skipped
}

func (t *tables) records() []cronRecord {
	return query(t, pgx.RowToStructByPos[cronRecord], `SELECT cron_id, slot, event_id FROM cron_records ORDER BY created_at, cron_id, slot`)
}

// logged is a row of event_log.
type logged struct {
	ID                    eventqueue.EventID
	Module, Status, Value string
}

func (t *tables) log() []logged {
	return query(t, pgx.RowToStructByPos[logged], `SELECT id, module, status, value FROM event_log ORDER BY id`)
}

// gridOutput is a row of grid_outputs.
type gridOutput struct {
	Event  eventqueue.EventID
	Row    string
	Output string
}

func (t *tables) gridOutputs() []gridOutput {
	return query(t, pgx.RowToStructByPos[gridOutput], `SELECT event_id, action, output FROM grid_outputs ORDER BY 1, 2`)
}

// publicationRows returns the rows of cleanups, with their expiries.
func (t *tables) publicationRows() map[publicationRow]time.Time {
	type expiring struct {
		publicationRow
		expires time.Time
	}
	rows := map[publicationRow]time.Time{}
	for _, r := range query(t, func(r pgx.CollectableRow) (row expiring, err error) {
		return row, r.Scan((*zeronull.Int8)(&row.Event), &row.Token, (*zeronull.Text)(&row.Data), &row.expires)
	}, `SELECT event_id, token::text, convert_from(data, 'UTF8'), expires_at FROM cleanups`) {
		rows[r.publicationRow] = r.expires
	}
	return rows
}
