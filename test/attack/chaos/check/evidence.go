package check

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/eventqueue"
	"eventsv2/test/attack/record"
	"eventsv2/test/oracle"
)

// Evidence is everything that was recorded.
type Evidence struct {
	traces           record.Traces
	runs             map[eventqueue.EventID][]record.Run
	effects          map[eventqueue.EventID][]int32 // the attempts that wrote one
	faults           []fault
	Acknowledgements map[string]Acknowledgement
	Repeats          map[string]Repeat   // by tag
	Ordered          map[string]Emission // by tag
	Limits           []oracle.LimitChange
	Rates            []oracle.RateChange
	grants           []grant
	Rules            []oracle.Record
	Cron             CronEvidence
	rewritten        []string
	MissingDefaults  []string // of other programs
	final            final
	// Embedded reports whether a process runs handlers itself, so that it can
	// complete events in their transactions.
	Embedded func(process string) bool
}

// final is the state of the tables at the end.
type final struct {
	at    time.Time
	rules []oracle.RuleRow
}

// Read reads what was recorded: by the database, in the journals of a directory, and of faults. rules
// are those that are left.
func (e *Evidence) Read(ctx context.Context, pool *pgxpool.Pool, dir string, f *Faults, rules []oracle.RuleRow) (err error) {
	if e.runs, err = readRuns(dir, f); err != nil {
		return err
	}
	if e.traces, err = record.Read(ctx, pool, nil); err != nil {
		return err
	}
	if e.effects, err = readEffects(ctx, pool); err != nil {
		return err
	}
	if e.grants, err = readGrants(ctx, pool); err != nil {
		return err
	}
	if e.rewritten, err = record.ReadRewritten(ctx, pool); err != nil {
		return err
	}
	e.faults, e.final = f.list(), final{time.Now(), rules}
	return e.Cron.read(ctx, pool)
}
