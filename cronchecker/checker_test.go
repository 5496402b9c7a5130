package cronchecker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// memory is a Store without a database. Its clock is ahead of the program's.
type memory struct {
	ahead time.Duration

	mu          sync.Mutex
	fail        int // so many calls of Load fail
	loads       []time.Time
	batches     []int
	definitions []Definition
	slots       []Slot
}

func (m *memory) Load(context.Context) (Snapshot, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fail > 0 {
		m.fail--
		return Snapshot{}, errors.New("the database is away")
	}
	now := time.Now().Add(m.ahead)
	m.loads = append(m.loads, now)
	return Snapshot{Now: now, Definitions: append([]Definition(nil), m.definitions...)}, nil
}

func (*memory) Prune(context.Context, []CronID, time.Duration) error { return nil }

func (m *memory) Emit(_ context.Context, slots []Slot) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.batches = append(m.batches, len(slots))
	m.slots = append(m.slots, slots...)
	for _, slot := range slots {
		for i := range m.definitions {
			if m.definitions[i].ID == slot.Cron {
				m.definitions[i].LastSlot = slot.At
			}
		}
	}
	return len(slots), nil
}

func newChecker(t *testing.T, store Store, config Config) *Checker {
	t.Helper()
	c, err := New(store, config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// runFor runs a checker for a while of the bubble's time.
func runFor(t *testing.T, c *Checker, d time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	if err := c.Run(ctx); err != nil {
		t.Errorf("Run ended with %v", err)
	}
}

func definition(id CronID, schedule string, missed Missed, startsAt time.Time) Definition {
	return Definition{
		ID: id, Canvas: canvasA, Name: fmt.Sprint("cron ", id), Schedule: schedule, TimeZone: "UTC",
		Missed: missed, Enabled: true, StartsAt: startsAt,
	}
}

// TestRunFollowsTheDatabaseClock has a program whose clock is years, and some
// seconds, off.
func TestRunFollowsTheDatabaseClock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &memory{ahead: 25*365*24*time.Hour + 17*time.Second + 300*time.Millisecond}
		start := time.Now().Add(store.ahead)
		store.definitions = []Definition{definition(1, "every minute", MissedAll, start)}
		runFor(t, newChecker(t, store, Config{}), 5*time.Minute)

		if len(store.loads) != 6 || !store.loads[0].Equal(start) {
			t.Fatalf("checked at %v; want at once and after each of 5 minutes", store.loads)
		}
		for i, at := range store.loads[1:] {
			minute := start.Truncate(time.Minute).Add(time.Duration(i+1) * time.Minute)
			if late := at.Sub(minute); late < 0 || late > time.Second {
				t.Errorf("check %d was %s after the full minute", i+1, late)
			}
			if !store.slots[i].At.Equal(minute) {
				t.Errorf("slot %d is %s, want %s", i, store.slots[i].At, minute)
			}
		}
		if len(store.slots) != 5 {
			t.Errorf("emitted %d slots", len(store.slots))
		}
	})
}

func TestRunOutlivesTheDatabase(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		logs, observed := observer.New(zap.WarnLevel)
		store := &memory{fail: 20}
		store.definitions = []Definition{definition(1, "every hour", MissedLatest, time.Now().Add(-time.Hour))}
		runFor(t, newChecker(t, store, Config{Logger: zap.New(logs)}), time.Hour-time.Second)
		if observed.Len() != 20 {
			t.Errorf("%d warnings, want one per failure", observed.Len())
		}
		if len(store.slots) != 1 {
			t.Errorf("emitted %d slots, want the one that was due", len(store.slots))
		}
	})
}

// TestRunCatchesUpAtOnce has more slots than one pass takes.
func TestRunCatchesUpAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &memory{}
		start := time.Now()
		store.definitions = []Definition{
			definition(1, "every minute", MissedAll, start.Add(-2500*time.Minute)),
			definition(2, "every minute", MissedAll, start.Add(-700*time.Minute)),
		}
		runFor(t, newChecker(t, store, Config{}), time.Second)
		if len(store.slots) != 3200 {
			t.Errorf("emitted %d slots in the first second, want all 3200", len(store.slots))
		}
		for _, size := range store.batches {
			if size > MaxBatch {
				t.Errorf("a batch of %d", size)
			}
		}
		seen := map[string]bool{}
		for _, slot := range store.slots {
			seen[slot.Cron.String()+slot.At.String()] = true
		}
		if len(seen) != 3200 {
			t.Errorf("%d different slots", len(seen))
		}
	})
}

// TestBrokenDefinitionStopsNoOther (I15).
func TestBrokenDefinitionStopsNoOther(t *testing.T) {
	t.Parallel()
	logs, observed := observer.New(zap.ErrorLevel)
	store := &memory{}
	before := time.Now().Add(-2 * time.Hour)
	store.definitions = []Definition{
		definition(1, "0 0 30 2 *", MissedLatest, before),
		definition(2, "every hour", MissedLatest, before),
		definition(3, "every hour", MissedLatest, before),
		definition(4, "every hour", MissedLatest, before),
		definition(5, "every hour", MissedLatest, before),
	}
	store.definitions[1].TimeZone = "Europe/Atlantis"
	store.definitions[2].Name = "new\nline"
	store.definitions[3].Canvas = [16]byte{}
	result, err := newChecker(t, store, Config{Logger: zap.New(logs)}).Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if result.Definitions != 5 || result.Broken != 4 || result.Emitted != 1 || len(store.slots) != 1 || store.slots[0].Cron != 5 {
		t.Errorf("got %+v and %v", result, store.slots)
	}
	for i, want := range []string{"never comes true", "Europe/Atlantis", "control character", "canvas_id"} {
		entry := observed.All()[i]
		if entry.ContextMap()["cron_id"] != CronID(i+1).String() || !strings.Contains(fmt.Sprint(entry.ContextMap()["error"]), want) {
			t.Errorf("log line %d is %v, want %q", i, entry.ContextMap(), want)
		}
	}
}

func TestNewRefusesInvalidConfig(t *testing.T) {
	t.Parallel()
	if _, err := New(nil, Config{}); err == nil {
		t.Error("no store was accepted")
	}
	for field, config := range map[string]Config{
		"Interval":    {Interval: time.Millisecond},
		"PassTimeout": {PassTimeout: -1},
	} {
		if _, err := New(&memory{}, config); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
}
