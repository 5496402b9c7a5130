package maintenance_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/maintenance"
)

// counted is a store whose counts of what is pending are given, a page for each minute, of which the
// last goes on.
type counted struct {
	empty
	mu    sync.Mutex
	pages []maintenance.Waiting
	// counts is how often CountWaiting was called.
	counts int
	also   []string // what was asked beside the counts
	gone   bool     // what is due
}

func (c *counted) CountWaiting(context.Context, eventqueue.Scope) (maintenance.Waiting, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked.Add(1)
	c.counts++
	page := c.pages[0]
	if len(c.pages) > 1 {
		c.pages = c.pages[1:]
	}
	return page, nil
}

func (c *counted) OldestDue(_ context.Context, scope eventqueue.Scope) (eventqueue.EventID, string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.also = append(c.also, "oldest of "+scope.Name)
	if c.gone {
		return 0, "", nil
	}
	if scope == behindOthers {
		return 8, "_", nil
	}
	return 7, "_", nil
}

func (c *counted) CountEmits(context.Context) (bool, error) { return false, nil }

func (c *counted) SumMinutes(context.Context) (bool, error) { return false, nil }

func (c *counted) SumHour(context.Context) (bool, error) { return false, nil }

func (c *counted) PruneMinutes(context.Context, time.Duration, time.Duration, int) (int, error) {
	return 0, nil
}

// linesOf runs a relay for some minutes and returns what its log says about minutes.
func (c *counted) linesOf(t *testing.T, minutes int, explain maintenance.Explain) (lines []string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c.emittedAt = time.Now().Add(24 * time.Hour)
		core, logs := observer.New(zap.InfoLevel)
		relay, err := maintenance.NewRelay(c, make(publishedAt, 1), maintenance.RelayConfig{Logger: zap.New(core), Explain: explain})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- relay.Run(ctx) }()
		<-time.After(time.Duration(minutes)*time.Minute - 30*time.Second)
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		for _, entry := range logs.All() {
			if entry.Message != "published notifications" {
				lines = append(lines, line(entry))
			}
		}
	})
	return lines
}

// line is a line of a log, with its fields in the order in which they were written.
func line(entry observer.LoggedEntry) string {
	text := entry.Level.CapitalString() + " " + entry.Message
	for _, field := range entry.Context {
		read := zapcore.NewMapObjectEncoder()
		field.AddTo(read)
		text += fmt.Sprintf(" %s=%v", field.Key, read.Fields[field.Key])
	}
	return text
}

var (
	quietly      = eventqueue.Scope{Canvas: beside, Module: "M", Name: "quiet"}
	behindOthers = eventqueue.Scope{Canvas: beside, Module: "M", Name: "behind"}
)

func because(explained maintenance.Explanation) maintenance.Explain {
	return func(context.Context, eventqueue.EventID) (maintenance.Explanation, error) {
		return explained, nil
	}
}

// TestOldMinutesAreSummarized: one line for each minute in which something ran or is due, none for others.
func TestOldMinutesAreSummarized(t *testing.T) {
	t.Parallel()
	next := eventqueue.Scope{Canvas: beside}
	store := &counted{pages: []maintenance.Waiting{
		{Completed: 5, Failed: 1, Retried: 2, Running: 3, Pending: 4, Held: 1, OldestDue: time.Second},
		{Pending: 9, Held: 4}, // of which none is due
		{Completed: 1},
		{Pending: 6, OldestDue: time.Hour, Next: next}, // a page of several
		{Pending: 1, OldestDue: time.Minute},
		{},
		{},
	}}
	want := []string{
		"INFO runs of the last minute run=8 failed=1 retried=2 running=3 pending=4 held=1 oldest_due=1s",
		"INFO runs of the last minute run=1 failed=0 retried=0 running=0 pending=0 held=0 oldest_due=0s",
		"INFO runs of the last minute run=0 failed=0 retried=0 running=0 pending=7 held=0 oldest_due=1h0m0s",
	}
	if lines := store.linesOf(t, 20, nil); !slices.Equal(lines, want) {
		t.Errorf("the log says\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}
	if len(store.also) != 0 {
		t.Errorf("the database was asked for %q although all handlers run", store.also)
	}
}

// TestStalledQueueIsLoggedAsErrorEachMinute, with the reason and the remedy.
func TestStalledQueueIsLoggedAsErrorEachMinute(t *testing.T) {
	t.Parallel()
	stands := maintenance.Waiting{Pending: 2, OldestDue: time.Hour, Unserved: []maintenance.Unserved{{Scope: quietly, DueFor: time.Hour}}, UnservedHandlers: 1}
	store := &counted{pages: []maintenance.Waiting{stands}}
	lines := store.linesOf(t, 3, because(maintenance.Explanation{Why: "No worker runs.", Remedy: "Start one.", Free: true}))
	sum := "INFO runs of the last minute run=0 failed=0 retried=0 running=0 pending=2 held=0 oldest_due=1h0m0s"
	line := "ERROR nothing has run for a minute although something is due event_id=7 canvas_id=" + beside.String() +
		" handler=M/quiet/_ reason=No worker runs. remedy=Start one. due_for=1h0m0s handlers=1"
	if want := []string{sum, line, sum, line, sum, line}; !slices.Equal(lines, want) {
		t.Errorf("the log says\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}
}

// TestStalledHandlerIsLoggedAsWarning, once every ten minutes and for the first that has a
// reason of its own.
func TestStalledHandlerIsLoggedAsWarning(t *testing.T) {
	t.Parallel()
	page := maintenance.Waiting{Completed: 1, EndedOf: 1, Pending: 2, OldestDue: time.Hour, UnservedHandlers: 2,
		Unserved: []maintenance.Unserved{{Scope: behindOthers, DueFor: time.Hour}, {Scope: quietly, DueFor: time.Minute}}}
	store := &counted{pages: []maintenance.Waiting{page}}
	lines := store.linesOf(t, 25, func(_ context.Context, id eventqueue.EventID) (maintenance.Explanation, error) {
		return maintenance.Explanation{Why: "No live worker has its handler.", Remedy: "Deploy one.", Free: id == 8}, nil
	})
	lines = slices.DeleteFunc(lines, func(line string) bool { return strings.HasPrefix(line, "INFO runs of the last minute") })
	warning := "WARN nothing of a handler has run for a minute although something is due event_id=7 canvas_id=" + beside.String() +
		" handler=M/quiet/_ reason=No live worker has its handler. remedy=Deploy one. due_for=1m0s handlers=2"
	if want := []string{warning, warning, warning}; !slices.Equal(lines, want) {
		t.Errorf("the log says\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}
}

// TestPassingDelayIsNotLogged, and neither has what is gone when it is asked for.
func TestPassingDelayIsNotLogged(t *testing.T) {
	t.Parallel()
	page := maintenance.Waiting{Unserved: []maintenance.Unserved{{Scope: quietly, DueFor: time.Hour}}, UnservedHandlers: 1}
	for name, store := range map[string]*counted{"passes": {}, "gone": {gone: true}} {
		store.pages = []maintenance.Waiting{page}
		if lines := store.linesOf(t, 3, because(maintenance.Explanation{Why: "w", Passes: true})); len(lines) != 0 {
			t.Errorf("%s: the log says\n%s", name, strings.Join(lines, "\n"))
		}
		if len(store.also) == 0 {
			t.Errorf("%s: nobody has asked", name)
		}
	}
}

// TestFailedExplanationIsLogged is a warning, and the counts go on.
func TestFailedExplanationIsLogged(t *testing.T) {
	t.Parallel()
	store := &counted{pages: []maintenance.Waiting{{Completed: 1, Unserved: []maintenance.Unserved{{Scope: quietly, DueFor: time.Hour}}}}}
	lines := store.linesOf(t, 2, func(context.Context, eventqueue.EventID) (maintenance.Explanation, error) {
		return maintenance.Explanation{}, errors.New("no such table")
	})
	if text := strings.Join(lines, "\n"); len(lines) != 3 || !strings.Contains(text, "could not maintain the counts of minutes; trying again error=no such table") {
		t.Errorf("the log says\n%s", text)
	}
}

// TestIdleRelayCountsAgain when there is an event, or programs hand in counts of events that were too short to be seen. It does not stop as
// long as runs are handed in, which workers do up to a minute later.
func TestIdleRelayCountsAgain(t *testing.T) {
	t.Parallel()
	const begins, never = 30 * time.Minute, 24 * time.Hour
	for name, prepare := range map[string]func(store *empty, began time.Time){
		"an event": func(store *empty, began time.Time) { store.emittedAt = began.Add(begins) },
		"counts": func(store *empty, began time.Time) {
			store.emittedAt, store.countedAt = began.Add(never), began.Add(begins)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { idleRelayCountsAgain(t, prepare) })
		})
	}
}

func idleRelayCountsAgain(t *testing.T, prepare func(store *empty, began time.Time)) {
	t.Helper()
	store := &counted{pages: append(make([]maintenance.Waiting, 2), maintenance.Waiting{EndedOf: 1}, maintenance.Waiting{EndedOf: 1}, maintenance.Waiting{})}
	store.lostAt = time.Now().Add(time.Hour)
	prepare(&store.empty, time.Now())
	relay, err := maintenance.NewRelay(store, make(publishedAt, 1), maintenance.RelayConfig{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- relay.Run(ctx) }()
	var counts [2]int
	for i := range counts {
		<-time.After(29 * time.Minute)
		store.mu.Lock()
		counts[i] = store.counts
		store.mu.Unlock()
	}
	if counts[0] != 7 {
		t.Errorf("without an event the relay counted %d times, want 3 times after the last one that found something", counts[0])
	}
	if counts[1] < counts[0]+20 {
		t.Errorf("afterwards it counted %d times in 28 minutes, want each minute", counts[1]-counts[0])
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
