package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/ratelimit"
	"eventsv2/test/attack/chaos/task"
	"eventsv2/test/oracle"
)

// The rate limits: one of each mode for a handler, on a canvas of its own, so low that
// at the usual rate most events have to wait.
const (
	exactCanvas       = uniqueCanvas + 1
	approximateCanvas = exactCanvas + 1
	ratedHandler      = "busy"
	ratedPerMinute    = 120 // of a steady run: steadilyRated
	claimBatch        = 100 // what an approximate limit may be exceeded by, of each worker
)

// steadilyRated is how many minutes' worth of a second's events a rate limit of a steady run lets
// through in a minute: half more than what comes, so that what waits for it does not grow.
const steadilyRated = 3

// limitRates sets the rate limits of the run, before anything is emitted.
func (s *stage) limitRates(ctx context.Context) error {
	for canvas, mode := range map[int]ratelimit.Mode{exactCanvas: ratelimit.Exact, approximateCanvas: ratelimit.Approximate} {
		perMinute := ratedPerMinute
		if s.opts.steady {
			perMinute = steadilyRated * s.opts.Rate
		}
		limit := operate.RateLimit{PerMinute: perMinute, Mode: mode,
			Scope: eventqueue.Scope{Canvas: s.canvases[canvas], Module: task.Module, Name: ratedHandler}}
		if _, err := s.rateLimits.Set(ctx, limit); err != nil {
			return err
		}
		s.rates = append(s.rates, oracle.RateChange{At: time.Now(), Limit: limit})
	}
	return nil
}

// unlimitRates removes them at the end of the load, so that what they have put off does
// not have to wait for its window. It may be repeated. What was claimed within the last
// locks before it may begin without a grant: the limit may be gone before its worker asks.
func (s *stage) unlimitRates(ctx context.Context) error {
	if len(s.rates) == 2 {
		for _, set := range s.rates[:2] {
			removed := oracle.RateChange{At: time.Now().Add(-2 * lockTimeout), Limit: operate.RateLimit{Scope: set.Limit.Scope}}
			s.rates = append(s.rates, removed)
		}
	}
	for _, set := range s.rates[:2] {
		if _, _, err := s.rateLimits.Remove(ctx, set.Limit.Scope); err != nil {
			return err
		}
	}
	return nil
}

// grant is one change of the counters of a rate limit.
type grant struct {
	at, window time.Time // window is the beginning of its minute
	writer     string
	scope      eventqueue.Scope
	runs       int // that were counted
}

const readGrantsSQL = `
SELECT at, window_at, writer, canvas_id, module, name, runs
  FROM chaos_grants
 ORDER BY at`

// readGrants reads what the rate limits have counted.
func readGrants(ctx context.Context, pool *pgxpool.Pool) ([]grant, error) {
	rows, err := pool.Query(ctx, readGrantsSQL)
	if err != nil {
		return nil, fmt.Errorf("read the record of the rate limits: %w", err)
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (g grant, err error) {
		err = row.Scan(&g.at, &g.window, &g.writer, (*[16]byte)(&g.scope.Canvas), &g.scope.Module, &g.scope.Name, &g.runs)
		return g, err
	})
}

// rateOf is the rate limit that events such as this one have, or nil.
func (c *checker) rateOf(e *entered) *operate.RateLimit {
	return c.rateOfScope(e.scope())
}

func (c *checker) rateOfScope(scope eventqueue.Scope) *operate.RateLimit {
	i := slices.IndexFunc(c.rates, func(r oracle.RateChange) bool { return r.Limit.Scope == scope && r.Limit.PerMinute > 0 })
	if i < 0 {
		return nil
	}
	return &c.rates[i].Limit
}

// putOff reports whether a claim was given back, and later, because of a rate limit:
// nothing was run.
func (c *checker) putOff(t *trial, claim, back *change) bool {
	return c.rateOf(t.entered) != nil && back.new.dueMicros > back.old.dueMicros && back.new.retries == back.old.retries &&
		len(t.runsOf(claim)) == 0
}

// released reports whether a change made an event due that a rate limit had put off.
func (c *checker) released(t *trial, ch *change) bool {
	return ch.op == opUpdate && ch.old.lockedMicros == 0 && ch.new.lockedMicros == 0 && ch.writer == slotEmitter &&
		ch.new.dueMicros < ch.old.dueMicros && ch.new.retries == ch.old.retries && c.rateOf(t.entered) != nil
}

// recordRates adds what the rate limits counted for the scopes of some events, and puts
// grants and runs in order: clocks are those of one machine.
func (c *checker) recordRates(h *oracle.History, ids []eventqueue.EventID) {
	scopes := map[eventqueue.Scope]bool{}
	for _, id := range ids {
		if e := c.stories[id].entered; e != nil && c.rateOf(e) != nil {
			scopes[c.rateOf(e).Scope] = true
		}
	}
	if len(scopes) == 0 {
		return
	}
	h.Rates, h.Bounds.Untold = c.rates, claimBatch
	for _, g := range c.grants {
		if !scopes[g.scope] {
			continue
		}
		r := oracle.Record{Kind: oracle.Granted, At: g.at, Actor: g.writer, Scope: g.scope}
		if c.rateOfScope(g.scope).Mode == ratelimit.Exact {
			// By the window in which the statement counted it.
			if last := g.window.Add(time.Minute - time.Microsecond); r.At.After(last) {
				r.At = last
			}
			r.Granted = g.runs
		} else {
			r.Ran = g.runs
		}
		c.result.figures.granted += g.runs
		h.Add(r)
	}
	slices.SortStableFunc(h.Records, func(a, b oracle.Record) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(boolOf(a.Kind != oracle.Granted), boolOf(b.Kind != oracle.Granted)))
	})
}

func boolOf(b bool) int {
	if b {
		return 1
	}
	return 0
}
