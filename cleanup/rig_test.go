package cleanup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/memnotify"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/test/testenv"
)

// rig is a queue on a database of its own, and a service to publish with.
type rig struct {
	*testing.T
	ctx     context.Context
	pool    *pgxpool.Pool
	queue   *eventqueue.Queue
	store   *Store
	service *service
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{T: t, ctx: t.Context(), pool: testenv.Pool(t), service: &service{}}
	r.store = NewStore(r.pool)
	var err error
	r.queue, err = eventqueue.New(pgstore.New(r.pool), memnotify.New(memnotify.Config{}), eventqueue.QueueConfig{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.queue.Close(context.Background()) })
	return r
}

// emit puts an event into the queue that no worker runs.
func (r *rig) emit(canvas eventqueue.CanvasID) eventqueue.Event {
	r.Helper()
	e := eventqueue.NewEvent{Canvas: canvas, Module: "WORKER", Name: "report", Modifier: "_", Value: json.RawMessage(`{}`)}
	id, err := r.queue.Emit(r.ctx, e)
	if err != nil {
		r.Fatal(err)
	}
	return eventqueue.Event{ID: id, Canvas: canvas}
}

// claim makes a run of an event, as a worker does.
func (r *rig) claim(e eventqueue.Event) *eventqueue.Run {
	r.Helper()
	const claimSQL = `UPDATE events_v2 SET attempts = attempts + 1 WHERE id = $1 RETURNING attempts`
	run := &eventqueue.Run{Event: e}
	if err := r.pool.QueryRow(r.ctx, claimSQL, int64(e.ID)).Scan(&run.Attempt); err != nil {
		r.Fatal(err)
	}
	return run
}

// end takes an event out of the queue.
func (r *rig) end(e eventqueue.Event) {
	r.Helper()
	r.exec(`DELETE FROM events_v2 WHERE id = $1`, int64(e.ID))
}

func (r *rig) exec(sql string, args ...any) {
	r.Helper()
	if _, err := r.pool.Exec(r.ctx, sql, args...); err != nil {
		r.Fatalf("%s: %v", sql, err)
	}
}

// publication publishes text with the service.
func (r *rig) publication(key Key, text string) Publication {
	return Publication{
		Key: key,
		Send: func(_ context.Context, intent Intent) ([]byte, error) {
			return r.service.send(key, intent.Token, text)
		},
		Find: func(_ context.Context, intent Intent) ([]byte, bool, error) {
			return r.service.find(intent.Token)
		},
		Delete: func(_ context.Context, c Cleanup) error { return r.service.delete(c) },
	}
}

// published is one event from its emit to its end.
func (r *rig) published(key Key, text string) Result {
	r.Helper()
	event := r.emit(key.Canvas)
	result, err := NewPublications(r.pool).Publish(r.ctx, r.claim(event), r.publication(key, text))
	if err != nil {
		r.Fatal(err)
	}
	r.end(event)
	return result
}

func (r *rig) all(key Key) []Cleanup {
	r.Helper()
	list, err := r.store.ListAll(r.ctx, key)
	if err != nil {
		r.Fatal(err)
	}
	return list
}

// wantRows checks that there is a cleanup for each message of the key, no other
// one, and no intent.
func (r *rig) wantRows(key Key) {
	r.Helper()
	var known []string
	for _, c := range r.all(key) {
		known = append(known, string(c.Data))
	}
	if published := r.service.ids(key); !slices.Equal(slices.Sorted(slices.Values(known)), published) {
		r.Errorf("the messages of %s are %q, and cleanups there are for %q", key, published, known)
	}
}

func (r *rig) wantTexts(key Key, want ...string) {
	r.Helper()
	if got := r.service.texts(key); !slices.Equal(got, want) {
		r.Errorf("the messages of %s are %q, want %q", key, got, want)
	}
}

// service is a chat: messages that are sent, found by a token and deleted.
type service struct {
	mu       sync.Mutex
	sent     int
	messages []message
	deletes  map[string]int // by id
	refuse   map[string]bool
	step     func() // may kill the caller after a call had its effect
}

type message struct{ id, token, topic, text string }

func (s *service) stepped() {
	if s.step != nil {
		s.step()
	}
}

func (s *service) send(key Key, token, text string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent++
	m := message{fmt.Sprintf("m%03d", s.sent), token, key.String(), text}
	s.messages = append(s.messages, m)
	s.stepped()
	return []byte(m.id), nil
}

func (s *service) find(token string) ([]byte, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.stepped()
	for _, m := range s.messages {
		if m.token == token {
			return []byte(m.id), true, nil
		}
	}
	return nil, false, nil
}

// delete is idempotent, as it has to be.
func (s *service) delete(c Cleanup) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := string(c.Data)
	if s.refuse[id] {
		return errors.New("the service refuses to delete " + id)
	}
	for _, m := range s.messages {
		if m.id == id && m.topic != c.Key.String() {
			return fmt.Errorf("%s is to be deleted for %s", m.topic, c.Key)
		}
	}
	if s.deletes == nil {
		s.deletes = map[string]int{}
	}
	s.deletes[id]++
	s.messages = slices.DeleteFunc(s.messages, func(m message) bool { return m.id == id })
	s.stepped()
	return nil
}

func (s *service) ids(key Key) (ids []string) {
	return s.column(key, func(m message) string { return m.id })
}

func (s *service) texts(key Key) (texts []string) {
	return s.column(key, func(m message) string { return m.text })
}

func (s *service) column(key Key, of func(message) string) (values []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.messages {
		if m.topic == key.String() {
			values = append(values, of(m))
		}
	}
	return values
}

// errKilled is the panic of a killed run: no code of it runs then that
// would not run in a process that died.
var errKilled = errors.New("killed")

// killer kills a run after one of its steps, statements and calls of the service:
// that one has its effect, and nothing follows.
type killer struct {
	eventqueue.DB
	at    int // the step, from 1; 0: never
	taken []string
}

func (k *killer) step(name string) {
	k.taken = append(k.taken, name)
	if len(k.taken) == k.at {
		panic(errKilled)
	}
}

func (k *killer) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	tag, err := k.DB.Exec(ctx, sql, args...)
	k.step(strings.Fields(sql)[0])
	return tag, err
}

func (k *killer) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	return killedRow{k.DB.QueryRow(ctx, sql, args...), k, strings.Fields(sql)[0]}
}

type killedRow struct {
	pgx.Row
	killer *killer
	name   string
}

func (row killedRow) Scan(targets ...any) error {
	err := row.Row.Scan(targets...)
	row.killer.step(row.name)
	return err
}
