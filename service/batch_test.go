package service_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/zap"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/inspect"
	"eventsv2/eventqueue/typed"
	"eventsv2/service"
	"eventsv2/test/testenv"
)

// PageChanged is indexed with others.
type PageChanged struct{ Page int }

func (PageChanged) EventType() string   { return "PAGE" }
func (PageChanged) EventAction() string { return "CHANGED" }

// runAll emits events and runs a worker until they have ended.
func runAll(t *testing.T, s *service.Service, events []typed.Event) {
	t.Helper()
	ctx := testenv.Context(t)
	stop := run(t, s)
	if _, err := s.EmitTyped(ctx, events...); err != nil {
		t.Fatal(err)
	}
	reader := inspect.New(s.Pool())
	testenv.Eventually(t, "all events have ended", func() bool {
		list, _, err := reader.List(ctx, inspect.Filter{}, "", false, 0, 10)
		return err == nil && len(list) == 0
	})
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// TestEventsOfABatchHaveTheirOwnEnds: completed, also several in one transaction of the handler's, tried again, failed for good; and those of an ordering key
// come one after the other.
func TestEventsOfABatchHaveTheirOwnEnds(t *testing.T) {
	t.Parallel()
	ctx := testenv.Context(t)
	config := service.Config{DatabaseURL: testenv.DatabaseURL(t), Logger: zap.NewNop()}
	config.Worker.RetainHistory = true
	s := open(t, config)
	if _, err := s.Pool().Exec(ctx, `CREATE TABLE indexed (page int)`); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	together := 0
	var keyed []int
	once := eventqueue.Policy{Backoff: func(int) time.Duration { return 0 }}
	err := service.OnBatch(s, "index", 20, 500*time.Millisecond, func(ctx context.Context, pages []PageChanged, runs []*eventqueue.Run) []error {
		mu.Lock()
		defer mu.Unlock()
		together = max(together, len(pages))
		errs, keys := make([]error, len(pages)), map[string]bool{}
		err := pgx.BeginFunc(ctx, s.Pool(), func(tx pgx.Tx) error {
			for i, p := range pages {
				if key := runs[i].OrderingKey; key != "" {
					if keys[key] {
						t.Errorf("two events of the key %s are in one batch", key)
					}
					keys[key], keyed = true, append(keyed, p.Page)
				}
				switch {
				case p.Page == 3 && runs[i].Attempt == 1:
					errs[i] = errors.New("not yet")
				case p.Page == 4:
					errs[i] = eventqueue.Permanent(errors.New("no such page"))
				default:
					if _, err := tx.Exec(ctx, `INSERT INTO indexed VALUES ($1)`, p.Page); err != nil {
						return err
					}
				}
			}
			for i, run := range runs { // last, as CompleteIn says
				if errs[i] == nil {
					if err := run.CompleteIn(ctx, tx); err != nil {
						return err
					}
				}
			}
			return nil
		})
		if err != nil {
			for i := range errs {
				errs[i] = err
			}
		}
		return errs
	}, typed.WithPolicy(once))
	if err != nil {
		t.Fatal(err)
	}
	var events []typed.Event
	for page := range 10 {
		events = append(events, PageChanged{page})
	}
	for page := 10; page < 13; page++ {
		events = append(events, typed.With(PageChanged{page}, func(e *eventqueue.NewEvent) { e.OrderingKey = "book" }))
	}
	runAll(t, s, events)
	mu.Lock()
	defer mu.Unlock()
	var ends, pages string
	err = errors.Join(s.Pool().QueryRow(ctx, `SELECT string_agg(status || ' ' || n, ', ' ORDER BY status) FROM (SELECT status::text, count(*) AS n FROM event_log WHERE name = 'index' GROUP BY 1) AS l`).Scan(&ends),
		s.Pool().QueryRow(ctx, `SELECT string_agg(page::text, ' ' ORDER BY page) FROM indexed`).Scan(&pages))
	if err != nil || ends != "COMPLETED 12, FAILED 1" || pages != "0 1 2 3 5 6 7 8 9 10 11 12" {
		t.Errorf("%v, ends %s, pages %s", err, ends, pages)
	}
	if together < 2 {
		t.Errorf("at most %d events were together", together)
	}
	if strings.Trim(fmt.Sprint(keyed), "[]") != "10 11 12" {
		t.Errorf("the events of the key came as %v", keyed)
	}
}

// TestPanicOfABatchCostsOneEvent (I15): the one that panics again when it is alone.
func TestPanicOfABatchCostsOneEvent(t *testing.T) {
	t.Parallel()
	ctx := testenv.Context(t)
	config := service.Config{DatabaseURL: testenv.DatabaseURL(t), Logger: zap.NewNop()}
	config.Worker.RetainHistory = true
	s := open(t, config)
	if err := service.OnBatch(s, "index", 20, 500*time.Millisecond, func(_ context.Context, pages []PageChanged, _ []*eventqueue.Run) []error {
		for _, p := range pages {
			if p.Page == 5 {
				panic("page 5")
			}
		}
		return nil
	}, typed.WithPolicy(eventqueue.Policy{MaxRetries: new(0)})); err != nil {
		t.Fatal(err)
	}
	var events []typed.Event
	for page := range 10 {
		events = append(events, PageChanged{page})
	}
	runAll(t, s, events)
	var ends, failed string
	if err := s.Pool().QueryRow(ctx, `SELECT string_agg(DISTINCT l, ', ' ORDER BY l) FROM (SELECT status || ' ' || retries || ' ' || count(*) OVER (PARTITION BY status, retries) AS l FROM event_log WHERE name = 'index') AS ends`).Scan(&ends); err != nil || ends != "COMPLETED 0 9, FAILED 0 1" {
		t.Errorf("the events have ended as %s, %v", ends, err)
	}
	if err := s.Pool().QueryRow(ctx, `SELECT last_error FROM event_log WHERE status = 'FAILED'`).Scan(&failed); err != nil || failed != "the handler panicked: page 5" {
		t.Errorf("it has failed with %s, %v", failed, err)
	}
}

func TestOnBatchNamesItsHandlerInItsError(t *testing.T) {
	t.Parallel()
	s := open(t, service.Config{DatabaseURL: testenv.DatabaseURL(t), Logger: zap.NewNop()})
	err := service.OnBatch(s, "index", 0, 0, func(context.Context, []PageChanged, []*eventqueue.Run) []error { return nil })
	if err == nil || !strings.Contains(err.Error(), `service.OnBatch[service_test.PageChanged] handler "index": the size of a batch is 0`) {
		t.Errorf("%v", err)
	}
}
