package pgstore_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/eventqueue/worker"
	"eventsv2/test/testenv"
)

// The crowd works on lines at random: with limits that stay on another, which are
// what is checked, and limits that change on canvas.
const (
	crowdSize  = 6
	crowdSteps = 120
	// inOrder is a key whose events are emitted one after the other, never put off
	// for others and never deleted, so that they run in the order of their ids.
	inOrder = "in order"
)

var crowdNames = []string{"one", "two"}

// crowdKnown are its handlers.
var crowdKnown = eventqueue.HandlerSet{Everywhere: []eventqueue.HandlerKey{
	{Module: "WORKER", Name: "one", Modifier: "_"}, {Module: "WORKER", Name: "two", Modifier: "_"}}}

// throng is shared by its members.
type throng struct {
	*rig
	mu     sync.Mutex
	heard  []eventqueue.EventID // notifications, and some that nobody sent
	last   eventqueue.EventID   // of inOrder, that was claimed
	order  map[eventqueue.EventID]bool
	broken []string
	claims int
}

// TestGroupsHoldUnderRandomConcurrentUse has several stores emit, claim, end, delete, expire and limit
// at random. While they do, no line has more claims than it may; nothing waits for
// another in a circle; and in the end the relay alone finds all that is left.
func TestGroupsHoldUnderRandomConcurrentUse(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r = r.withConns(3 * crowdSize) // each member may have a transaction open, and one more
	ctx := testenv.Context(t)
	for _, limit := range []operate.ConcurrencyLimit{
		{Canvas: another, Max: 4}, {Canvas: another, Module: "WORKER", Name: "one", Max: 2}, {Canvas: another, Key: "two at once", Max: 2},
	} {
		if _, err := r.store.SetConcurrencyLimit(ctx, limit); err != nil {
			t.Fatal(err)
		}
	}
	c := &throng{rig: r, order: map[eventqueue.EventID]bool{}}
	checked, check := context.WithCancel(ctx)
	defer check()
	var members, checker sync.WaitGroup
	checker.Go(func() {
		for checked.Err() == nil {
			c.check()
		}
	})
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	for n := range crowdSize {
		members.Go(func() {
			m := &member{throng: c, store: pgstore.New(r.pool), dice: rand.New(rand.NewPCG(seed, uint64(n))), first: n == 0}
			for range crowdSteps {
				m.step(ctx)
			}
			m.leave(ctx)
		})
	}
	members.Wait()
	check()
	checker.Wait()
	c.drain(ctx)
	for _, what := range c.broken {
		t.Error(what)
	}
	t.Logf("%d claims", c.claims)
}

func (c *throng) complain(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.broken = append(c.broken, fmt.Sprintf(format, args...))
}

// The claims that are valid at one moment, in the groups whose limits stay.
const crowdedSQL = `
SELECT of.group_key, count(*)
FROM events_v2 e CROSS JOIN LATERAL (
    SELECT 'key ' || e.ordering_key, CASE e.ordering_key WHEN 'two at once' THEN 2 ELSE 1 END WHERE e.ordering_key <> ''
    UNION ALL SELECT 'handler one', 2 WHERE e.name = 'one' AND e.canvas_id = $1
    UNION ALL SELECT 'canvas', 4 WHERE e.canvas_id = $1
) AS of (group_key, most)
WHERE e.locked_at > clock_timestamp() - interval '1 minute' AND (e.canvas_id = $1 OR e.ordering_key = 'in order')
GROUP BY e.canvas_id, of.group_key, most HAVING count(*) > most`

func (c *throng) check() {
	rows, err := c.pool.Query(context.Background(), crowdedSQL, [16]byte(another))
	if err != nil {
		c.complain("check: %v", err)
		return
	}
	found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (s string, err error) {
		var n int
		err = row.Scan(&s, &n)
		return fmt.Sprintf("%d events of %s run at once", n, s), err
	})
	if err != nil || len(found) > 0 {
		c.complain("check: %v, %v", found, err)
	}
}

// hear keeps notifications.
func (c *throng) hear(ids ...eventqueue.EventID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.heard = append(c.heard, ids...)
}

// member is one of the crowd.
type member struct {
	*throng
	store *pgstore.Store
	dice  *rand.Rand
	first bool // the one that emits events of inOrder
	held  []worker.Completion
	open  []pgx.Tx
}

// must complains of an error; a lock that was waited for in vain is none.
func (m *member) must(what string, err error) bool {
	var pg *pgconn.PgError
	if errors.As(err, &pg) && pg.Code == "55P03" {
		return false
	}
	if err != nil {
		m.complain("%s: %v", what, err)
	}
	return err == nil
}

func (m *member) step(ctx context.Context) {
	switch m.dice.IntN(20) {
	case 0, 1, 2, 3:
		m.emit(ctx)
	case 4:
		m.close(ctx)
	case 5:
		m.limit(ctx)
	case 6:
		m.byHand(ctx)
	case 7:
		_, err := m.store.Requeue(ctx, m.some(3))
		m.must("requeue", err)
	case 8:
		_, err := m.store.Retry(ctx, operate.Edit{}, m.some(3))
		m.must("retry", err)
	case 9:
		lost, _, err := m.store.TakeLost(ctx, 0, 1000, time.Millisecond)
		m.must("take lost", err)
		for _, n := range lost {
			m.hear(n.Event)
		}
	case 10, 11, 12, 13, 14:
		m.look(ctx, m.some(1+m.dice.IntN(8)))
	default:
		m.end(ctx)
	}
}

// some are a few of those that were heard of, and keep so mostly.
func (m *member) some(n int) (ids []eventqueue.EventID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for range min(n, len(m.heard)) {
		i := m.dice.IntN(len(m.heard))
		ids = append(ids, m.heard[i])
		if m.dice.IntN(4) == 0 {
			m.heard = slices.Delete(m.heard, i, i+1)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

func (m *member) event() eventqueue.NewEvent {
	e := event()
	e.Name = crowdNames[m.dice.IntN(2)]
	if m.dice.IntN(3) > 0 {
		e.Canvas = another
	}
	e.OrderingKey = []string{"", "a", "b", "two at once"}[m.dice.IntN(4)]
	switch m.dice.IntN(8) {
	case 0:
		e.Delay = time.Duration(m.dice.IntN(20)) * time.Millisecond
	case 1:
		e.UniqueKey = fmt.Sprint("unique ", m.dice.IntN(5))
	}
	return e
}
