package dashboard

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/access"
	"eventsv2/eventqueue"
	"eventsv2/eventqueue/audit"
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
	l := handler.streams
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
func TestAnIdleDeploymentGetsFewStatements(t *testing.T) {
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
	r := l.reader(now)
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
			r.round(ctx, now)
			if now = now.Add(defaultRefresh); r.failed {
				t.Fatal("a round has failed")
			}
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

// A stream ends with the token of its viewer, and others go on; there are so many at once, and so many of one viewer.
func TestStreamsEndAndAreBounded(t *testing.T) {
	t.Parallel()
	ctx := testenv.Context(t)
	l, pool, _ := liveDashboard(t)
	tokens := access.NewTokens("", pool)
	actor := audit.Actor{Name: "os:test", Via: "test"}
	var keys []string
	var ids []uuid.UUID
	for range 2 {
		token, _, err := tokens.Create(ctx, actor, access.NewToken{Name: "someone", Grant: access.Grant{Verbs: access.Verbs()}})
		if err != nil {
			t.Fatal(err)
		}
		keys, ids = append(keys, "token:"+token.ID.String()), append(ids, token.ID)
	}
	first, second, other := l.watched(t, keys[0], nil), l.watched(t, keys[1], nil), l.watched(t, "oidc:ada", nil)
	if _, err := tokens.Revoke(ctx, actor, ids[0]); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	r := l.reader(now)
	r.round(ctx, now)
	select {
	case <-first.ended:
		t.Error("it was asked at once who may still read")
	default:
	}
	r.round(ctx, now.Add(tokensEvery))
	select {
	case <-first.ended:
	default:
		t.Error("the stream goes on without its token")
	}
	for _, s := range []*stream{second, other} {
		select {
		case <-s.ended:
			t.Errorf("the stream of %s has ended", s.key)
		default:
		}
	}
	add := func(key string) bool {
		return l.add(&stream{key: key, news: make(chan part, 1), ended: make(chan struct{})})
	}
	for range maxStreamsOf - 1 {
		l.watched(t, keys[1], nil)
	}
	if add(keys[1]) {
		t.Error("one viewer has too many")
	}
	for i := len(l.open); i < maxStreams; i++ {
		l.watched(t, uuid.NewString(), nil)
	}
	if add("another") {
		t.Error("there are too many")
	}
	l.remove(second)
	if !add("another") {
		t.Error("there is no room where one has gone")
	}
	l.close()
	select {
	case <-other.ended:
	default:
		t.Error("a stream of a dashboard that is closed goes on")
	}
	if add("another") {
		t.Error("a stream of a dashboard that is closed begins")
	}
}
