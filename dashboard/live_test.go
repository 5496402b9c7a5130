package dashboard

import (
	"context"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/zap"

	"eventsv2/access"
	"eventsv2/eventqueue"
	"eventsv2/eventqueue/audit"
	"eventsv2/eventqueue/inspect"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/test/testenv"
)

// statements counts what is sent to the database.
type statements struct{ sent atomic.Int64 }

func (s *statements) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	s.sent.Add(1)
	return ctx
}
func (s *statements) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (s *statements) TraceBatchStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceBatchStartData) context.Context {
	s.sent.Add(int64(data.Batch.Len()))
	return ctx
}
func (s *statements) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}
func (s *statements) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData)     {}

// liveDashboard is a dashboard for holders of tokens, whose statements are counted. The test makes its rounds.
func liveDashboard(t *testing.T) (*streams, *pgxpool.Pool, *statements) {
	t.Helper()
	opened, err := pgstore.Open(testenv.Context(t), testenv.DatabaseURL(t), "dashboard", 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(opened.Close)
	config, sent := opened.Config(), &statements{}
	config.ConnConfig.Tracer = sent
	pool, err := pgxpool.NewWithConfig(testenv.Context(t), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	handler, err := New(Config{Store: pgstore.New(pool), Log: testenv.Logger(t), Access: &access.Authenticator{Tokens: access.NewTokens("", pool)}})
	if err != nil {
		t.Fatal(err)
	}
	l := handler.pages.streams
	l.shown, l.stop = map[eventqueue.CanvasID]part{}, func() {} // as if a reader ran
	t.Cleanup(handler.Close)
	return l, pool, sent
}

func (l *streams) watched(t *testing.T, key string, canvas *eventqueue.CanvasID) *stream {
	t.Helper()
	s := &stream{key: key, canvas: canvas, news: make(chan part, 1), ended: make(chan struct{})}
	if !l.add(s) {
		t.Fatalf("there is no room for a stream of %s", key)
	}
	return s
}

// However many pages are open, by whomever and on whichever canvases, a deployment in which nothing happens but that what
// is pending is counted gets no more than 12 statements a minute from them.
func TestIdleStreamsSendFewStatements(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	l, pool, sent := liveDashboard(t)
	writer, err := pgx.Connect(ctx, pool.Config().ConnString())
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close(ctx)
	canvases := make([]eventqueue.CanvasID, 20)
	var open []*stream
	by := access.NewTokens("", pool)
	for i := range maxStreams {
		canvas := &canvases[i%len(canvases)]
		*canvas = eventqueue.CanvasID{9, 15: byte(i%len(canvases) + 1)}
		if i%4 == 0 {
			canvas = nil
		}
		token, _, err := by.Create(ctx, audit.Actor{Name: "os:test", Via: "test"}, access.NewToken{Name: "someone", Grant: access.Grant{Verbs: access.Verbs()}})
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, l.watched(t, "token:"+token.ID.String(), canvas))
	}
	now := time.Now()
	r := l.reader()
	for counts := range 2 {
		before := sent.sent.Load()
		const hours = 1
		for i := range hours * 60 * 5 {
			if counts > 0 && i%5 == 0 { // as cron does once a minute
				if _, err := writer.Exec(ctx, `INSERT INTO event_minutes (minute, canvas_id, module, name, pending) VALUES (date_trunc('minute', now()), $1, 'WORKER', 'later', $2)
					ON CONFLICT (minute, canvas_id, module, name) DO UPDATE SET pending = excluded.pending`, [16]byte(canvases[1]), i); err != nil {
					t.Fatal(err)
				}
			}
			err := r.refresh(ctx, now)
			if i%3 == 0 && err == nil { // every 36 seconds, which is more often than it is
				err = r.endRefused(ctx)
			}
			if err != nil {
				t.Fatal(err)
			}
			now = now.Add(defaultRefresh)
		}
		// Each page begins a new stream once an hour, for which it is found out who looks at it.
		got := sent.sent.Load() - before + maxStreams*hours
		t.Logf("%d statements in %d hours", got, hours)
		if got > 12*60*hours {
			t.Errorf("%d statements in an hour: these are more than 12 a minute", got)
		}
	}
	for i, s := range open {
		select {
		case p := <-s.news:
			if has := len(p.totals) > 0; has != (s.canvas == nil || *s.canvas == canvases[1]) {
				t.Errorf("stream %d has %d minutes", i, len(p.totals))
			}
		default:
			t.Errorf("stream %d has got nothing", i)
		}
	}
}

func (s *stream) wants(t *testing.T, open bool) {
	t.Helper()
	select {
	case <-s.ended:
		if open {
			t.Errorf("the stream of %s has ended", s.key)
		}
	default:
		if !open {
			t.Errorf("the stream of %s goes on", s.key)
		}
	}
}

// A stream ends with the token of its viewer, and with a session that was logged out by another program; others go on.
func TestStreamsEndWithTheirCredentials(t *testing.T) {
	t.Parallel()
	ctx := testenv.Context(t)
	l, pool, _ := liveDashboard(t)
	tokens := access.NewTokens("", pool)
	sessions, err := access.NewSessions(tokens, nil, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	actor := audit.Actor{Name: "os:test", Via: "test"}
	token := func() (key, session string, id uuid.UUID) {
		token, secret, err := tokens.Create(ctx, actor, access.NewToken{Name: "someone", Grant: access.Grant{Verbs: access.Verbs()}})
		if err != nil {
			t.Fatal(err)
		}
		if session, _, err = sessions.Begin(ctx, secret); err != nil {
			t.Fatal(err)
		}
		return "token:" + token.ID.String(), session, token.ID
	}
	key, session, revoked := token()
	second, leaves, _ := token()
	watched := func(key, session string) *stream {
		s := l.watched(t, key, nil)
		if s.session = ""; session != "" {
			s.session = sessions.Key(session)
		}
		return s
	}
	first, left, stays, other := watched(key, session), watched(second, leaves), watched(second, ""), watched("oidc:ada", "")
	if _, err := tokens.Revoke(ctx, actor, revoked); err != nil {
		t.Fatal(err)
	}
	if err := sessions.End(ctx, leaves); err != nil {
		t.Fatal(err)
	}
	if err := l.reader().endRefused(ctx); err != nil {
		t.Fatal(err)
	}
	first.wants(t, false)
	left.wants(t, false)
	stays.wants(t, true)
	other.wants(t, true)
}

// However seldom a dashboard reads, a stream outlives its credentials by less than a minute, also if the database is slow to say so.
func TestStreamsEndWithinAMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var revoked atomic.Bool
		l := &streams{open: map[*stream]bool{}, every: time.Hour, timeout: defaultTimeout, log: zap.NewNop(), from: streamSource{
			pulse: func(context.Context) (inspect.Pulse, error) { return inspect.Pulse{}, nil },
			parts: func(context.Context, asked, inspect.Pulse) (map[eventqueue.CanvasID]part, error) { return nil, nil },
			ended: func(_ context.Context, keys []string) ([]string, error) {
				if !revoked.Load() {
					return nil, nil
				}
				time.Sleep(defaultTimeout - 1)
				return keys, nil
			},
		}}
		s := l.watched(t, "token:x", nil)
		time.Sleep(credentialsEvery + 1) // they are asked about at the worst time
		revoked.Store(true)
		began := time.Now()
		<-s.ended
		if took := time.Since(began); took >= time.Minute {
			t.Errorf("the stream has ended after %s", took)
		}
		l.close()
	})
}

// There are so many streams at once, and so many of one viewer.
func TestStreamsAreBounded(t *testing.T) {
	t.Parallel()
	l, _, _ := liveDashboard(t)
	add := func(key string) bool {
		return l.add(&stream{key: key, news: make(chan part, 1), ended: make(chan struct{})})
	}
	first := l.watched(t, "one", nil)
	for range maxStreamsOf - 1 {
		l.watched(t, "one", nil)
	}
	if add("one") {
		t.Error("one viewer has too many")
	}
	other := l.watched(t, "other", nil)
	for i := len(l.open); i < maxStreams; i++ {
		l.watched(t, uuid.NewString(), nil)
	}
	if add("another") {
		t.Error("there are too many")
	}
	l.remove(first)
	if !add("another") {
		t.Error("there is no room where one has gone")
	}
	l.close()
	other.wants(t, false)
	if add("another") {
		t.Error("a stream of a dashboard that is closed begins")
	}
}

// When all streams are taken, canvases share them: who has tokens without number for one canvas keeps nobody else out.
func TestCanvasesShareStreams(t *testing.T) {
	t.Parallel()
	l, _, _ := liveDashboard(t)
	canvases := []*eventqueue.CanvasID{{1}, {2}, nil}
	add := func(canvas *eventqueue.CanvasID) (*stream, bool) {
		s := &stream{key: uuid.NewString(), canvas: canvas, news: make(chan part, 1), ended: make(chan struct{})}
		return s, l.add(s)
	}
	var greedy []*stream
	for range maxStreams {
		greedy = append(greedy, l.watched(t, uuid.NewString(), canvases[0]))
	}
	if _, added := add(canvases[0]); added {
		t.Error("there is no room for more of the same canvas")
	}
	has := map[int]int{0: maxStreams}
	for of := 1; of < len(canvases); of++ {
		for {
			s, added := add(canvases[of])
			if !added {
				break
			}
			s.wants(t, true)
			has[of]++
		}
		if of == 1 && has[1] != maxStreams/2 {
			t.Errorf("of two canvases the second has %d streams of %d", has[1], maxStreams)
		}
	}
	left := map[eventqueue.CanvasID]int{}
	for s := range l.open {
		left[s.of()]++
	}
	for _, n := range left {
		if n < maxStreams/len(canvases) {
			t.Errorf("the streams are shared like this: %v", left)
		}
	}
	for i, s := range greedy { // those that came first stay
		s.wants(t, i < left[*canvases[0]])
	}
	if len(l.open) != maxStreams {
		t.Errorf("%d streams are open", len(l.open))
	}
}

// A page that is renewed while it is looked at sends no more than 12 statements a minute.
func TestRenewedPagesSendFewStatements(t *testing.T) {
	t.Parallel()
	_, pool, sent := liveDashboard(t)
	const canvas = "6f1e5bd4-3a56-4a0c-9c2e-6f3b1d0c7a11"
	for _, sql := range []string{
		`INSERT INTO canvas_names (canvas_id, name) VALUES ('` + canvas + `', 'Acme Ltd')`,
		`INSERT INTO events_v2 (canvas_id, module, name, modifier, value, ordering_key, group_state) VALUES ('` + canvas + `', 'WORKER', 'greet', '_', '1', 'k', 1)`,
		`INSERT INTO event_groups (event_id, stage, canvas_id, group_key) VALUES (1, 1, '` + canvas + `', 'key k')`,
		`INSERT INTO concurrency_limits (canvas_id, group_key, max_running) VALUES ('` + canvas + `', 'canvas', 3)`,
		`INSERT INTO event_log (id, canvas_id, module, name, modifier, value, status, retries, attempts, enqueued_at) VALUES (7, '` + canvas + `', 'WORKER', 'greet', '_', '1', 'FAILED', 1, 2, now())`,
		`INSERT INTO event_minutes (minute, canvas_id, module, name, pending) VALUES (date_trunc('minute', now()), '` + canvas + `', 'WORKER', 'greet', 1)`,
		`INSERT INTO rate_limits (canvas_id, module, name, per_minute) VALUES ('` + canvas + `', '', '', 5)`,
		`INSERT INTO cron_definitions (canvas_id, name, schedule) VALUES ('` + canvas + `', 'nightly', '0 3 * * *')`,
		`INSERT INTO event_workers (number, host, pid, version, handlers) VALUES (7, 'host', 1, 'v1', '[{"module": "WORKER", "name": "greet", "modifier": "_", "canvas_id": "` + canvas + `"}]')`,
		`INSERT INTO webhook_sources (source, canvas_id, scheme, served_at, refusals) VALUES ('github', '` + canvas + `', 'github', now(), '[]')`,
		`INSERT INTO audit_log (actor, source, via, action, canvas_id, target) VALUES ('me', 'here', 'api', 'limit', '` + canvas + `', '{}')`,
	} {
		if _, err := pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	const named, of = "?canvas=Acme+Ltd", "handler?canvas=" + canvas + "&module=WORKER&name=greet"
	for who, paths := range map[*access.Grant][]string{
		{Verbs: access.Verbs()}: {"events", "failed", "handlers", "groups", "crons", "workers", "webhooks", "audit", "?range=6h", "?range=24h", "?range=7d", of, of + "&range=7d", "events/1"},
		// Who chooses among canvases sees their names as well.
		{Verbs: access.Verbs(), Canvases: []eventqueue.CanvasID{{1}, eventqueue.CanvasID(uuid.MustParse(canvas))}}: {"events" + named, "failed" + named, "handlers" + named, "groups" + named, "crons" + named, "audit" + named,
			"events" + named + "&state=failed", named + "&range=6h", named + "&range=7d"},
	} {
		handler, err := New(Config{Store: pgstore.New(pool), Log: testenv.Logger(t), Identify: func(*http.Request) (access.Identity, error) {
			return access.Identity{Name: "ada", Grants: []access.Grant{*who}, Key: "ada"}, nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(handler.Close)
		for _, path := range paths {
			before := sent.sent.Load()
			answer := httptest.NewRecorder()
			handler.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/"+path, nil))
			seconds := regexp.MustCompile(`<main [^>]*data-renew="(\d+)"`).FindStringSubmatch(answer.Body.String())
			if answer.Code != http.StatusOK || seconds == nil {
				t.Errorf("%s is %d, and is not renewed", path, answer.Code)
				continue
			}
			if !strings.Contains(path, "?range") && !strings.Contains(answer.Body.String(), ">Acme Ltd</") {
				t.Errorf("%s does not name the canvas", path)
			}
			every, err := strconv.Atoi(seconds[1])
			if n := sent.sent.Load() - before; err != nil || int(n)*60 > 12*every {
				t.Errorf("%s sends %d statements every %d s, %v", path, n, every, err)
			}
		}
	}
}
