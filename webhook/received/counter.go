package received

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"go.uber.org/zap"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/pgsession"
	"eventsv2/webhook"
)

const (
	// handInTakes bounds one hand-in.
	handInTakes = 10 * time.Second
	// retained is how many of the newest refusals of a source are retained, and maxReason how long their reasons are.
	retained  = 10
	maxReason = 200
	// maxSources is how many sources one program counts; those beyond it are not counted.
	maxSources = 1000
)

// place is a source on its canvas, or on all.
type place struct {
	Source string
	Canvas eventqueue.CanvasID
}

// counts counts the requests of a source since the last hand-in.
type counts struct {
	scheme   string
	requests map[webhook.Outcome]int64
	last     time.Time // the zero time: nothing came
	refusals []refusal // the newest first
}

type refusal struct {
	at      time.Time
	outcome webhook.Outcome
	reason  string
}

// Counter counts what the sources of a program receive. It is safe for concurrent use, and has no goroutine between
// the hand-ins.
type Counter struct {
	pool *pgsession.Pool
	log  *zap.Logger
	wait time.Duration // from the first count to the hand-in

	mu      sync.Mutex
	sources map[place]*counts
	timer   *time.Timer // runs while there are counts; nil otherwise

	handing sync.Mutex
}

// NewCounter makes a Counter that hands in to a database, jitter after the first count of each minute or so: it is
// given a minute, and returns a part of it.
func NewCounter(pool *pgsession.Pool, jitter func(time.Duration) time.Duration, log *zap.Logger) *Counter {
	return &Counter{pool: pool, log: log, wait: time.Minute - jitter(5*time.Second), sources: map[place]*counts{}}
}

// Declare has sources known before they receive something. It sends nothing: their rows come with the first hand-in.
func (c *Counter) Declare(sources []webhook.Source) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range sources {
		c.of(&sources[i])
	}
	c.arm()
}

// Observe counts a request; it is for webhook.Config.
func (c *Counter) Observe(source webhook.Source, outcome webhook.Outcome, refused error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	of := c.of(&source)
	if of == nil {
		return
	}
	of.requests[outcome]++
	of.last = time.Now()
	if refused != nil {
		of.add(refusal{of.last, outcome, reasonOf(refused)})
	}
	c.arm()
}

// of returns the counts of a source; nil if there are too many.
func (c *Counter) of(source *webhook.Source) *counts {
	at := place{source.Name, source.Canvas}
	if c.sources[at] == nil {
		if len(c.sources) == maxSources {
			return nil
		}
		c.sources[at] = &counts{scheme: source.Scheme, requests: map[webhook.Outcome]int64{}}
	}
	return c.sources[at]
}

// add adds a refusal that is newer than the others.
func (c *counts) add(r refusal) {
	if len(c.refusals) == retained {
		c.refusals = c.refusals[:retained-1]
	}
	c.refusals = slices.Insert(c.refusals, 0, r)
}

// reasonOf is the beginning of a reason, as a text that Postgres takes.
func reasonOf(err error) string {
	text := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(err.Error(), "�"))
	if len(text) > maxReason {
		text = strings.ToValidUTF8(text[:maxReason], "") + " …"
	}
	return text
}

// arm has the counts handed in when it is time.
func (c *Counter) arm() {
	if c.timer == nil && len(c.sources) > 0 {
		c.timer = time.AfterFunc(c.wait, func() { _ = c.HandIn(context.Background()) })
	}
}

// HandIn hands in what was counted since the last time, at once; without any it sends nothing. A program that stops
// calls it. After a failure, which is logged and returned, the counts are handed in with later ones.
func (c *Counter) HandIn(ctx context.Context) error {
	c.handing.Lock()
	defer c.handing.Unlock()
	taken := c.take()
	if len(taken) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, handInTakes)
	defer cancel()
	if err := add(ctx, c.pool, taken, time.Now()); err != nil {
		c.putBack(taken)
		c.log.Warn("could not hand in what sources of webhooks have received; it is handed in with the next counts", zap.Error(err))
		return err
	}
	return nil
}

// counted is the hand-in of a source.
type counted struct {
	place
	*counts
}

// take removes all counts, in the order in which rows are written.
func (c *Counter) take() []counted {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.timer != nil {
		c.timer.Stop()
		c.timer = nil
	}
	taken := make([]counted, 0, len(c.sources))
	for at, of := range c.sources {
		taken = append(taken, counted{at, of})
	}
	clear(c.sources)
	slices.SortFunc(taken, func(a, b counted) int {
		return cmp.Or(cmp.Compare(a.Source, b.Source), slices.Compare(a.Canvas[:], b.Canvas[:]))
	})
	return taken
}

// putBack adds counts that could not be handed in to those that have come since.
func (c *Counter) putBack(taken []counted) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, old := range taken {
		since := c.sources[old.place]
		c.sources[old.place] = old.counts
		if since == nil {
			continue
		}
		for outcome, n := range since.requests {
			old.requests[outcome] += n
		}
		if !since.last.IsZero() {
			old.last = since.last
		}
		for _, r := range slices.Backward(since.refusals) {
			old.add(r)
		}
	}
	c.arm()
}
