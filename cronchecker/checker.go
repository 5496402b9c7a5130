package cronchecker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"eventsv2/internal/backoff"

	"go.uber.org/zap"

	"eventsv2/internal/refusal"
	"eventsv2/internal/rounds"
)

// MaxBatch is the largest number of slots in one call of Store.Emit.
const MaxBatch = 1000

// Store is the part of the database that a Checker needs. Postgres implements it.
type Store interface {
	// Load returns the enabled definitions, each with its last recorded slot,
	// and the database's clock.
	Load(ctx context.Context) (Snapshot, error)

	// Emit emits and records, in one transaction, those of 1 to MaxBatch slots that
	// are still due; on an error, none. All slots of one definition must be in one
	// call, the oldest first. Emit leaves out a slot that is not after the last
	// recorded one of its definition. It also leaves out the slots of a definition
	// that no longer exists, is disabled, started after the slot, or is locked by
	// another checker. A slot that its definition skips (Skips) is recorded without an event. It
	// returns how many slots it recorded.
	Emit(ctx context.Context, slots []Slot) (int, error)

	// Prune deletes a bounded number of records that are older than a time, of some definitions.
	// It leaves the newest of each, since the checker continues after it.
	Prune(ctx context.Context, crons []CronID, olderThan time.Duration) error
}

// Snapshot is the state on which one pass bases its decisions.
type Snapshot struct {
	Now         time.Time
	Definitions []Definition
}

// Result is the result of one pass.
type Result struct {
	// Now is the time of the pass by the database's clock.
	Now time.Time
	// Definitions counts the enabled definitions, and Broken those of them that cannot be
	// read, or whose slots are refused; each of these was logged.
	Definitions, Broken int
	// Due counts the slots that were due when the pass began, and Emitted those
	// that it recorded, with an event or as skipped. Another checker has taken the others.
	Due, Emitted int
	// More means that more slots are due, and another pass should follow at once.
	More bool
}

// Checker emits an event for each slot that is due. Any number of checkers may work
// on one database.
type Checker struct {
	store  Store
	config Config
	rounds rounds.Watch
}

// New makes a Checker.
func New(store Store, config Config) (*Checker, error) {
	if store == nil {
		return nil, errors.New("cronchecker.New: the store must not be nil")
	}
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("cronchecker.New: %w", err)
	}
	return &Checker{store: store, config: config.withDefaults()}, nil
}

// Run does a pass at once, and then one just after each multiple of the interval by
// the database's clock. It blocks until ctx ends, and then returns nil. Between two
// passes it sends no statement. A pass that fails is logged and tried again after a
// back-off.
func (c *Checker) Run(ctx context.Context) error {
	failures := 0
	loop := c.rounds.Loop("cron checker")
	defer loop.Ends()
	for {
		loop.Within(c.config.PassTimeout)
		result, err := c.Check(ctx)
		if ctx.Err() != nil {
			return nil // the end of ctx is an orderly end
		}
		var wait time.Duration
		switch {
		case err != nil:
			failures++
			wait = c.config.Backoff(failures)
			c.config.Logger.Warn("could not check for due cron slots; nothing is lost, trying again",
				zap.Duration(logWait, wait), zap.Error(err))
		case result.More && result.Emitted > 0:
			failures = 0
		case result.More:
			// Another checker is emitting for them.
			failures, wait = 0, c.config.Backoff(1)
		default:
			failures, wait = 0, c.untilNext(result.Now)
		}
		loop.Within(wait)
		if !backoff.Sleep(ctx, wait) {
			return nil
		}
	}
}

// Stalled returns an error when Run has not gone on for much longer than its calls may take,
// or nil: then only a new process helps. A database that hangs is no such case. Ask every few
// seconds; it costs nothing. It is safe for concurrent use.
func (c *Checker) Stalled() error { return c.rounds.Stalled() }

// Check does one pass and blocks until it is complete. After an error the slots of
// earlier batches are emitted, and counted in the result. No slot is lost: a later
// pass emits the others. Check is safe for concurrent use.
func (c *Checker) Check(ctx context.Context) (Result, error) {
	ctx, cancel := context.WithTimeout(ctx, c.config.PassTimeout)
	defer cancel()
	snapshot, err := c.store.Load(ctx)
	if err != nil {
		return Result{}, fmt.Errorf("load the cron definitions: %w", err)
	}
	pass := pass{
		Checker:   c,
		schedules: schedules{},
		result:    Result{Now: snapshot.Now, Definitions: len(snapshot.Definitions)},
	}
	for _, d := range snapshot.Definitions {
		if err := pass.definition(ctx, d); err != nil {
			return pass.result, err
		}
	}
	if err = pass.flush(ctx); err == nil {
		err = pass.reportRefused()
	}
	pass.prune(ctx)
	r := pass.result
	c.config.Logger.Debug("checked for due cron slots",
		zap.Int(logDefinitions, r.Definitions), zap.Int(logDue, r.Due), zap.Int(logEmitted, r.Emitted))
	return r, err
}

// pass is the state of one Check.
type pass struct {
	*Checker
	schedules schedules
	batch     []dueSlots
	size      int // of the batch, in slots
	refused   []refusal.Refused[dueSlots]
	answered  bool     // slots were taken
	recorded  []CronID // definitions with slots that were taken
	result    Result
}

// dueSlots are the slots of one definition.
type dueSlots struct {
	definition Definition
	slots      []Slot
	more       bool // are due
}

// definition adds the due slots of one definition to the batch. If they do not fit,
// it emits the batch first. The slots of a definition stay in one batch: if a batch
// with the older ones failed and the next batch succeeded, the older ones would be
// lost, because no slot before a recorded one is due.
func (p *pass) definition(ctx context.Context, d Definition) error {
	schedule, err := p.schedules.of(d)
	if err == nil {
		err = d.check()
	}
	if err != nil {
		p.broken("a cron definition cannot be read and emits nothing: replace it or remove it", d, err)
		return nil
	}
	slots, more := due(d, schedule, p.result.Now, p.config.lateness())
	if len(slots) == 0 {
		return nil
	}
	p.result.Due += len(slots)
	if p.size+len(slots) > MaxBatch {
		err = p.flush(ctx)
	}
	p.batch = append(p.batch, dueSlots{d, slots, more})
	p.size += len(slots)
	return err
}

func (p *pass) broken(message string, d Definition, err error) {
	p.result.Broken++
	p.config.Logger.Error(message,
		zap.Stringer(logCron, d.ID), zap.Stringer(logCanvas, d.Canvas), zap.String(logName, d.Name), zap.Error(err))
}

// flush emits the batch. A batch that the database or an emit middleware refuses is emitted by halves, so that definitions
// whose slots are refused do not affect the others (I15).
func (p *pass) flush(ctx context.Context) error {
	emitted := 0
	refused, err := refusal.Halve(func(batch []dueSlots) error {
		n, err := p.emit(ctx, batch)
		emitted += n
		for _, due := range batch {
			p.result.More = p.result.More || due.more && err == nil
		}
		p.answered = p.answered || err == nil && len(batch) > 0
		return err
	}, p.batch)
	p.result.Emitted += emitted
	p.refused = append(p.refused, refused...)
	p.batch, p.size = nil, 0
	return err
}

// reportRefused logs the definitions whose slots were refused. If nothing but refusals was answered, and one of them is
// the database's, something else may be wrong, and it returns that one.
func (p *pass) reportRefused() error {
	for _, r := range p.refused {
		if !p.answered && !refusal.IsEmit(r.Err) {
			return r.Err
		}
	}
	for _, r := range p.refused {
		message := "the database refuses the slots of a cron definition, and of no other for it; they are tried again at the next check; " +
			"look at what is on the tables of events and cron records"
		if refusal.IsEmit(r.Err) {
			message = "the slots of a cron definition cannot be emitted, for which no other waits; they are tried again at the next check; " +
				"look at the EmitMiddleware and the limits of this program's queue, or disable the definition"
		}
		p.broken(message, r.Item.definition, r.Err)
	}
	return nil
}

func (p *pass) emit(ctx context.Context, batch []dueSlots) (int, error) {
	if len(batch) == 0 {
		return 0, nil
	}
	slots := make([]Slot, 0, p.size)
	for _, due := range batch {
		slots = append(slots, due.slots...)
	}
	emitted, err := p.store.Emit(ctx, slots)
	if err == nil && emitted > 0 {
		for _, due := range batch {
			p.recorded = append(p.recorded, due.definition.ID)
		}
	}
	if err != nil {
		return 0, fmt.Errorf("emit %d cron slots, the first of definition %s at %s: %w",
			len(slots), slots[0].Cron, slots[0].At.UTC().Format(time.RFC3339), err)
	}
	return emitted, nil
}

// prune deletes old records of the definitions with new ones. Slots do not wait for that: a failure is logged.
func (p *pass) prune(ctx context.Context) {
	if p.config.RecordsFor == 0 || len(p.recorded) == 0 {
		return
	}
	if err := p.store.Prune(ctx, p.recorded, p.config.RecordsFor); err != nil && ctx.Err() == nil {
		p.config.Logger.Warn("could not delete old records of cron slots; the next slot of their definitions tries again", zap.Error(err))
	}
}

// untilNext returns the time from now to just after the next multiple of the
// interval. The jitter prevents several checkers from querying in the same instant.
func (c *Checker) untilNext(now time.Time) time.Duration {
	const most = 200 * time.Millisecond
	interval := c.config.Interval
	next := now.Truncate(interval).Add(interval)
	return next.Sub(now) + c.config.Jitter(most)
}
