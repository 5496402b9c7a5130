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
	// entriesEvery is how often Doors write what came more than once.
	entriesEvery = time.Minute
	// maxEntries is how many kinds of entries Doors tell apart meanwhile; of further ones only what they are.
	maxEntries = 20
	// maxEntryBytes bounds the path in an entry.
	maxEntryBytes = 200
	// entryTimeout bounds writing one entry.
	entryTimeout = 5 * time.Second
)

// Doors record who was let in and who was not, in the audit log and in the log of the program: log-ins, and requests that were
// answered with 401 or 403. The first of a kind is written at once and further ones of the same kind once a minute, with
// their number, so that nobody can fill a log. It is safe for concurrent use.
type Doors struct {
	pool    *pgsession.Pool
	log     *zap.Logger
	refused func(via string, status int)
	wake    chan struct{}

	mu      sync.Mutex
	pending map[entry]*counted
	known   map[entry]bool // those that were written since the last minute began
}

// The actions in the audit log.
const (
	refuse = "refuse"
	logIn  = "log_in"
)

// entry is a kind of entries. Its actor has no name where nobody knows who it was.
type entry struct {
	action string
	actor  audit.Actor
	status int // of the answer; 0 for a log-in
}

// counted is how many there were of a kind, and the first of them.
type counted struct {
	n     int
	first string
}

// NewDoors makes Doors for the queue in a schema, on a pool, which the caller closes. refused is called for each refused request;
// nil: nobody counts them.
func NewDoors(schema pgsession.Schema, pool *pgxpool.Pool, log *zap.Logger, refused func(via string, status int)) *Doors {
	if log == nil {
		log = zap.NewNop()
	}
	if refused == nil {
		refused = func(string, int) {}
	}
	return &Doors{pool: pgsession.On(pool, schema), log: log, refused: refused, wake: make(chan struct{}, 1), pending: map[entry]*counted{}, known: map[entry]bool{}}
}

// visit is a request that goes through Doors.
type visit struct {
	identity Identity
	loggedIn bool
}

type visitKey struct{}

// noteIdentity notes who makes a request, for Doors.
func noteIdentity(ctx context.Context, who Identity, loggedIn bool) {
	if v, is := ctx.Value(visitKey{}).(*visit); is {
		v.identity, v.loggedIn = who, loggedIn
	}
}

// status remembers the status of an answer.
type status struct {
	http.ResponseWriter
	code int
}

func (s *status) WriteHeader(code int) {
	if s.code == 0 {
		s.code = code
	}
	s.ResponseWriter.WriteHeader(code)
}

// Unwrap lets http.ResponseController find what the server's writer can do.
func (s *status) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// Watch records the answers of a handler, by which the way in is called via.
func (d *Doors) Watch(via string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v, answer := &visit{}, &status{ResponseWriter: w}
		next.ServeHTTP(answer, r.WithContext(context.WithValue(r.Context(), visitKey{}, v)))
		refused := answer.code == http.StatusUnauthorized || answer.code == http.StatusForbidden
		if !refused && !v.loggedIn {
			return
		}
		e := entry{action: logIn, actor: v.identity.Actor(AddressOf(r), via)}
		if refused {
			d.refused(via, answer.code)
			e.action, e.status = refuse, answer.code
		}
		d.add(e, fmt.Sprintf("%.10s %.*s", r.Method, maxEntryBytes, r.URL.Path))
	})
}

func (d *Doors) add(e entry, what string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.pending[e]
	if c == nil && len(d.pending) >= maxEntries {
		e = entry{action: e.action, actor: audit.Actor{Via: e.actor.Via}} // all others
		c = d.pending[e]
	}
	if c == nil {
		c = &counted{first: what}
		d.pending[e] = c
	}
	c.n++
	if !d.known[e] && len(d.known) < maxEntries {
		select {
		case d.wake <- struct{}{}:
		default:
		}
	}
}

// Run writes until ctx ends, and then what is left. It returns nil.
func (d *Doors) Run(ctx context.Context) error {
	taken := context.WithoutCancel(ctx) // what is taken is written, also at the end
	minute := time.NewTicker(entriesEvery)
	defer minute.Stop()
	for {
		select {
		case <-d.wake:
			d.write(taken, false)
		case <-minute.C:
			d.write(taken, true)
		case <-ctx.Done():
			d.write(taken, true)
			return nil
		}
	}
}

// write writes what is new, or all that has come.
func (d *Doors) write(ctx context.Context, all bool) {
	for e, c := range d.take(all) {
		d.line(e, c)
		if err := d.audit(ctx, e, c); err != nil {
			d.log.Warn("could not write to the audit log who was let in and who was not", zap.Error(err))
		}
	}
}

// take takes what is to be written. With all, a new minute begins.
func (d *Doors) take(all bool) map[entry]*counted {
	d.mu.Lock()
	defer d.mu.Unlock()
	if all {
		taken := d.pending
		d.pending, d.known = map[entry]*counted{}, map[entry]bool{}
		for e := range taken {
			d.known[e] = true
		}
		return taken
	}
	taken := map[entry]*counted{}
	for e, c := range d.pending {
		if !d.known[e] && len(d.known) < maxEntries {
			d.known[e], taken[e] = true, c
			delete(d.pending, e)
		}
	}
	return taken
}

// line writes what was refused to the log of the program.
func (d *Doors) line(e entry, c *counted) {
	if e.action != refuse {
		return
	}
	d.log.Warn("requests were refused", zap.Int(logkey.Count, c.n), zap.Int("status", e.status), zap.String("via", e.actor.Via), zap.String("from", e.actor.Source),
		zap.String("identity", e.actor.Name), zap.String("key", e.actor.Key), zap.Error(fmt.Errorf("%d to %s, at first for %q", e.status, cmp.Or(e.actor.Source, "several addresses"), c.first)))
}

func (d *Doors) audit(ctx context.Context, e entry, c *counted) error {
	ctx, cancel := context.WithTimeout(ctx, entryTimeout)
	defer cancel()
	if e.actor.Name == "" {
		e.actor.Name = "unknown"
	}
	target := struct {
		Requests int    `json:"requests"`
		Status   int    `json:"status,omitempty"`
		First    string `json:"first"`
	}{c.n, e.status, c.first}
	document, err := json.Marshal(target)
	if err != nil {
		return err
	}
	return d.pool.InTx(ctx, func(tx pgsession.DB) error {
		return audit.Write(ctx, tx, e.actor, audit.Change{Action: e.action, Target: json.RawMessage(document)})
	})
}
