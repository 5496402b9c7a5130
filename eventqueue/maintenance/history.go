package maintenance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"go.uber.org/zap"
	"golang.org/x/time/rate"

	"eventsv2/eventqueue"
	"eventsv2/internal/backoff"
	"eventsv2/internal/logkey"
	"eventsv2/internal/rounds"
)

// LogStatus says how an event ended.
type LogStatus string

// How an event can end.
const (
	LogCompleted LogStatus = "COMPLETED"
	LogFailed    LogStatus = "FAILED"
	LogCancelled LogStatus = "CANCELLED"
)

// HistoryStore is the database as a Pruner uses it; pgstore.Store implements it.
type HistoryStore interface {
	// PruneLog reads no more than limit entries of event_log with ids above after, by id, and
	// deletes those of a status that ended longer ago than olderThan by the database's clock. It
	// never waits: an entry that another transaction is writing, such as a retry, is left alone.
	PruneLog(ctx context.Context, status LogStatus, olderThan time.Duration, after eventqueue.EventID, limit int) (PrunedPage, error)

	// CountLog is PruneLog without the deletion.
	CountLog(ctx context.Context, status LogStatus, olderThan time.Duration, after eventqueue.EventID, limit int) (PrunedPage, error)
}

// PrunedPage is the result of one page of event_log.
type PrunedPage struct {
	// Count is how many entries were deleted, or would have been.
	Count int
	// Retained is the lowest id of an entry of the status that stays, 0 for none.
	Retained eventqueue.EventID
	// Last is the highest id that was read, 0 for none.
	Last eventqueue.EventID
	// More reports whether entries which are old enough may follow.
	More bool
}

// PrunerConfig configures a Pruner. With the zero value it deletes nothing.
type PrunerConfig struct {
	// CompletedFor is how long completed events stay in event_log. Default (0):
	// for ever.
	CompletedFor time.Duration

	// FailedFor is how long failed and cancelled events stay; a deleted one cannot be retried.
	// Default (0): for ever.
	FailedFor time.Duration

	// Interval is the time between two passes. Default (0): 1 hour.
	Interval time.Duration

	// PerSecond bounds how many entries are read, and so how many are deleted. Default (0): 20,000.
	PerSecond int

	// Jitter returns a random duration below its argument, which is positive.
	// Default (nil): rand.N. A simulation makes it repeatable.
	Jitter func(time.Duration) time.Duration

	// Logger gets an info line when something was deleted, and a warning when that
	// failed. Default (nil): none.
	Logger *zap.Logger
}

func (c PrunerConfig) withDefaults() PrunerConfig {
	c.Interval = cmp.Or(c.Interval, time.Hour)
	c.PerSecond = cmp.Or(c.PerSecond, 20_000)
	if c.Jitter == nil {
		c.Jitter = rand.N[time.Duration]
	}
	if c.Logger == nil {
		c.Logger = zap.NewNop()
	}
	return c
}

// Validate names the first invalid field.
func (c PrunerConfig) Validate() error {
	for _, f := range []struct {
		name  string
		value time.Duration
	}{{"CompletedFor", c.CompletedFor}, {"FailedFor", c.FailedFor}, {"Interval", c.Interval}} {
		if f.value < 0 {
			return fmt.Errorf("%s is %s: it must not be negative", f.name, f.value)
		}
	}
	if c.PerSecond < 0 {
		return fmt.Errorf("PerSecond is %d: it must be positive", c.PerSecond)
	}
	return nil
}

// Pruner deletes old entries from event_log, in small transactions that never wait for others. Any
// number of pruners may run at once. One Pruner is for one goroutine.
type Pruner struct {
	store   HistoryStore
	config  PrunerConfig
	limiter *rate.Limiter
	log     *zap.Logger

	// Where the last pass found the first entry that stays: the next one begins there.
	from   map[LogStatus]eventqueue.EventID
	passes int

	rounds rounds.Watch
	loop   *rounds.Loop // of Run
}

const (
	// pruneBatch is how many entries one statement reads.
	pruneBatch = 1000

	// Entries come to event_log in the order of their ends and are walked in that of their ids,
	// which is about the same. Entries that ended late, with ids below the one where a pass begins,
	// are found by every 24th pass, which begins at the first entry.
	wholePass = 24
)

// NewPruner makes a Pruner; Run starts it.
func NewPruner(store HistoryStore, config PrunerConfig) (*Pruner, error) {
	if store == nil {
		return nil, errors.New("maintenance.NewPruner: the store must not be nil")
	}
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("maintenance.NewPruner: %w", err)
	}
	config = config.withDefaults()
	return &Pruner{
		store:   store,
		config:  config,
		limiter: rate.NewLimiter(rate.Limit(config.PerSecond), pruneBatch),
		log:     config.Logger,
		from:    map[LogStatus]eventqueue.EventID{},
	}, nil
}

// Pruned counts what one pass has deleted.
type Pruned struct {
	Completed int
	Failed    int
	Cancelled int
}

// Run does a pass at once and then one in each interval, until ctx ends; then it returns nil. When
// it is configured to delete nothing, it sends the database nothing. A pass that fails is logged
// and tried again, each time after a longer wait.
func (p *Pruner) Run(ctx context.Context) error {
	if p.config.CompletedFor == 0 && p.config.FailedFor == 0 {
		<-ctx.Done()
		return nil
	}
	wait := backoff.New(p.config.Jitter)
	p.loop = p.rounds.Loop("pruner")
	defer p.loop.Ends()
	for ctx.Err() == nil {
		done, err := p.Pass(ctx)
		if done != (Pruned{}) {
			p.log.Info("deleted old history", zap.Int("completed", done.Completed), zap.Int("failed", done.Failed), zap.Int("cancelled", done.Cancelled))
		}
		if err != nil {
			if ctx.Err() == nil {
				p.log.Warn("could not delete old history; nothing is lost, trying again", zap.Duration(logkey.Wait, wait.Next), zap.Error(err))
			}
			p.loop.Within(2 * backoff.Most)
			wait.Pause(ctx)
			continue
		}
		wait.Reset()
		p.loop.Within(2 * p.config.Interval)
		backoff.Sleep(ctx, p.config.Interval*9/10+p.config.Jitter(p.config.Interval/5+1))
	}
	return nil
}

// Stalled returns an error when Run has not gone on for much longer than its calls may take, or nil;
// see Stalled of worker.Worker. It is safe for concurrent use.
func (p *Pruner) Stalled() error { return p.rounds.Stalled() }

// Pass deletes the entries that are old enough by now. Run calls it in its loop. On an error the
// result counts what was deleted before it.
func (p *Pruner) Pass(ctx context.Context) (done Pruned, err error) {
	if p.passes%wholePass == 0 {
		clear(p.from)
	}
	p.passes++
	if done.Completed, err = p.pruneStatus(ctx, LogCompleted, p.config.CompletedFor); err != nil {
		return done, err
	}
	if done.Failed, err = p.pruneStatus(ctx, LogFailed, p.config.FailedFor); err != nil {
		return done, err
	}
	done.Cancelled, err = p.pruneStatus(ctx, LogCancelled, p.config.FailedFor)
	return done, err
}

// pruneStatus deletes the entries of a status that are older than last, and records where the next
// pass begins.
func (p *Pruner) pruneStatus(ctx context.Context, status LogStatus, last time.Duration) (deleted int, err error) {
	if last == 0 {
		return 0, nil
	}
	deleted, next, err := p.walk(ctx, status, last, p.from[status], p.prunePage)
	if err == nil {
		p.from[status] = next
	}
	return deleted, err
}

// Prune deletes all entries of a status that ended longer ago than olderThan, by
// the database's clock, whatever the configuration says, and returns how many.
// When it fails or ctx ends, those that were deleted before are counted.
func (p *Pruner) Prune(ctx context.Context, status LogStatus, olderThan time.Duration) (deleted int, err error) {
	deleted, _, err = p.walk(ctx, status, olderThan, 0, p.prunePage)
	return deleted, err
}

// Count returns how many entries Prune would delete, and deletes none.
func (p *Pruner) Count(ctx context.Context, status LogStatus, olderThan time.Duration) (count int, err error) {
	count, _, err = p.walk(ctx, status, olderThan, 0, p.countPage)
	return count, err
}

// pruneStatement reads one page of event_log.
type pruneStatement = func(ctx context.Context, status LogStatus, olderThan time.Duration, after eventqueue.EventID) (PrunedPage, error)

// walk runs a statement page by page. next is where a later walk may begin: before
// the first entry of the status that stays.
func (p *Pruner) walk(ctx context.Context, status LogStatus, olderThan time.Duration, after eventqueue.EventID, statement pruneStatement) (count int, next eventqueue.EventID, err error) {
	retained := eventqueue.EventID(0)
	for {
		page, err := statement(ctx, status, olderThan, after)
		if err != nil {
			return count, 0, fmt.Errorf("prune %s events in event_log: %w", status, err)
		}
		count += page.Count
		if retained == 0 {
			retained = page.Retained
		}
		after = max(after, page.Last)
		switch {
		case page.More:
		case retained != 0:
			return count, retained - 1, nil
		default:
			return count, after, nil
		}
	}
}

// prunePage is not interrupted when ctx ends, so that its result is known.
func (p *Pruner) prunePage(ctx context.Context, status LogStatus, olderThan time.Duration, after eventqueue.EventID) (PrunedPage, error) {
	p.loop.Within(statementTakes + time.Second*pruneBatch/time.Duration(p.config.PerSecond))
	if err := p.limiter.WaitN(ctx, pruneBatch); err != nil {
		return PrunedPage{}, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), statementTakes)
	defer cancel()
	return p.store.PruneLog(ctx, status, olderThan, after, pruneBatch)
}

func (p *Pruner) countPage(ctx context.Context, status LogStatus, olderThan time.Duration, after eventqueue.EventID) (PrunedPage, error) {
	ctx, cancel := context.WithTimeout(ctx, statementTakes)
	defer cancel()
	return p.store.CountLog(ctx, status, olderThan, after, pruneBatch)
}
