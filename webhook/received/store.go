package received

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/pgsession"
	"eventsv2/webhook"
)

// All times are by the database's clock: programs say how long ago something was. Rows are written in the order
// of their keys, so that no two programs wait for each other.
const addSQL = `
WITH clock AS MATERIALIZED (
    SELECT now, date_trunc('minute', now, 'UTC') AS minute FROM (SELECT clock_timestamp() AS now) AS clock
), counted AS (
    INSERT INTO webhook_minutes AS m (minute, source, canvas_id, outcome, requests)
    SELECT clock.minute, g.source, g.canvas_id, g.outcome, g.requests
    FROM clock CROSS JOIN unnest($1::text[], $2::uuid[], $3::text[], $4::bigint[]) AS g (source, canvas_id, outcome, requests)
    ORDER BY g.source, g.canvas_id, g.outcome
    ON CONFLICT (minute, source, canvas_id, outcome) DO UPDATE SET requests = m.requests + excluded.requests
), refused AS (
    SELECT g.source, g.canvas_id,
        jsonb_agg(jsonb_build_object('at', clock.now - g.ago, 'outcome', g.outcome, 'reason', g.reason) ORDER BY g.ago) AS refusals
    FROM clock CROSS JOIN unnest($9::text[], $10::uuid[], $11::text[], $12::text[], $13::interval[]) AS g (source, canvas_id, outcome, reason, ago)
    GROUP BY g.source, g.canvas_id
)
INSERT INTO webhook_sources AS s (source, canvas_id, scheme, served_at, received_at, refusals)
SELECT g.source, g.canvas_id, g.scheme, clock.now, clock.now - g.ago, coalesce(r.refusals, '[]')
FROM clock CROSS JOIN unnest($5::text[], $6::uuid[], $7::text[], $8::interval[]) AS g (source, canvas_id, scheme, ago)
LEFT JOIN refused r USING (source, canvas_id)
ORDER BY g.source, g.canvas_id
ON CONFLICT (source, canvas_id) DO UPDATE SET scheme = excluded.scheme, served_at = excluded.served_at,
    received_at = greatest(s.received_at, excluded.received_at),
    refusals = (SELECT coalesce(jsonb_agg(newest.r), '[]')
        FROM (SELECT r FROM jsonb_array_elements(excluded.refusals || s.refusals) AS r ORDER BY r ->> 'at' DESC LIMIT $14) AS newest)`

// add hands in counts; no source may be named twice.
func add(ctx context.Context, db *pgsession.Pool, taken []counted, now time.Time) error {
	var names, schemes, sources, outcomes, refusedOf, refusedBy, reasons []string
	var canvases, ofCanvas, refusedOn [][16]byte
	var requests []int64
	var since, refusedAgo []*time.Duration
	for _, c := range taken {
		names, canvases, schemes = append(names, c.Source), append(canvases, c.Canvas), append(schemes, c.scheme)
		var ago *time.Duration
		if !c.last.IsZero() {
			ago = new(now.Sub(c.last))
		}
		since = append(since, ago)
		for outcome, n := range c.requests {
			sources, ofCanvas, outcomes, requests = append(sources, c.Source), append(ofCanvas, c.Canvas), append(outcomes, string(outcome)), append(requests, n)
		}
		for _, r := range c.refusals {
			refusedOf, refusedOn = append(refusedOf, c.Source), append(refusedOn, c.Canvas)
			refusedBy, reasons, refusedAgo = append(refusedBy, string(r.outcome)), append(reasons, r.reason), append(refusedAgo, new(now.Sub(r.at)))
		}
	}
	_, err := db.Exec(ctx, addSQL, sources, ofCanvas, outcomes, requests, names, canvases, schemes, since, refusedOf, refusedOn, refusedBy, reasons, refusedAgo, retained)
	if err != nil {
		return fmt.Errorf("add what sources of webhooks have received: %w", err)
	}
	return nil
}

// Slot is how long the times are into which a day is divided, and Slots how many they are.
const (
	Slot  = 30 * time.Minute
	Slots = 48
)

// Source is a configured source with what it has received in the last day.
type Source struct {
	Name string
	// Canvas is the only one that it serves; the zero value stands for all.
	Canvas eventqueue.CanvasID
	// Scheme is as in the handlers file; empty for a verifier of the program's own.
	Scheme string
	// ServedAt is when a program that serves it last reported it.
	ServedAt time.Time
	// ReceivedAt is when a request last came; nil: none has.
	ReceivedAt *time.Time
	// Refusals are the newest, the newest first.
	Refusals []Refusal
	// Hour and Day are how many requests came in the last hour and day, by what became of them.
	Hour, Day map[webhook.Outcome]int64
	// BySlot are the requests of the day, in slots that end now, the oldest first: those that were not refused, and
	// those that were.
	BySlot, RefusedBySlot [Slots]int64
	// AsOf is the database's clock.
	AsOf time.Time
}

// Refusal is one refused request.
type Refusal struct {
	At      time.Time       `json:"at"`
	Outcome webhook.Outcome `json:"outcome"`
	Reason  string          `json:"reason"`
}

// Sum adds up the requests that were refused, or those that were not.
func Sum(requests map[webhook.Outcome]int64, refused bool) (sum int64) {
	for outcome, n := range requests {
		if outcome.Refused() == refused {
			sum += n
		}
	}
	return sum
}

// Reader reads what sources receive. It is safe for concurrent use.
type Reader struct{ pool *pgsession.Pool }

// NewReader makes a Reader of the queue in a schema ("" is public) on a pool, which the caller closes.
func NewReader(schema pgsession.Schema, pool *pgxpool.Pool) *Reader {
	return &Reader{pgsession.On(pool, schema)}
}

const (
	sourcesSQL = `
SELECT source, canvas_id, scheme, served_at, received_at, refusals, clock_timestamp()
FROM webhook_sources
ORDER BY source, canvas_id LIMIT $1`

	slotsSQL = `
WITH clock AS MATERIALIZED (
    SELECT clock_timestamp() AS now
)
SELECT m.source, m.canvas_id, m.outcome, floor(extract(epoch FROM clock.now - m.minute) / $1::float8)::int AS slot, sum(m.requests)::bigint
FROM clock CROSS JOIN webhook_minutes m
WHERE m.minute > clock.now - $2::interval AND m.minute <= clock.now
GROUP BY 1, 2, 3, 4`
)

// Sources returns the sources that programs serve, or have served within a year, by their names: at most a thousand.
// It reads the minutes of a day, of which there are as many as sources received something.
func (r *Reader) Sources(ctx context.Context) ([]Source, error) {
	rows, err := r.pool.Query(ctx, sourcesSQL, maxSources)
	if err != nil {
		return nil, err
	}
	sources, err := pgx.CollectRows(rows, scanSource)
	if err != nil {
		return nil, err
	}
	at := map[place]*Source{}
	for i := range sources {
		at[place{sources[i].Name, sources[i].Canvas}] = &sources[i]
	}
	if rows, err = r.pool.Query(ctx, slotsSQL, Slot.Seconds(), Slots*Slot); err != nil {
		return nil, err
	}
	var of place
	var outcome webhook.Outcome
	var slot int
	var requests int64
	_, err = pgx.ForEachRow(rows, []any{&of.Source, (*[16]byte)(&of.Canvas), &outcome, &slot, &requests}, func() error {
		if source := at[of]; source != nil {
			source.add(outcome, slot, requests)
		}
		return nil
	})
	return sources, err
}

func scanSource(row pgx.CollectableRow) (s Source, err error) {
	var refusals []byte
	s.Hour, s.Day = map[webhook.Outcome]int64{}, map[webhook.Outcome]int64{}
	if err := row.Scan(&s.Name, (*[16]byte)(&s.Canvas), &s.Scheme, &s.ServedAt, &s.ReceivedAt, &refusals, &s.AsOf); err != nil {
		return s, err
	}
	s.Refusals = readRefusals(refusals)
	return s, nil
}

// readRefusals leaves out what makes no sense: roles that serve webhooks can write it, and it must not take away what the other
// sources received.
func readRefusals(list []byte) (refusals []Refusal) {
	var elements []json.RawMessage
	_ = json.Unmarshal(list, &elements) // of anything else there are none
	for _, element := range elements {
		var r Refusal
		if json.Unmarshal(element, &r) == nil && r.Outcome != "" {
			refusals = append(refusals, r)
		}
	}
	return refusals
}

// add adds requests that came so many slots ago.
func (s *Source) add(outcome webhook.Outcome, ago int, requests int64) {
	ago = min(max(ago, 0), Slots-1)
	s.Day[outcome] += requests
	if time.Duration(ago)*Slot < time.Hour {
		s.Hour[outcome] += requests
	}
	if outcome.Refused() {
		s.RefusedBySlot[Slots-1-ago] += requests
	} else {
		s.BySlot[Slots-1-ago] += requests
	}
}
