package model_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/memstore"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/ratelimit"
	"eventsv2/eventqueue/worker"
)

const ratesSQL = `
SELECT l.canvas_id, l.module, l.name, coalesce(l.per_minute, 0), coalesce(l.per_day, 0), l.mode,
    c.minute_at, c.minute_count, c.day_at, c.day_count, c.waiting
FROM rate_limits l JOIN rate_counters c USING (canvas_id, module, name)
ORDER BY l.canvas_id, l.module, l.name`

func scanRate(row pgx.CollectableRow) (r memstore.RateRow, err error) {
	err = row.Scan((*[16]byte)(&r.Canvas), &r.Module, &r.Name, &r.PerMinute, &r.PerDay, &r.Mode,
		&r.MinuteAt, &r.MinuteCount, &r.DayAt, &r.DayCount, &r.Waiting)
	inUTC(&r.MinuteAt, &r.DayAt)
	return r, err
}

// drawRateScope draws a handler on a canvas, or the whole canvas.
func drawRateScope(t *rapid.T) eventqueue.Scope {
	scope := drawScope(t)
	if rapid.Bool().Draw(t, "wholeCanvas") {
		scope.Module, scope.Name = "", ""
	}
	return scope
}

func (w *world) setRateLimit(t *rapid.T) {
	limit := operate.RateLimit{Scope: drawRateScope(t), PerMinute: rapid.IntRange(0, 4).Draw(t, "perMinute"),
		PerDay: rapid.IntRange(0, 9).Draw(t, "perDay"), Mode: pick(t, "mode", []ratelimit.Mode{ratelimit.Exact, ratelimit.Approximate})}
	if limit.Validate() != nil {
		limit.PerMinute = 3
	}
	pg, pgErr := w.store.SetRateLimit(w.ctx, limit)
	mem, memErr := w.mem.SetRateLimit(w.ctx, limit)
	w.sameErrors(t, pgErr, memErr, false)
	same(t, "SetRateLimit", pg, mem)
}

func (w *world) removeRateLimit(t *rapid.T) {
	scope := drawRateScope(t)
	pg, pgErr := w.store.RemoveRateLimit(w.ctx, scope)
	mem, memErr := w.mem.RemoveRateLimit(w.ctx, scope)
	w.sameErrors(t, pgErr, memErr, false)
	same(t, "RemoveRateLimit", pg, mem)
}

// takeRate asks as often as not for more than there is, across the ends of windows.
func (w *world) takeRate(t *rapid.T) {
	var asks []worker.RateAsk
	seen := map[eventqueue.Scope]bool{}
	for range rapid.IntRange(1, 4).Draw(t, "asks") {
		if scope := drawScope(t); !seen[scope] {
			seen[scope] = true
			asks = append(asks, worker.RateAsk{Scope: scope, Want: rapid.IntRange(0, 6).Draw(t, "want"), Ran: rapid.IntRange(0, 3).Draw(t, "ran")})
		}
	}
	pg, pgErr := w.store.TakeRate(w.ctx, asks)
	mem, memErr := w.mem.TakeRate(w.ctx, asks)
	w.sameErrors(t, pgErr, memErr, false)
	for i := range pg {
		inUTC(&pg[i].At)
	}
	same(t, "TakeRate", plain(pg), plain(mem))
}

func (w *world) checkRates(t *rapid.T) {
	scope := drawRateScope(t)
	pg, pgErr := w.store.CheckRate(w.ctx, scope)
	mem, memErr := w.mem.CheckRate(w.ctx, scope)
	w.sameErrors(t, pgErr, memErr, false)
	same(t, "CheckRate", plain([]ratelimit.Answer{pg}), plain([]ratelimit.Answer{mem}))
	for _, canvas := range []*eventqueue.CanvasID{nil, &scope.Canvas} {
		pg, pgErr := w.store.RateLimits(w.ctx, canvas)
		mem, memErr := w.mem.RateLimits(w.ctx, canvas)
		w.sameErrors(t, pgErr, memErr, false)
		same(t, "RateLimits", pg, mem)
	}
}

// plainAnswer is an answer without pointers, so that it can be printed.
type plainAnswer struct {
	at              time.Time
	busy            bool
	granted         int
	canvas, handler ratelimit.State
}

func plain(answers []ratelimit.Answer) (all []plainAnswer) {
	for _, a := range answers {
		p := plainAnswer{at: a.At, busy: a.Busy, granted: a.Granted}
		if a.Canvas != nil {
			p.canvas = *a.Canvas
		}
		if a.Handler != nil {
			p.handler = *a.Handler
		}
		all = append(all, p)
	}
	return all
}

func (w *world) takeLimited(t *rapid.T) {
	scope, limit := drawRateScope(t), rapid.IntRange(1, 4).Draw(t, "limit")
	for after := (operate.RatePlace{}); ; {
		pg, pgNext, pgErr := w.store.TakeLimited(w.ctx, scope, after, limit)
		mem, memNext, memErr := w.mem.TakeLimited(w.ctx, scope, after, limit)
		w.sameErrors(t, pgErr, memErr, false)
		same(t, "TakeLimited", byNotified(pg), byNotified(mem))
		same(t, "the next place of TakeLimited", pgNext, memNext)
		if after = pgNext; after == (operate.RatePlace{}) {
			return
		}
	}
}

// TestRatesEqualSQL is for windows that follow each other: sequences of nothing but
// limits and time, with few scopes and large overshoots.
func TestRatesEqualSQL(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	checkAll(t, func(t *rapid.T) {
		tried.sequences.Add(1)
		w := newWorld(t, d)
		defer w.close()
		t.Repeat(map[string]func(*rapid.T){
			"":              func(t *rapid.T) { w.compare(t) },
			"setRateLimit":  w.setRateLimit,
			"takeRate":      w.takeRate,
			"takeRate'":     w.takeRate,
			"takeRate''":    w.takeRate,
			"checkRates":    w.checkRates,
			"letTimePass":   w.letTimePass,
			"letAMinuteGo":  func(t *rapid.T) { w.now = w.now.Add(time.Minute); w.setClock(t) },
			"letSixHoursGo": func(t *rapid.T) { w.now = w.now.Add(6 * time.Hour); w.setClock(t) },
		})
	})
}
