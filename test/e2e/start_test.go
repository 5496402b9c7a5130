package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/pgsession"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/pubsubnotify"
	"eventsv2/service"
	"eventsv2/test/testenv"
)

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

func hostOf(t *testing.T, databaseURL string) string {
	t.Helper()
	u, err := url.Parse(databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	return u.Host
}

// address is where a program serves its health endpoints.
func (p *program) address() string {
	p.t.Helper()
	p.await("health endpoints listen")
	return addressIn(p.t, p.text())
}

// addressIn is the address that stands in the log of a program.
func addressIn(t *testing.T, log string) string {
	t.Helper()
	for line := range strings.Lines(log) {
		var entry struct{ Message, Address string }
		if json.Unmarshal([]byte(line), &entry) == nil && entry.Message == "health endpoints listen" {
			return "http://127.0.0.1" + entry.Address[strings.LastIndex(entry.Address, ":"):]
		}
	}
	t.Fatal("no address is logged")
	return ""
}

// page is the status and the text of one of a program's pages.
func (p *program) page(path string) (status int, text string) {
	p.t.Helper()
	return pageAt(p.t, p.address()+path)
}

// pageAt is the status and the text of the page at an address.
func pageAt(t *testing.T, address string) (status int, text string) {
	t.Helper()
	response, err := http.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

// awaitReady waits until a program says that it is ready. A busy machine may take longer
// for one check of the database than an answer waits for it.
func (p *program) awaitReady() {
	p.t.Helper()
	testenv.Eventually(p.t, p.Name+" is ready", func() bool {
		status, _ := p.page("/readyz")
		return status == http.StatusOK
	})
}

// TestProgramsWaitForPostgres: they start without it, say once why they wait and what to
// do, are alive and not ready, and work when it comes (I17).
func TestProgramsWaitForPostgres(t *testing.T) {
	t.Parallel()
	testenv.Promised(t, promisedStart)
	for name, silent := range map[string]bool{"port is closed": false, "server accepts and says nothing": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, "greet")
			proxy := testenv.Proxy(t, hostOf(t, r.environment["DATABASE_URL"]))
			r.environment["DATABASE_URL"] = through(t, r.environment["DATABASE_URL"], proxy)
			proxy.Refuse.Store(!silent)
			proxy.Swallow.Store(silent)
			worker, cron := r.start("worker", nil), r.start("cron", nil)
			for _, p := range []*program{worker, cron} {
				p.await("the database cannot be used yet")
				p.await("check that Postgres runs, that DATABASE_URL names it")
				if status, _ := p.page("/healthz"); status != http.StatusOK {
					t.Errorf("/healthz of %s answers %d while it waits for Postgres", p.Name, status)
				}
				if status, text := p.page("/readyz"); status != http.StatusServiceUnavailable {
					t.Errorf("/readyz of %s answers %d %s while it waits for Postgres", p.Name, status, text)
				}
			}
			proxy.Refuse.Store(false)
			proxy.Swallow.Store(false)
			for _, p := range []*program{worker, cron} {
				p.await("the database can be used")
				p.await(p.Name + " started")
				p.awaitReady()
				if n := strings.Count(p.text(), "cannot be used yet"); n != 1 {
					t.Errorf("%s says %d times that it waits:\n%s", p.Name, n, p.text())
				}
			}
			r.emit(event("greet", `1`))
			r.target.await(t, 1)
			for _, p := range []*program{worker, cron} {
				if status := p.terminate(); status != 0 {
					t.Errorf("%s ended with %d", p.Name, status)
				}
			}
		})
	}
}

// TestProgramWaitingForPostgresCanBeStopped at once, and that is no failure.
func TestProgramWaitingForPostgresCanBeStopped(t *testing.T) {
	t.Parallel()
	r := newRig(t, "greet")
	proxy := testenv.Proxy(t, hostOf(t, r.environment["DATABASE_URL"]))
	proxy.Swallow.Store(true)
	r.environment["DATABASE_URL"] = through(t, r.environment["DATABASE_URL"], proxy)
	for _, name := range []string{"worker", "cron"} {
		p := r.start(name, nil)
		p.await("the database cannot be used yet")
		if status := p.terminate(); status != 0 {
			t.Errorf("%s ended with %d", name, status)
		}
	}
}

// answering is the address of a server that answers each connection with an error of
// Postgres.
func answering(t *testing.T, answer *pgproto3.ErrorResponse) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	t.Cleanup(func() {
		_ = listener.Close()
		serving.Wait()
	})
	serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return // the test has ended
			}
			sendError(conn, answer)
			_ = conn.Close()
		}
	})
	return listener.Addr().String()
}

func sendError(conn net.Conn, answer *pgproto3.ErrorResponse) {
	backend := pgproto3.NewBackend(conn, conn)
	message, err := backend.ReceiveStartupMessage()
	if _, tls := message.(*pgproto3.SSLRequest); tls {
		_, _ = conn.Write([]byte("N"))
		_, err = backend.ReceiveStartupMessage()
	}
	if err == nil {
		backend.Send(answer)
		_ = backend.Flush() // whoever asked may have gone
	}
}

// TestStartWaitsOnlyForPassingErrors decides whether a program waits or ends: what passes is
// waited for, and what is a wrong setting is refused at once, by each program and each
// that embeds the library.
func TestStartWaitsOnlyForPassingErrors(t *testing.T) {
	t.Parallel()
	for code, c := range map[string]struct {
		message string
		waits   bool
		want    string
	}{
		"28P01": {"password authentication failed for user \"x\"", false, "password authentication failed"},
		"28000": {"role \"x\" does not exist", false, "does not exist"},
		"3D000": {"database \"x\" does not exist", false, "does not exist"},
		"57P03": {"the database system is starting up", true, "the database is starting up"},
		"53300": {"sorry, too many clients already", true, "raise max_connections"},
	} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, "greet")
			databaseURL := "postgres://x:secret@" + answering(t, &pgproto3.ErrorResponse{
				Severity: "FATAL", SeverityUnlocalized: "FATAL", Code: code, Message: c.message}) + "/x"
			for _, name := range []string{"worker", "cron"} {
				p := r.start(name, map[string]string{"DATABASE_URL": databaseURL})
				if waits := p.says("the database cannot be used yet"); waits != c.waits {
					t.Errorf("%s waits: %t, want %t:\n%s", name, waits, c.waits, p.text())
				}
				if !strings.Contains(p.text(), c.want) {
					t.Errorf("%s does not say %q:\n%s", name, c.want, p.text())
				}
				if c.waits {
					p.terminate()
				} else if status := p.wait(); status != 1 {
					t.Errorf("%s ended with %d", name, status)
				}
			}
			pool, err := pgstore.Open(testenv.Context(t), databaseURL, "app", 1)
			if err == nil {
				pool.Close()
			}
			if (err == nil) != c.waits {
				t.Errorf("Open = %v", err)
			}
			if status, output := r.run("eventctl stats", databaseURL); status != 1 || !strings.Contains(output, c.want) {
				t.Errorf("eventctl ended with %d:\n%s", status, output)
			}
		})
	}
}

// TestEmbeddingProgramWaitsForPostgres: one that is built as the documentation shows
// has its pool, queue and worker while nobody listens, reads that once in the log, and
// works when Postgres comes. What it learns later about wrong settings ends it.
func TestEmbeddingProgramWaitsForPostgres(t *testing.T) {
	t.Parallel()
	testenv.Promised(t, promisedStart)
	r := newRig(t, "greet")
	proxy := testenv.Proxy(t, hostOf(t, r.environment["DATABASE_URL"]))
	proxy.Refuse.Store(true)
	logs := newLines()
	app := r.embed(logs, func(c *service.Config) { c.DatabaseURL = through(t, c.DatabaseURL, proxy) })
	if _, err := app.Emit(testenv.Context(t), event("greet", `1`)); !pgsession.Unreachable(err) {
		t.Errorf("an emit without Postgres says %v", err)
	}
	ran := make(chan eventqueue.EventID, 1)
	stop, ended := app.run(func(run *eventqueue.Run) { ran <- run.ID })
	logs.await(t, "the database cannot be used yet")
	proxy.Refuse.Store(false)
	logs.await(t, "the database can be used")
	ids := r.emit(event("greet", `1`))
	select {
	case id := <-ran:
		if id != ids[0] {
			t.Errorf("event %s ran, want %s", id, ids[0])
		}
	case <-testenv.Context(t).Done():
		t.Fatal("the event does not run")
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("Run = %v", err)
	}
	if n := strings.Count(logs.String(), "the database cannot be used yet"); n != 1 {
		t.Errorf("the log says %d times that the program waits:\n%s", n, logs)
	}
}

// TestEmbeddingProgramNamesAnUnfitDatabase by Open, and by Run where that can be seen later.
func TestEmbeddingProgramNamesAnUnfitDatabase(t *testing.T) {
	t.Parallel()
	r := newRig(t, "greet")
	empty := func(c *service.Config) { c.DatabaseURL = testenv.EmptyDatabaseURL(t) }
	learns := func(by string, err error) {
		t.Helper()
		var unfit *eventqueue.UnfitError
		if !errors.As(err, &unfit) || !strings.Contains(err.Error(), "eventctl migrate up") {
			t.Errorf("%s = %v", by, err)
		}
	}
	_, err := service.Open(testenv.Context(t), r.embedding(newLines(), empty))
	learns("Open", err)

	proxy := testenv.Proxy(t, hostOf(t, r.environment["DATABASE_URL"]))
	proxy.Refuse.Store(true)
	app := r.embed(newLines(), func(c *service.Config) { empty(c); c.DatabaseURL = through(t, c.DatabaseURL, proxy) })
	_, ended := app.run(nil)
	proxy.Refuse.Store(false)
	select {
	case err := <-ended:
		learns("Run", err)
	case <-testenv.Context(t).Done():
		t.Error("Run does not end though the database has no tables")
	}
}

// embedded is a program that is built as README.md and docs/embedding.md show.
type embedded struct {
	*service.Service
	t *testing.T
}

// embed opens one on the deployment's database and Pub/Sub, unless change says otherwise;
// it is closed when the test ends.
func (r *rig) embed(logs *lines, change func(*service.Config)) *embedded {
	r.t.Helper()
	s, err := service.Open(testenv.Context(r.t), r.embedding(logs, change))
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = s.Close() })
	return &embedded{Service: s, t: r.t}
}

func (r *rig) embedding(logs *lines, change func(*service.Config)) service.Config {
	config := service.Config{
		DatabaseURL: r.environment["DATABASE_URL"],
		MaxConns:    4,
		PubSub: pubsubnotify.Config{ProjectID: r.environment["PUBSUB_PROJECT_ID"], Topic: r.environment["PUBSUB_TOPIC"],
			Subscription: r.environment["PUBSUB_SUBSCRIPTION"], EmulatorHost: r.environment["PUBSUB_EMULATOR_HOST"]},
		Logger: zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()), logs, zap.InfoLevel)),
	}
	if change != nil {
		change(&config)
	}
	return config
}

// workerOnly leaves the other parts to other programs.
func workerOnly(c *service.Config) { c.NoRelay, c.NoCron, c.NoPruner = true, true, true }

// run runs the program until stop is called, or the test ends.
func (e *embedded) run(handle func(run *eventqueue.Run)) (stop func(), ended <-chan error) {
	e.t.Helper()
	if err := e.Register(eventqueue.HandlerKey{Name: "greet"}, eventqueue.HandlerFunc(func(_ context.Context, run *eventqueue.Run) error {
		handle(run)
		return nil
	}), eventqueue.Policy{}); err != nil {
		e.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	end := make(chan error, 1)
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		end <- e.Run(ctx)
	}()
	e.t.Cleanup(func() { cancel(); <-finished })
	return cancel, end
}

// lines is a log that can be waited for.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func newLines() *lines { return &lines{} }

func (l *lines) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

// Sync implements zapcore.WriteSyncer.
func (l *lines) Sync() error { return nil }

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// await waits for a text.
func (l *lines) await(t *testing.T, text string) {
	t.Helper()
	testenv.Eventually(t, fmt.Sprintf("the log says %q", text), func() bool { return strings.Contains(l.String(), text) })
}
