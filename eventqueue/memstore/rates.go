package memstore

import (
	"cmp"
	"context"
	"slices"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/ratelimit"
	"eventsv2/eventqueue/worker"
)

func (db *database) rateRows() []RateRow {
	rows := make([]RateRow, 0, len(db.rates))
	for _, r := range db.rates {
		rows = append(rows, *r)
	}
	slices.SortFunc(rows, func(a, b RateRow) int { return compareScopes(a.Scope, b.Scope) })
	return rows
}

// limited reports whether a rate limit applies to the events of a scope.
func (db *database) limited(scope eventqueue.Scope) bool {
	return db.rates[wholeCanvas(scope)] != nil || db.rates[scope] != nil
}

// exact reports whether one of the limits of a scope is exact.
func (db *database) exact(scope eventqueue.Scope) bool {
	return slices.ContainsFunc(db.ratesOf(scope), func(r *RateRow) bool { return r.Mode == ratelimit.Exact })
}

func wholeCanvas(scope eventqueue.Scope) eventqueue.Scope {
	return eventqueue.Scope{Canvas: scope.Canvas}
}

// limitedAttempt returns the number that identifies a claim that a limit has put off.
func limitedAttempt(attempts int32) int16 { return int16(attempts%32767 + 1) }

// SetRateLimit implements operate.RateStore.
func (s *Store) SetRateLimit(ctx context.Context, limit operate.RateLimit) (before *operate.RateLimit, err error) {
	err = s.atOnce(ctx, OpSetRateLimit, func() {
		r, there := s.db.rates[limit.Scope]
		switch {
		case !there:
			epoch := time.Unix(0, 0).UTC()
			s.db.rates[limit.Scope] = &RateRow{RateLimit: limit, MinuteAt: epoch, DayAt: epoch}
			return
		case r.RateLimit != limit:
			before, r.RateLimit = new(r.RateLimit), limit
		default:
			before = new(r.RateLimit)
			return
		}
		r.Waiting = 0
		if limit.PerMinute > 0 {
			r.MinuteCount = min(r.MinuteCount, int64(limit.PerMinute))
		}
		if limit.PerDay > 0 {
			r.DayCount = min(r.DayCount, int64(limit.PerDay))
		}
	})
	if err != nil {
		return nil, err
	}
	return before, nil
}

// RemoveRateLimit implements operate.RateStore.
func (s *Store) RemoveRateLimit(ctx context.Context, scope eventqueue.Scope) (removed bool, err error) {
	err = s.atOnce(ctx, OpRemoveRateLimit, func() {
		_, removed = s.db.rates[scope]
		delete(s.db.rates, scope)
	})
	return removed && err == nil, err
}

// RateLimits implements operate.RateStore.
func (s *Store) RateLimits(ctx context.Context, canvas *eventqueue.CanvasID) (all []operate.RateStatus, err error) {
	err = s.atOnce(ctx, OpRateLimits, func() {
		now := s.db.now()
		for _, r := range s.db.rateRows() {
			if canvas == nil || r.Canvas == *canvas {
				r.roll(now)
				all = append(all, operate.RateStatus{RateLimit: r.RateLimit, Windows: r.windows(now)})
			}
		}
	})
	return resultOf(all, err)
}

// CheckRate implements operate.RateStore.
func (s *Store) CheckRate(ctx context.Context, scope eventqueue.Scope) (answer ratelimit.Answer, err error) {
	err = s.atOnce(ctx, OpCheckRate, func() {
		now := s.db.now()
		look := func(scope eventqueue.Scope) *ratelimit.State {
			r, there := s.db.rates[scope]
			if !there {
				return nil
			}
			rolled := *r
			rolled.roll(now)
			return rolled.state(now)
		}
		answer.Canvas = look(wholeCanvas(scope))
		if !scope.WholeCanvas() {
			answer.Handler = look(scope)
		}
	})
	if err != nil {
		return ratelimit.Answer{}, err
	}
	return answer, nil
}

// TakeRate implements worker.RateTaker. Its answers are never busy.
func (s *Store) TakeRate(ctx context.Context, asks []worker.RateAsk) (answers []ratelimit.Answer, err error) {
	err = s.atOnce(ctx, OpTakeRate, func() { answers = s.db.takeRate(asks, s.db.now()) })
	return resultOf(answers, err)
}

func (db *database) takeRate(asks []worker.RateAsk, now time.Time) []ratelimit.Answer {
	for _, ask := range asks {
		for _, r := range db.ratesOf(ask.Scope) {
			r.roll(now)
			r.count(ask.Ran)
		}
	}
	answers := make([]ratelimit.Answer, len(asks))
	type refusal struct{ waiting, refused int64 }
	refused := map[*RateRow][]refusal{}
	waiting := map[*RateRow]int64{}
	for i, ask := range asks {
		fits, a := ask.Want, &answers[i]
		a.At, a.Granted = now, ask.Want
		for _, r := range []*RateRow{db.rates[ask.Scope], db.rates[wholeCanvas(ask.Scope)]} { // the canvas decides last
			if r == nil {
				continue
			}
			a.Granted = min(fits, r.room())
			refused[r] = append(refused[r], refusal{r.Waiting + waiting[r], int64(fits - a.Granted)})
			waiting[r] += int64(fits - a.Granted)
			fits = a.Granted
		}
		for _, r := range db.ratesOf(ask.Scope) {
			r.count(a.Granted)
		}
	}
	// The counts of each answer are those after all requests.
	for i, ask := range asks {
		state := func(scope eventqueue.Scope) *ratelimit.State {
			r, there := db.rates[scope]
			if !there {
				return nil
			}
			s := r.state(now)
			s.Waiting, s.Refused = refused[r][0].waiting, int(refused[r][0].refused)
			refused[r] = refused[r][1:]
			return s
		}
		answers[i].Canvas, answers[i].Handler = state(wholeCanvas(ask.Scope)), state(ask.Scope)
	}
	for r, n := range waiting {
		r.Waiting += n
	}
	return answers
}

// ratesOf returns the limits that apply to the events of a scope.
func (db *database) ratesOf(scope eventqueue.Scope) (limits []*RateRow) {
	for _, s := range []eventqueue.Scope{wholeCanvas(scope), scope} {
		if r, there := db.rates[s]; there {
			limits = append(limits, r)
		}
	}
	return limits
}

// roll advances the counters to a time, as mayrun.RolledRateSQL does.
func (r *RateRow) roll(now time.Time) {
	const day = 24 * time.Hour
	minuteAt, dayAt := now.UTC().Truncate(time.Minute), now.UTC().Truncate(day)
	minutes := max(int64(minuteAt.Sub(r.MinuteAt)/time.Minute), 0)
	days := max(int64(dayAt.Sub(r.DayAt)/day), 0)
	perMinute, perDay := int64(r.PerMinute), int64(r.PerDay)
	var let int64 // waiting events whose windows have begun
	switch {
	case perMinute == 0:
		let = days*perDay - max(r.DayCount-perDay, 0)
	case perDay == 0:
		let = minutes*perMinute - max(r.MinuteCount-perMinute, 0)
	default:
		let = min(minutes*perMinute-max(r.MinuteCount-perMinute, 0), (days+1)*perDay-r.DayCount)
	}
	r.Waiting = max(r.Waiting-max(let, 0), 0)
	r.MinuteCount, r.DayCount = carried(r.MinuteCount, minutes, perMinute), carried(r.DayCount, days, perDay)
	if minutes > 0 {
		r.MinuteAt = minuteAt
	}
	if days > 0 {
		r.DayAt = dayAt
	}
}

// carried returns the part of a count that is left after a number of windows.
func carried(count, windows, limit int64) int64 {
	switch {
	case windows == 0:
		return count
	case limit == 0:
		return 0
	default:
		return max(count-windows*limit, 0)
	}
}

func (r *RateRow) count(n int) {
	r.MinuteCount += int64(n)
	r.DayCount += int64(n)
}

func (r *RateRow) room() int {
	return int((&ratelimit.State{PerMinute: r.PerMinute, PerDay: r.PerDay,
		Windows: ratelimit.Windows{MinuteUsed: r.MinuteCount, DayUsed: r.DayCount}}).Room())
}

func (r *RateRow) windows(now time.Time) ratelimit.Windows {
	return ratelimit.Windows{MinuteUsed: r.MinuteCount, DayUsed: r.DayCount, MinuteLeft: r.MinuteAt.Add(time.Minute).Sub(now),
		DayLeft: r.DayAt.Add(24 * time.Hour).Sub(now), Waiting: r.Waiting}
}

func (r *RateRow) state(now time.Time) *ratelimit.State {
	return &ratelimit.State{PerMinute: r.PerMinute, PerDay: r.PerDay, Mode: r.Mode, Windows: r.windows(now)}
}

// TakeLimited implements operate.RateStore.
func (s *Store) TakeLimited(ctx context.Context, scope eventqueue.Scope, after operate.RatePlace, limit int) (due []eventqueue.Notification, next operate.RatePlace, err error) {
	err = s.atOnce(ctx, OpTakeLimited, func() {
		var page []*record
		for _, r := range s.db.events {
			place := operate.RatePlace{Module: r.Module, Name: r.Name, Event: r.ID}
			inScope := r.Canvas == scope.Canvas && (scope.WholeCanvas() || r.scope() == scope)
			if inScope && comparePlaces(place, after) > 0 {
				page = append(page, r)
			}
		}
		slices.SortFunc(page, func(a, b *record) int {
			return cmp.Or(compareScopes(a.scope(), b.scope()), byID(a, b))
		})
		if len(page) >= limit {
			page = page[:limit]
			last := page[limit-1]
			next = operate.RatePlace{Module: last.Module, Name: last.Name, Event: last.ID}
		}
		now := s.db.now()
		for _, r := range page {
			if r.writer == nil && !r.LockedAt.IsZero() {
				s.db.update(r, func(row *Row) { row.LimitedAttempt = -limitedAttempt(row.Attempts) })
			}
			if r.writer == nil && r.LimitedAttempt == limitedAttempt(r.Attempts) && r.LockedAt.IsZero() && r.DelayUntil.After(now) {
				s.db.update(r, func(row *Row) { row.DelayUntil, row.NotifiedAt = now, now })
				due = append(due, eventqueue.Notification{Event: r.ID, Canvas: r.Canvas})
			}
		}
	})
	if err != nil {
		return nil, operate.RatePlace{}, err
	}
	return due, next, nil
}

func comparePlaces(a, b operate.RatePlace) int {
	return cmp.Or(cmp.Compare(a.Module, b.Module), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Event, b.Event))
}
