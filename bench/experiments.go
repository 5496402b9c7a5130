package main

import (
	"context"

	"eventsv2/bench/report"
)

// experiment makes figures, named "experiment.side".
type experiment struct {
	name string
	once bool // in the first round only
	// aside is an experiment that counts what load does not change, and waits for most of its time: others run beside it.
	aside bool
	run   func(b *bench, ctx context.Context) error
}

var experiments = []experiment{
	{name: "drain", run: (*bench).drain},
	{name: "backlog", run: (*bench).backlogs},
	{name: "emit", run: (*bench).emit},
	{name: "singles", run: (*bench).singles},
	{name: "steady", run: (*bench).steady},
	{name: "latency", run: (*bench).latency},
	{name: "emulator-latency", run: (*bench).emulatorLatency},
	{name: "cost", run: (*bench).cost},
	{name: "idle", once: true, run: (*bench).idle},
	{name: "memory", once: true, run: (*bench).memory},
}

func namesOf(experiments []experiment) (names []string) {
	for _, e := range experiments {
		names = append(names, e.name)
	}
	return names
}

// measures are all measures with their goals.
var measures = []report.Measure{
	{Name: "drain-memory", Of: "drain.memory", By: "drain.river", Goal: report.AtLeast(5.0), Text: "drain 100,000 events, in-memory notifier"},
	{Name: "drain-emulator", Of: "drain.emulator", By: "drain.river", Goal: report.AtLeast(1.6), Text: "drain 100,000 events, official emulator on the same cores"},
	{Name: "drain-emulator-limit", Of: "drain.emulator", By: "drain.emulator-bare", Goal: report.AtLeast(0.8), Text: "the same, against bare pulling and acknowledging through it"},
	{Name: "drain-postgres", Of: "drain.postgres", By: "drain.river", Goal: report.AtLeast(2.0), Text: "drain 100,000 events, notifier on Postgres"},
	{Name: "drain-million", Of: "backlog.million", By: "drain.memory", Goal: report.AtLeast(0.9), Text: "drain 1,000,000 events, against our own 100,000"},
	{Name: "drain-parked", Of: "backlog.parked", By: "drain.memory", Goal: report.AtLeast(0.9), Text: "drain 100,000 beside 1,000,000 paused and 1,000,000 delayed ones, against ours alone"},
	{Name: "emit-batches", Of: "emit.ours", By: "emit.river", Goal: report.AtLeast(2.5), Text: "emit 1,000 at a time"},
	{Name: "emit-singles", Of: "singles.ours", By: "singles.river", Goal: report.AtLeast(4.0), Text: "emit one at a time from 16 goroutines"},
	{Name: "emit-and-drain", Of: "steady.ours", By: "steady.river", Goal: report.AtLeast(3.0), Text: "emit in batches while draining, steady state"},
	{Name: "latency-p50", Of: "latency.memory.p50", By: "latency.river.p50", Goal: report.AtMost(0.6), Text: "emit → handler starts, 50 events/s, in-memory notifier, p50"},
	{Name: "latency-p99", Of: "latency.memory.p99", By: "latency.river.p99", Goal: report.AtMost(0.6), Text: "the same, p99"},
	{Name: "latency-postgres-p50", Of: "latency.postgres.p50", By: "latency.river.p50", Goal: report.AtMost(0.6), Text: "the same with the notifier on Postgres, p50"},
	{Name: "latency-postgres-p99", Of: "latency.postgres.p99", By: "latency.river.p99", Goal: report.AtMost(0.6), Text: "the same, p99"},
	{Name: "latency-emulator-p50", Of: "emulator.added.p50", Goal: report.AtMost(3), Unit: "ms", Text: "what we add to a bare publish → pull through the emulator, p50"},
	{Name: "latency-emulator-p99", Of: "emulator.added.p99", Goal: report.AtMost(10), Unit: "ms", Text: "the same, p99"},
	{Name: "wal-per-event", Of: "wal.ours", Goal: report.AtMost(600), Unit: "B", Text: "WAL per event, emit to delete"},
	{Name: "wal", Of: "wal.ours", By: "wal.river", Goal: report.AtMost(0.25), Text: "the same, against River"},
	{Name: "wal-history", Of: "wal.history", By: "wal.river", Goal: report.AtMost(0.45), Text: "the same with every completed event kept in event_log"},
	{Name: "statements", Of: "statements.ours", Goal: report.AtMost(0.02), Text: "statements per drained event at full load"},
	{Name: "allocations", Of: "allocations.ours", Goal: report.AtMost(10), Text: "allocations of memory per drained event"},
	{Name: "idle-worker", Of: "idle.worker", Goal: report.AtMost(0), Unit: "per min", Text: "statements of an idle worker"},
	{Name: "idle-relay", Of: "idle.relay", Goal: report.AtMost(6), Unit: "per min", Text: "statements of the relay"},
	{Name: "memory", Of: "memory.worker", Goal: report.AtMost(120), Unit: "MB", Text: "memory of a worker that drains 1,000,000 events, at most"},
	{Name: "memory-growth", Of: "memory.growth", Goal: report.AtMost(1.2), Text: "its memory in the last quarter of the time, against the second quarter"},
}
