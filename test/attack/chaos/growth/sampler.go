package growth

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/internal/backoff"
	"eventsv2/test/programs"
)

// Sampler measures until its context ends.
type Sampler struct {
	// Pool is of the database.
	Pool *pgxpool.Pool
	// Processes are those that live through the whole run, so that what grows in them can be seen, by
	// their names.
	Processes func() map[string]*programs.Process
	// Reports are of those that report their size, by their names.
	Reports map[string]*Listener
	// Apart is the canvas of events that nobody can run.
	Apart [16]byte

	began time.Time

	mu     sync.Mutex
	order  []measure
	series map[measure][]point
	failed int // samples of the database that an outage prevented
}

// self is the name of this process, which emits through the library.
const self = "emitter"

// sampleEvery is the time between two samples: 15 s in an hour, so that each
// quarter has 60 of them, more often in a short run and more seldom in a long one.
func sampleEvery(load time.Duration) time.Duration {
	return min(max(load/240, time.Second), 5*time.Minute)
}

// Run samples until ctx ends, in a run of a length.
func (s *Sampler) Run(ctx context.Context, length time.Duration) {
	s.began, s.series = time.Now(), map[measure][]point{}
	for {
		s.sample(ctx)
		if !backoff.Sleep(ctx, sampleEvery(length)) {
			return
		}
	}
}

// sample measures everything once.
func (s *Sampler) sample(ctx context.Context) {
	processes := s.Processes()
	for _, name := range slices.Sorted(maps.Keys(processes)) {
		s.ofProcess(name, processes[name].PID)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Reports)) {
		if size := s.Reports[name].last(); size.Goroutines > 0 {
			s.add(measure{goroutines, name}, float64(size.Goroutines))
			s.add(measure{heap, name}, float64(size.Heap))
		}
	}
	s.add(measure{goroutines, self}, float64(runtime.NumGoroutine()))
	if n, err := openFiles(os.Getpid()); err == nil {
		s.add(measure{files, self}, n)
	}
	if err := s.ofDatabase(ctx); err != nil && ctx.Err() == nil {
		s.mu.Lock()
		s.failed++
		s.mu.Unlock()
	}
}

func (s *Sampler) add(m measure, value float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.series[m]; !known {
		s.order = append(s.order, m)
	}
	s.series[m] = append(s.series[m], point{time.Since(s.began), value})
}

func (s *Sampler) ofProcess(name string, pid int) {
	if size, err := privateMemory(pid); err == nil {
		s.add(measure{memory, name}, size)
	}
	if n, err := openFiles(pid); err == nil {
		s.add(measure{files, name}, n)
	}
}

// privateMemory is the memory of a process that no file stands behind: pages of
// the program itself come and go as the kernel likes.
func privateMemory(pid int) (size float64, err error) {
	file, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	defer func() { _ = file.Close() }() // it was only read
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		if text, ok := strings.CutPrefix(lines.Text(), "RssAnon:"); ok {
			_, err := fmt.Sscan(text, &size)
			return size * 1024, err // it is in kB
		}
	}
	return 0, fmt.Errorf("the status of process %d has no RssAnon", pid)
}

func openFiles(pid int) (float64, error) {
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	return float64(len(entries)), err
}

// sampleTimeout bounds one query of the database.
const sampleTimeout = 10 * time.Second

// The tables without a record of what happened, which grows until its retention ends, and without
// those of the run itself.
const sizesSQL = `
SELECT c.relname, pg_table_size(c.oid), pg_indexes_size(c.oid)
  FROM pg_class c
 WHERE c.relnamespace = 'public'::regnamespace
   AND c.relkind = 'r'
   AND c.relname NOT LIKE 'chaos%'
   AND c.relname NOT IN ('event_log', 'cron_records', 'audit_log', 'bulk_operations')
 ORDER BY c.relname`

const countsSQL = `
SELECT (SELECT count(*) FROM events_v2 WHERE canvas_id <> $1),
       (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend')`

func (s *Sampler) ofDatabase(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, sampleTimeout)
	defer cancel()
	var events, clients int64
	if err := s.Pool.QueryRow(ctx, countsSQL, s.Apart).Scan(&events, &clients); err != nil {
		return fmt.Errorf("count rows: %w", err)
	}
	type size struct {
		Table        string
		Own, Indexes int64
	}
	found, err := s.Pool.Query(ctx, sizesSQL)
	if err != nil {
		return fmt.Errorf("read the sizes of tables: %w", err)
	}
	sizes, err := pgx.CollectRows(found, pgx.RowToStructByPos[size])
	if err != nil {
		return fmt.Errorf("read the sizes of tables: %w", err)
	}
	s.add(measure{backends, ""}, float64(clients))
	s.add(measure{rows, "events_v2"}, float64(events))
	for _, z := range sizes {
		s.add(measure{tableSize, z.Table}, float64(z.Own))
		s.add(measure{indexSize, z.Table}, float64(z.Indexes))
	}
	return nil
}

// End measures for the last time, when the queue is at rest after a load of a length, and decides
// for every measure. What was sampled after the end of the load counts for the last value only.
func (s *Sampler) End(ctx context.Context, load time.Duration) *Report {
	s.sample(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	all := &Report{load: load, Missed: s.failed}
	for _, m := range s.order {
		points := s.series[m]
		within := points
		for len(within) > 0 && within[len(within)-1].at > load {
			within = within[:len(within)-1]
		}
		t := trendOf(within, load, m.kind)
		t.end = points[len(points)-1].value
		all.figures = append(all.figures, figure{m, t})
	}
	return all
}
