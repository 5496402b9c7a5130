package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/internal/backoff"
	"eventsv2/test/programs"
)

// emitter is the name of this process, which emits through the library.
const emitter = "emitter"

// sampler measures until it is stopped.
type sampler struct {
	pool  *pgxpool.Pool
	fleet *programs.Fleet
	heard *listener
	began time.Time

	mu     sync.Mutex
	order  []measure
	series map[measure][]point
	failed int // samples of the database that an outage prevented
}

// sampleEvery is the time between two samples: 15 s in an hour, so that each
// quarter has 60 of them, more often in a short run and more seldom in a long one.
func sampleEvery(load time.Duration) time.Duration {
	return min(max(load/240, time.Second), 5*time.Minute)
}

// run samples until ctx ends.
func (s *sampler) run(ctx context.Context, every time.Duration) {
	for {
		s.sample(ctx)
		if !backoff.Sleep(ctx, every) {
			return
		}
	}
}

// sample measures everything once. What cannot be measured at the moment, such as
// a database that is down, has no value at this time.
func (s *sampler) sample(ctx context.Context) {
	for _, name := range longLived() {
		if p := s.fleet.Process(name); p != nil {
			s.ofProcess(name, p.PID)
		}
	}
	if size := s.heard.last(); size.Goroutines > 0 {
		s.add(measure{goroutines, longLivedLibrary}, float64(size.Goroutines))
		s.add(measure{heap, longLivedLibrary}, float64(size.Heap))
	}
	s.add(measure{goroutines, emitter}, float64(runtime.NumGoroutine()))
	if n, err := openFiles(os.Getpid()); err == nil {
		s.add(measure{files, emitter}, n)
	}
	if err := s.ofDatabase(ctx); err != nil && ctx.Err() == nil {
		s.mu.Lock()
		s.failed++
		s.mu.Unlock()
	}
}

func (s *sampler) add(m measure, value float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.series[m]; !known {
		s.order = append(s.order, m)
	}
	s.series[m] = append(s.series[m], point{time.Since(s.began), value})
}

// last is the last value of a measure.
func (s *sampler) last(m measure) float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if points := s.series[m]; len(points) > 0 {
		return points[len(points)-1].value
	}
	return 0
}

func (s *sampler) ofProcess(name string, pid int) {
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

const sizesSQL = `
SELECT c.relname, pg_table_size(c.oid), pg_indexes_size(c.oid)
  FROM pg_class c
 WHERE c.relnamespace = 'public'::regnamespace
   AND c.relkind = 'r'
 ORDER BY c.relname`

const countsSQL = `
SELECT (SELECT count(*) FROM events_v2),
       (SELECT count(*) FROM event_log),
       (SELECT count(*) FROM cron_records),
       (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend')`

func (s *sampler) ofDatabase(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, sampleTimeout)
	defer cancel()
	var events, logged, records, clients int64
	if err := s.pool.QueryRow(ctx, countsSQL).Scan(&events, &logged, &records, &clients); err != nil {
		return fmt.Errorf("count rows: %w", err)
	}
	type size struct {
		Table        string
		Own, Indexes int64
	}
	found, err := s.pool.Query(ctx, sizesSQL)
	if err != nil {
		return fmt.Errorf("read the sizes of tables: %w", err)
	}
	sizes, err := pgx.CollectRows(found, pgx.RowToStructByPos[size])
	if err != nil {
		return fmt.Errorf("read the sizes of tables: %w", err)
	}
	s.add(measure{backends, ""}, float64(clients))
	s.add(measure{rows, "events_v2"}, float64(events))
	s.add(measure{rows, "event_log"}, float64(logged))
	s.add(measure{rows, "cron_records"}, float64(records))
	for _, z := range sizes {
		s.add(measure{tableSize, z.Table}, float64(z.Own))
		s.add(measure{indexSize, z.Table}, float64(z.Indexes))
	}
	return nil
}

// figure is a measure and what became of it.
type figure struct {
	measure measure
	trend   trend
}

// figures checks every measure over the load. Samples from after its end count
// for the last value only.
func (s *sampler) figures(load time.Duration) []figure {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []figure
	for _, m := range s.order {
		points := s.series[m]
		within := points
		for len(within) > 0 && within[len(within)-1].at > load {
			within = within[:len(within)-1]
		}
		t := trendOf(within, load, m.kind)
		t.end = points[len(points)-1].value
		all = append(all, figure{m, t})
	}
	return all
}
