// Package peer runs the benchmark on River, with the settings that are best for it.
package peer

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"eventsv2/bench/contest"
	"eventsv2/bench/lab"
)

// args are the arguments of a job: River's word for the value of an event.
type args struct{ contest.Value }

// Kind implements river.JobArgs.
func (args) Kind() string { return "noop" }

// Queue is a contest.Queue.
type Queue struct {
	lab         *lab.Lab
	databaseURL string
	pool        *pgxpool.Pool
	inserts     *river.Client[pgx.Tx]
}

var _ contest.Queue = (*Queue)(nil)

// Open makes an empty queue.
func Open(ctx context.Context, l *lab.Lab) (*Queue, error) {
	databaseURL, err := l.Database(ctx, migrate)
	if err != nil {
		return nil, err
	}
	q := &Queue{lab: l, databaseURL: databaseURL}
	if q.pool, err = lab.Pool(ctx, databaseURL); err == nil {
		q.inserts, err = river.NewClient(riverpgxv5.New(q.pool), &river.Config{Logger: quiet()})
	}
	if err != nil {
		return nil, errors.Join(err, q.Close(ctx))
	}
	return q, nil
}

func migrate(ctx context.Context, databaseURL string) error {
	pool, err := lab.Pool(ctx, databaseURL)
	if err != nil {
		return err
	}
	defer pool.Close()
	migrator, err := rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{Logger: quiet()})
	if err != nil {
		return err
	}
	_, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, nil)
	return err
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// URL implements contest.Queue.
func (q *Queue) URL() string { return q.databaseURL }

// Emit implements contest.Queue.
func (q *Queue) Emit(ctx context.Context, n int) error {
	for from := 0; from < n; from += contest.BatchSize {
		jobs := make([]river.InsertManyParams, min(contest.BatchSize, n-from))
		for i := range jobs {
			jobs[i].Args = args{contest.NewValue(from + i)}
		}
		if _, err := q.inserts.InsertManyFast(ctx, jobs); err != nil {
			return err
		}
	}
	return nil
}

// EmitOne implements contest.Queue.
func (q *Queue) EmitOne(ctx context.Context, number int) error {
	_, err := q.inserts.Insert(ctx, args{contest.NewValue(number)}, nil)
	return err
}

// Settings are those of the client for each mode, for the report.
const Settings = "InsertManyFast; MaxWorkers 2,000, FetchCooldown 2 ms, FetchPollInterval 20 ms; for latency 1 ms and 1 ms"

func config(mode contest.Mode, workers *river.Workers) *river.Config {
	c := &river.Config{
		Queues:            map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 2000}},
		Workers:           workers,
		FetchCooldown:     2 * time.Millisecond,
		FetchPollInterval: 20 * time.Millisecond,
		Logger:            quiet(),
	}
	if mode == contest.Latency {
		c.FetchCooldown, c.FetchPollInterval = time.Millisecond, time.Millisecond
	}
	return c
}

// work is the handler.
type work struct {
	river.WorkerDefaults[args]
	mode    contest.Mode
	started chan<- contest.Start
}

// Work implements river.Worker.
func (w *work) Work(_ context.Context, job *river.Job[args]) error {
	if w.mode == contest.Latency {
		w.started <- contest.Start{Number: job.Args.Number, At: time.Now()}
	}
	return nil
}

// events is the size of the buffer for River's reports about completed jobs; River drops
// reports that do not fit.
const events = 1 << 21

// Work implements contest.Queue.
func (q *Queue) Work(ctx context.Context, mode contest.Mode) (*contest.Worker, error) {
	started := make(chan contest.Start, 1<<16)
	workers := river.NewWorkers()
	if err := river.AddWorkerSafely(workers, &work{mode: mode, started: started}); err != nil {
		return nil, err
	}
	client, err := river.NewClient(riverpgxv5.New(q.pool), config(mode, workers))
	if err != nil {
		return nil, err
	}
	ended := contest.NewCounter()
	told, unsubscribe := client.SubscribeConfig(&river.SubscribeConfig{ChanSize: events, Kinds: []river.EventKind{river.EventKindJobCompleted}})
	counted := make(chan struct{})
	go func() {
		defer close(counted)
		for range told {
			ended.Add(1)
		}
	}()
	if err := client.Start(ctx); err != nil {
		unsubscribe()
		return nil, err
	}
	return contest.NewWorker(ended, started, func(ctx context.Context) error {
		err := client.Stop(ctx)
		unsubscribe()
		<-counted
		return err
	}), nil
}

// Close implements contest.Queue.
func (q *Queue) Close(ctx context.Context) error {
	if q.pool != nil {
		q.pool.Close()
	}
	return q.lab.Drop(context.WithoutCancel(ctx), q.databaseURL)
}
