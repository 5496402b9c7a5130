package service_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/zap"

	"eventsv2/service"
	"eventsv2/test/testenv"
)

// poolOf is a pool that is configured by the test.
func poolOf(t *testing.T, change func(*pgxpool.Config)) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(testenv.DatabaseURL(t))
	if err != nil {
		t.Fatal(err)
	}
	change(config)
	pool, err := pgxpool.NewWithConfig(testenv.Context(t), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

func page(t *testing.T, handler http.Handler, path string) (status int, text string) {
	t.Helper()
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, httptest.NewRequestWithContext(testenv.Context(t), http.MethodGet, path, http.NoBody))
	return answer.Code, answer.Body.String()
}

// TestAliveChecksEachPart that has loops.
func TestAliveChecksEachPart(t *testing.T) {
	t.Parallel()
	s := open(t, service.Config{DatabaseURL: testenv.DatabaseURL(t), Logger: zap.NewNop(), NoWorker: true, NoRelay: true, NoCron: true, NoPruner: true})
	if err := s.Alive(); err != nil {
		t.Errorf("Alive = %v before anything has stalled", err)
	}
	s.AliveNeeds(func() error { return nil })
	s.AliveNeeds(func() error { return errors.New("the pruner has not gone round for 1h") })
	if err := s.Alive(); err == nil || !strings.Contains(err.Error(), "the pruner") {
		t.Errorf("Alive = %v", err)
	}
}

// counting counts the statements of a pool, but for pings, which pgx does not show: each check has
// one of them, and a statement of the notifier.
type counting struct{ statements atomic.Int64 }

func (c *counting) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	c.statements.Add(1)
	return ctx
}

func (*counting) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// TestReadinessCostsAStatementInTenSeconds, however often each handler is requested.
func TestReadinessCostsAStatementInTenSeconds(t *testing.T) {
	t.Parallel()
	var count counting
	pool := poolOf(t, func(c *pgxpool.Config) { c.ConnConfig.Tracer = &count })
	s := open(t, service.Config{Pool: pool, Logger: zap.NewNop(), NoWorker: true, NoRelay: true, NoCron: true, NoPruner: true})
	before, began := count.statements.Load(), time.Now()
	var asking sync.WaitGroup
	for range 10 {
		health, err := s.Health()
		if err != nil {
			t.Fatal(err)
		}
		for range 100 {
			asking.Go(func() {
				if status, text := page(t, health, "/readyz"); status != http.StatusOK || !strings.Contains(text, "\nchecked ") {
					t.Errorf("/readyz answers %d %s", status, text)
				}
			})
		}
	}
	asking.Wait()
	if n, most := count.statements.Load()-before, int64(1+time.Since(began)/(10*time.Second)); n < 1 || n > most {
		t.Errorf("1000 requests cost %d statements, want %d at most, and one at least", n, most)
	}
}

// TestPingSendsNoStatement, and says whether Postgres answers.
func TestPingSendsNoStatement(t *testing.T) {
	t.Parallel()
	var count counting
	pool := poolOf(t, func(c *pgxpool.Config) { c.ConnConfig.Tracer = &count })
	s := open(t, service.Config{Pool: pool, Logger: zap.NewNop(), NoWorker: true, NoRelay: true, NoCron: true, NoPruner: true})
	before := count.statements.Load()
	if err := s.Reached(testenv.Context(t)); err != nil {
		t.Error(err)
	}
	if n := count.statements.Load() - before; n != 0 {
		t.Errorf("it cost %d statements", n)
	}
	pool.Close()
	if err := s.Reached(testenv.Context(t)); err == nil {
		t.Error("a pool that is closed reaches Postgres")
	}
}
