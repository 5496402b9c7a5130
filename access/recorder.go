package access

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/zap"

	"eventsv2/eventqueue/audit"
	"eventsv2/eventqueue/pgsession"
	"eventsv2/internal/logkey"
)

const (
	// entriesEvery is how often a Recorder writes what came more than once.
	entriesEvery = time.Minute
	// Meanwhile it tells apart so many kinds of entries: of identities, so many of one identity, and of requests without one.
	// An entry without an identity never displaces one with an identity.
	maxNamed, maxOfOne, maxUnnamed = 200, 5, 20
	// maxEntryBytes bounds the path in an entry.
	maxEntryBytes = 200
	// entriesTimeout bounds writing all entries, which a program that stops waits for.
	entriesTimeout = 3 * time.Second
)

// The actions in the audit log.
const (
	refuse = "refuse"
	logIn  = "log_in"
)

// Recorder records log-ins, and requests that were answered with 401 or 403, in the audit log and in the log of the program.
// The first of a kind is written at once and further ones of the same kind once a minute, with their number, so that a flood
// fills no log. It is safe for concurrent use.
type Recorder struct {
	pool    *pgsession.Pool
	log     *zap.Logger
	refused func(via string, status int)
	wake    chan struct{}

	mu      sync.Mutex
	pending map[entry]counted
	written map[entry]bool // in this minute, of those that may be written at once
}

// entry is a kind of entries. Its actor has no name if the request had no valid credentials.
type entry struct {
	action string
	actor  audit.Actor
	status int // of the answer; 0 for a log-in
}

func (e entry) named() bool { return e.actor.Name != "" }

// counted is how many there were of a kind, and the first of them.
type counted struct {
	n     int
	first string
}

// NewRecorder makes a Recorder for the queue in a schema, on a pool, which the caller closes. refused is called for each refused
// request; nil: there are no metrics.
func NewRecorder(schema pgsession.Schema, pool *pgxpool.Pool, log *zap.Logger, refused func(via string, status int)) *Recorder {
	if log == nil {
		log = zap.NewNop()
	}
	if refused == nil {
		refused = func(string, int) {}
	}
	return &Recorder{pool: pgsession.On(pool, schema), log: log, refused: refused, wake: make(chan struct{}, 1), pending: map[entry]counted{}, written: map[entry]bool{}}
}

// visit is a request that a Recorder watches.
type visit struct {
	identity Identity
	loggedIn bool
}

type visitKey struct{}

// noteIdentity notes who makes a request, for a Recorder.
func noteIdentity(ctx context.Context, who Identity, loggedIn bool) {
	if v, is := ctx.Value(visitKey{}).(*visit); is {
		v.identity, v.loggedIn = who, loggedIn
	}
}

// statusWriter remembers the status of an answer.
type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w *statusWriter) WriteHeader(status int) {
	w.status = cmp.Or(w.status, status)
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap lets http.ResponseController find what the server's writer can do.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Watch records the answers of a handler. via is its name in the audit log, such as api.
func (rec *Recorder) Watch(via string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v, answer := &visit{}, &statusWriter{ResponseWriter: w}
		next.ServeHTTP(answer, r.WithContext(context.WithValue(r.Context(), visitKey{}, v)))
		refused := answer.status == http.StatusUnauthorized || answer.status == http.StatusForbidden
		if !refused && !v.loggedIn {
			return
		}
		e := entry{action: logIn, actor: v.identity.Actor(AddressOf(r), via)}
		if refused {
			rec.refused(via, answer.status)
			e.action, e.status = refuse, answer.status
		}
		rec.add(e, fmt.Sprintf("%.10s %.*s", r.Method, maxEntryBytes, r.URL.Path))
	})
}

func (rec *Recorder) add(e entry, what string) {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	e = rec.bounded(e)
	c, is := rec.pending[e]
	if !is {
		c.first = what
	}
	c.n++
	rec.pending[e] = c
	if !rec.written[e] {
		select {
		case rec.wake <- struct{}{}:
		default:
		}
	}
}

// bounded returns a wider kind for an entry if there are too many of its own.
func (rec *Recorder) bounded(e entry) entry {
	named, ofOne, unnamed := 0, 0, 0
	for other := range rec.pending {
		switch {
		case other == e:
			return e
		case !other.named():
			unnamed++
		default:
			named++
			if other.actor.Key == e.actor.Key && other.actor.Name == e.actor.Name {
				ofOne++
			}
		}
	}
	switch {
	case !e.named() && unnamed >= maxUnnamed, e.named() && named >= maxNamed:
		return entry{action: e.action, actor: audit.Actor{Via: e.actor.Via}}
	case e.named() && ofOne >= maxOfOne:
		e.actor.Source = "" // several
	}
	return e
}

// Run writes until ctx ends, and then what is left. It returns nil.
func (rec *Recorder) Run(ctx context.Context) error {
	minute := time.NewTicker(entriesEvery)
	defer minute.Stop()
	for {
		select {
		case <-rec.wake:
			rec.write(ctx, false)
		case <-minute.C:
			rec.write(ctx, true)
		case <-ctx.Done():
			rec.write(ctx, true)
			return nil
		}
	}
}

// write writes what is new, or all that has come. What has been taken is written also after the end of ctx.
func (rec *Recorder) write(ctx context.Context, all bool) {
	taken := rec.take(all)
	if len(taken) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), entriesTimeout)
	defer cancel()
	err := rec.pool.InTx(ctx, func(tx pgsession.DB) error {
		for e, c := range taken {
			if err := writeEntry(ctx, tx, e, c); err != nil {
				return err
			}
		}
		return nil
	})
	for e, c := range taken {
		rec.line(e, c)
	}
	if err != nil {
		rec.log.Warn("could not write log-ins and refused requests to the audit log; the log has them", zap.Int(logkey.Count, len(taken)), zap.Error(err))
	}
}

// take takes what is to be written. With all, a new minute begins.
func (rec *Recorder) take(all bool) map[entry]counted {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	taken := map[entry]counted{}
	if all {
		taken, rec.pending, rec.written = rec.pending, taken, map[entry]bool{}
		for e := range taken {
			rec.written[e] = true
		}
		return taken
	}
	for e, c := range rec.pending {
		if !rec.written[e] && len(rec.written) < maxNamed+maxUnnamed {
			rec.written[e], taken[e] = true, c
			delete(rec.pending, e)
		}
	}
	return taken
}

// line writes an entry to the log of the program.
func (rec *Recorder) line(e entry, c counted) {
	fields := []zap.Field{zap.Int(logkey.Count, c.n), zap.String("via", e.actor.Via), zap.String("from", e.actor.Source), zap.String("identity", e.actor.Name), zap.String("key", e.actor.Key)}
	if e.action == logIn {
		rec.log.Info("logged in", fields...)
		return
	}
	rec.log.Warn("refused requests", append(fields, zap.Int("status", e.status),
		zap.Error(fmt.Errorf("%d to %s, at first for %q", e.status, cmp.Or(e.actor.Source, "several addresses"), c.first)))...)
}

func writeEntry(ctx context.Context, tx pgsession.DB, e entry, c counted) error {
	e.actor.Name = cmp.Or(e.actor.Name, "unknown")
	document, err := json.Marshal(struct {
		Requests int    `json:"requests"`
		Status   int    `json:"status,omitempty"`
		First    string `json:"first"`
	}{c.n, e.status, c.first})
	if err != nil {
		return err
	}
	return audit.Write(ctx, tx, e.actor, audit.Change{Action: e.action, Target: json.RawMessage(document)})
}
