package service_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"eventsv2/cronchecker"
	"eventsv2/eventqueue"
	"eventsv2/eventqueue/maintenance"
	"eventsv2/eventqueue/typed"
	"eventsv2/eventqueue/worker"
	"eventsv2/pubsubnotify"
	"eventsv2/service"
	"eventsv2/test/testenv"
)

// OrderPlaced is a typed event.
type OrderPlaced struct {
	Cart int `json:"cart"`
}

func (OrderPlaced) EventType() string   { return "ORDER" }
func (OrderPlaced) EventAction() string { return "PLACED" }

// open opens a Service that is closed when the test ends.
func open(t *testing.T, config service.Config) *service.Service {
	t.Helper()
	if config.Logger == nil {
		config.Logger = testenv.Logger(t)
	}
	s, err := service.Open(testenv.Context(t), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// run runs a Service until stop is called, which returns what Run has returned, or the
// test ends.
func run(t *testing.T, s *service.Service) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(testenv.Context(t))
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	stopped := false
	stop = func() error {
		if stopped {
			return nil
		}
		stopped = true
		cancel()
		return <-ended
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Errorf("Run = %v", err)
		}
	})
	return stop
}

func hostOf(t *testing.T, databaseURL string) string {
	t.Helper()
	u, err := url.Parse(databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	return u.Host
}

// through is the URL of a database behind a proxy.
func through(t *testing.T, databaseURL string, proxy *testenv.TCPProxy) string {
	t.Helper()
	u, err := url.Parse(databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	u.Host = proxy.Address
	return u.String()
}

// collect registers handlers that report what they run: one that is plain and one typed.
func collect(t *testing.T, s *service.Service) <-chan string {
	t.Helper()
	ran := make(chan string, 100)
	err := errors.Join(
		s.Register(eventqueue.HandlerKey{Name: "greet"}, eventqueue.HandlerFunc(func(_ context.Context, run *eventqueue.Run) error {
			ran <- run.Canvas.String() + " " + run.Handler().String() + " " + string(run.Value)
			return nil
		}), eventqueue.Policy{}),
		service.On(s, "mail", func(_ context.Context, e OrderPlaced, run *eventqueue.Run) error {
			value, err := json.Marshal(e)
			ran <- run.Canvas.String() + " mail " + string(value)
			return err
		}))
	if err != nil {
		t.Fatal(err)
	}
	return ran
}

// expect waits until everything has run, in any order.
func expect(t *testing.T, ran <-chan string, want ...string) {
	t.Helper()
	missing := map[string]int{}
	for _, w := range want {
		missing[w]++
	}
	for range want {
		select {
		case got := <-ran:
			if missing[got]--; missing[got] < 0 {
				t.Errorf("ran %s, which is not wanted (any more)", got)
			}
		case <-testenv.Context(t).Done():
			t.Fatalf("still missing: %v", missing)
		}
	}
}

const defaultCanvas = "00000000-0000-0000-0000-000000000001"

// TestEveryFormOfEmitRuns, on each notifier, with all parts in one program and nothing
// written that a single tenant does not need.
func TestEveryFormOfEmitRuns(t *testing.T) {
	t.Parallel()
	for kind, config := range map[service.NotifierKind]service.Config{
		service.Memory:   {Notifier: service.Memory},
		service.Postgres: {},
		service.PubSub: {PubSub: pubsubnotify.Config{Create: true, EmulatorHost: testenv.EmulatorHost(t),
			Topic: "every-form", Subscription: "every-form"}},
	} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			ctx := testenv.Context(t)
			config.DatabaseURL = testenv.DatabaseURL(t)
			s := open(t, config)
			ran := collect(t, s)
			stop := run(t, s)
			greet := func(value string) eventqueue.NewEvent {
				return eventqueue.NewEvent{Name: "greet", Value: json.RawMessage(value)}
			}
			_, one := s.Emit(ctx, greet(`1`))
			_, many := s.EmitMany(ctx, []eventqueue.NewEvent{greet(`2`), {Canvas: eventqueue.CanvasID{7}, Name: "greet", Value: json.RawMessage(`3`)}})
			_, ofType := s.EmitTyped(ctx, OrderPlaced{1})
			within := s.InTx(ctx, func(ctx context.Context, tx *eventqueue.Tx) error {
				_, plain := tx.Emit(ctx, greet(`4`))
				_, ofType := s.EmitTypedIn(ctx, tx, OrderPlaced{2})
				return errors.Join(plain, ofType)
			})
			own := pgx.BeginFunc(ctx, s.Pool(), func(tx pgx.Tx) error { // which the relay notifies
				_, plain := s.EmitTx(ctx, tx, greet(`5`))
				_, ofType := s.Bus().EmitTx(ctx, tx, eventqueue.CanvasID{7}, OrderPlaced{3})
				return errors.Join(plain, ofType)
			})
			if err := errors.Join(one, many, ofType, within, own); err != nil {
				t.Fatal(err)
			}
			other := eventqueue.CanvasID{7}.String()
			expect(t, ran, defaultCanvas+" WORKER/greet/_ 1", defaultCanvas+" WORKER/greet/_ 2", other+" WORKER/greet/_ 3",
				defaultCanvas+" WORKER/greet/_ 4", defaultCanvas+" WORKER/greet/_ 5",
				defaultCanvas+` mail {"cart":1}`, defaultCanvas+` mail {"cart":2}`, other+` mail {"cart":3}`)
			if err := s.Ready(ctx); err != nil {
				t.Errorf("Ready = %v", err)
			}
			if err := stop(); err != nil {
				t.Errorf("Run = %v", err)
			}
		})
	}
}

// TestProgramMaySupplyItsPool is used and not closed.
func TestProgramMaySupplyItsPool(t *testing.T) {
	t.Parallel()
	pool := testenv.Pool(t)
	s := open(t, service.Config{Pool: pool})
	ran := collect(t, s)
	stop := run(t, s)
	if _, err := s.Emit(testenv.Context(t), eventqueue.NewEvent{Name: "greet", Value: json.RawMessage(`1`)}); err != nil {
		t.Fatal(err)
	}
	expect(t, ran, defaultCanvas+" WORKER/greet/_ 1")
	if err := errors.Join(stop(), s.Close()); err != nil {
		t.Error(err)
	}
	if err := pool.Ping(testenv.Context(t)); err != nil || s.Pool() != pool {
		t.Errorf("the pool after Close: %v", err)
	}
}

// TestOpenNamesInvalidFields, before it connects to anything.
func TestOpenNamesInvalidFields(t *testing.T) {
	t.Parallel()
	nobody := "postgres://nobody@127.0.0.1:1/nothing"
	for want, c := range map[string]service.Config{
		"DatabaseURL is empty":                     {},
		"DatabaseURL and Pool are both set":        {DatabaseURL: nobody, Pool: &pgxpool.Pool{}},
		"DATABASE_URL":                             {DatabaseURL: "postgres://%zz"},
		"MaxConns is -1":                           {DatabaseURL: nobody, MaxConns: -1},
		"Notifier is \"kafka\"":                    {DatabaseURL: nobody, Notifier: "kafka"},
		"ProjectID \"\"":                           {DatabaseURL: nobody, Notifier: service.PubSub},
		"Topic \"no\"":                             {DatabaseURL: nobody, PubSub: pubsubnotify.Config{ProjectID: "p", Topic: "no"}},
		"MultiTenant and Queue.Canvas":             {DatabaseURL: nobody, MultiTenant: true, Queue: eventqueue.QueueConfig{Canvas: service.DefaultCanvas}},
		"set LockTimeout":                          {DatabaseURL: nobody, Worker: worker.Config{LockTimeout: time.Minute}},
		"Queue: PublishTimeout is -1s":             {DatabaseURL: nobody, Queue: eventqueue.QueueConfig{PublishTimeout: -time.Second}},
		"Queue: Module \"\\x00\" holds":            {DatabaseURL: nobody, Queue: eventqueue.QueueConfig{Module: "\x00"}},
		"Typed.Dispatch: Timeout is -1s":           {DatabaseURL: nobody, Typed: typed.Config{Dispatch: eventqueue.Policy{Timeout: -time.Second}}},
		"Worker: LockTimeout is 1ms":               {DatabaseURL: nobody, LockTimeout: time.Millisecond},
		"Relay: Interval is 1h0m0s":                {DatabaseURL: nobody, Relay: maintenance.RelayConfig{Interval: time.Hour}},
		"Cron: Interval is 1ms":                    {DatabaseURL: nobody, Cron: cronchecker.Config{Interval: time.Millisecond}},
		"Pruner: FailedFor is -1s":                 {DatabaseURL: nobody, Pruner: maintenance.PrunerConfig{FailedFor: -time.Second}},
		"not_there.yaml":                           {DatabaseURL: nobody, HandlersFile: "not_there.yaml"},
		"the database: check that Postgres runs, ": {DatabaseURL: nobody, NoWait: true},
	} {
		s, err := service.Open(testenv.Context(t), c)
		if err == nil {
			t.Errorf("nothing is refused, want %q", want)
			_ = s.Close()
		} else if !strings.Contains(err.Error(), want) {
			t.Errorf("got the error %v, want %q", err, want)
		}
	}
}

// TestEventWithoutATenantIsRefused where there are several.
func TestEventWithoutATenantIsRefused(t *testing.T) {
	t.Parallel()
	s := open(t, service.Config{DatabaseURL: testenv.DatabaseURL(t), MultiTenant: true})
	var invalid *eventqueue.InvalidError
	_, plain := s.Emit(testenv.Context(t), eventqueue.NewEvent{Name: "greet", Value: json.RawMessage(`1`)})
	if !errors.As(plain, &invalid) || invalid.Field != "canvas_id" {
		t.Errorf("a plain event: %v", plain)
	}
	if err := service.Declare[OrderPlaced](s); err != nil {
		t.Fatal(err)
	}
	if _, err := s.EmitTyped(testenv.Context(t), OrderPlaced{1}); !errors.As(err, &invalid) || invalid.Field != "canvas_id" {
		t.Errorf("a typed event: %v", err)
	}
}

// TestProgramWaitsForPostgres, says so once, and works when it comes (I17).
func TestProgramWaitsForPostgres(t *testing.T) {
	t.Parallel()
	database := testenv.DatabaseURL(t)
	proxy := testenv.Proxy(t, hostOf(t, database))
	proxy.Refuse.Store(true)
	core, logs := observer.New(zap.InfoLevel)
	s := open(t, service.Config{DatabaseURL: through(t, database, proxy), Logger: zap.New(core)})
	ran := collect(t, s)
	if err := s.Check(testenv.Context(t)); !s.MayPass(err) { // the second time, after Open
		t.Errorf("Check = %v", err)
	}
	run(t, s)
	if err := s.Ready(testenv.Context(t)); err == nil || !strings.Contains(err.Error(), "waits for its database") {
		t.Errorf("Ready = %v", err)
	}
	proxy.Refuse.Store(false)
	testenv.Eventually(t, "it is ready", func() bool { return s.Ready(testenv.Context(t)) == nil })
	if _, err := s.Emit(testenv.Context(t), eventqueue.NewEvent{Name: "greet", Value: json.RawMessage(`1`)}); err != nil {
		t.Fatal(err)
	}
	expect(t, ran, defaultCanvas+" WORKER/greet/_ 1")
	for message, want := range map[string]int{"the database cannot be used yet": 1, "the database can be used": 1} {
		if n := logs.FilterMessageSnippet(message).Len(); n != want {
			t.Errorf("the log says %d times %q", n, message)
		}
	}
}

// TestUnfitDatabaseIsRefused by Open, with what to do.
func TestUnfitDatabaseIsRefused(t *testing.T) {
	t.Parallel()
	_, err := service.Open(testenv.Context(t), service.Config{DatabaseURL: testenv.EmptyDatabaseURL(t), Logger: zap.NewNop()})
	if err == nil || !strings.Contains(err.Error(), "eventctl migrate up") {
		t.Errorf("Open = %v", err)
	}
}

// TestMissingRightsOfAPartAreNamed, and a part that is switched off needs none.
func TestMissingRightsOfAPartAreNamed(t *testing.T) {
	t.Parallel()
	ctx := testenv.Context(t)
	database := testenv.DatabaseURL(t)
	pool, err := pgxpool.New(ctx, database)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	role, roleURL := asRole(t, pool, database)
	worker := service.Config{DatabaseURL: roleURL, Logger: zap.NewNop(), NoRelay: true, NoCron: true, NoPruner: true}
	cron := service.Config{DatabaseURL: roleURL, Logger: zap.NewNop(), NoWorker: true}
	for right, c := range map[string]struct{ refused, allowed service.Config }{
		"DELETE ON event_log": {cron, worker},
		"INSERT ON event_log": {worker, cron},
	} {
		if _, err := pool.Exec(ctx, `REVOKE `+right+` FROM `+role); err != nil {
			t.Fatal(err)
		}
		s, err := service.Open(ctx, c.refused)
		if err == nil {
			_ = s.Close()
			t.Errorf("nothing is refused without %s", right)
		} else if !strings.Contains(err.Error(), "GRANT "+right+" TO "+role) {
			t.Errorf("without %s: %v", right, err)
		}
		if s, err = service.Open(ctx, c.allowed); err != nil {
			t.Errorf("who does not need %s is told: %v", right, err)
		} else if err := s.Close(); err != nil {
			t.Error(err)
		}
		if _, err := pool.Exec(ctx, `GRANT `+right+` TO `+role); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRunFunctionOpensRunsAndCloses opens, registers, runs and closes; what fails is in the log, and the
// end of ctx is no failure.
func TestRunFunctionOpensRunsAndCloses(t *testing.T) {
	t.Parallel()
	core, logs := observer.New(zap.InfoLevel)
	config := service.Config{DatabaseURL: testenv.DatabaseURL(t), Logger: zap.New(core)}
	failure := errors.New("no such handler")
	if err := service.Run(testenv.Context(t), config, func(*service.Service) error { return failure }); !errors.Is(err, failure) {
		t.Errorf("Run = %v", err)
	}
	if n := logs.FilterMessage("the program failed").Len(); n != 1 {
		t.Errorf("the log says %d times that it failed", n)
	}
	ctx, cancel := context.WithCancel(testenv.Context(t))
	cancel()
	if err := service.Run(ctx, config, nil); err != nil {
		t.Errorf("Run of what is stopped before it begins = %v", err)
	}
}

// TestProgramLogsToItsSlogLogger all that it would log otherwise.
func TestProgramLogsToItsSlogLogger(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	logger := slog.New(slog.NewTextHandler(&out, nil))
	config := service.Config{DatabaseURL: testenv.DatabaseURL(t), SlogLogger: logger}
	failure := errors.New("no such handler")
	if err := service.Run(testenv.Context(t), config, func(*service.Service) error { return failure }); !errors.Is(err, failure) {
		t.Errorf("Run = %v", err)
	}
	if !strings.Contains(out.String(), `level=ERROR msg="the program failed" error="no such handler"`) {
		t.Errorf("the log says %s", &out)
	}
	config.Logger = zap.NewNop()
	if _, err := service.Open(testenv.Context(t), config); err == nil || !strings.Contains(err.Error(), "Logger and SlogLogger are both set") {
		t.Errorf("with two loggers: %v", err)
	}
}

// TestEnvironmentSetsTheConfiguration: what cmd/* are configured by.
func TestEnvironmentSetsTheConfiguration(t *testing.T) {
	t.Parallel()
	c, err := service.FromEnvironment(map[string]string{"DATABASE_URL": "d", "NOTIFIER": "postgres", "WORKER_GRACE_PERIOD": "0", "PORT": "0",
		"LOCK_TIMEOUT": "30s", "LOG_EVENTS": "all", "RELAY_LOST_AFTER": "5s", "HISTORY_FAILED_FOR": "72h", "MAX_VALUE_BYTES": "1000", "RETAIN_HISTORY": "true", "A": "secret"})
	if err != nil {
		t.Fatal(err)
	}
	if c.DatabaseURL != "d" || c.Notifier != service.Postgres || c.Worker.GracePeriod != -1 || c.Address != ":0" || c.LockTimeout != 30*time.Second ||
		c.Relay.LostAfter != 5*time.Second || c.Pruner.FailedFor != 72*time.Hour || c.Queue.Limits.MaxValueBytes != 1000 || !c.Worker.RetainHistory || !c.Worker.LogEvents || c.Logger == nil {
		t.Errorf("got %+v", c)
	}
	if secret, err := c.Secret("A"); err != nil || secret != "secret" {
		t.Errorf("a secret is %q, %v", secret, err)
	}
	if _, err := c.Secret("B"); err == nil || !strings.Contains(err.Error(), "the variable B is not set") {
		t.Errorf("a secret that is not there: %v", err)
	}
	if _, err := service.FromEnvironment(map[string]string{"DATABASE_URL": "d", "WORKER_CONCURRENCY": "-1"}); err == nil || !strings.Contains(err.Error(), "WORKER_CONCURRENCY") {
		t.Errorf("got the error %v", err)
	}
}

func TestCheckHandlersFileReportsMistakes(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "handlers.yaml")
	const file = "handlers: [{module: M, name: n, modifier: _, url: http://a}]\n" +
		"webhooks: [{source: s, scheme: github, secrets: [NOT_SET], module: M, modifier: _, name: n}]\n"
	for text, want := range map[string]string{file: "", strings.Replace(file, "github", "svn", 1): `scheme "svn"`} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		handlers, sources, err := service.CheckHandlersFile(path)
		switch {
		case want == "" && (err != nil || handlers != 1 || sources != 1):
			t.Errorf("%d handlers, %d sources, %v", handlers, sources, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("got the error %v, want %q", err, want)
		}
	}
}
