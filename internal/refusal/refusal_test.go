package refusal_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"eventsv2/internal/refusal"
)

// TestHalveLeavesOutEveryRefusedItem: whichever they are, all others are written, once each.
func TestHalveLeavesOutEveryRefusedItem(t *testing.T) {
	t.Parallel()
	for range 1000 {
		items := make([]int, rand.IntN(30))
		var bad, written []int
		for i := range items {
			if items[i] = i; rand.IntN(3) == 0 {
				bad = append(bad, i)
			}
		}
		cut := rand.IntN(len(items) + 1)
		refused, err := refusal.Halve(func(some []int) error {
			if i := slices.IndexFunc(some, func(i int) bool { return slices.Contains(bad, i) }); i >= 0 && some[i]%2 == 0 {
				return &pgconn.PgError{Code: "42501"}
			} else if i >= 0 {
				return fmt.Errorf("emit: %w", &refusal.Emit{Err: errors.New("not this one")})
			}
			written = append(written, some...)
			return nil
		}, items[:cut], items[cut:])
		if err != nil {
			t.Fatal(err)
		}
		got := written
		for _, r := range refused {
			if !slices.Contains(bad, r.Item) {
				t.Errorf("%d was refused, which is not one of %v", r.Item, bad)
			}
			got = append(got, r.Item)
		}
		if slices.Sort(got); !slices.Equal(got, items) {
			t.Errorf("of %d items, %v bad, these were written or refused: %v", len(items), bad, got)
		}
	}
}

// TestHalveBlamesNothingForARefusalOfAll, after a statement for each halving and one for nothing.
func TestHalveBlamesNothingForARefusalOfAll(t *testing.T) {
	t.Parallel()
	statements := 0
	refused, err := refusal.Halve(func([]int) error {
		statements++
		return &pgconn.PgError{Code: "42501"}
	}, make([]int, 1024))
	if err == nil || len(refused) != 0 || statements != 12 {
		t.Errorf("after %d statements: %v, %v", statements, refused, err)
	}
}

// TestHalveAsksAboutTheTableOnce: nothing is written to find that out once anything was, or an item has been blamed.
func TestHalveAsksAboutTheTableOnce(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		bad  []int
		asks int
	}{
		"the first ones":         {[]int{0, 1, 5}, 1},
		"after one that is good": {[]int{2, 3, 5}, 0},
	} {
		asks := 0
		refused, err := refusal.Halve(func(some []int) error {
			if len(some) == 0 {
				asks++
			}
			if slices.ContainsFunc(some, func(i int) bool { return slices.Contains(c.bad, i) }) {
				return &pgconn.PgError{Code: "23514"}
			}
			return nil
		}, []int{0, 1, 2, 3, 4, 5, 6, 7})
		if err != nil || len(refused) != len(c.bad) || asks != c.asks {
			t.Errorf("%s: %d statements for nothing, want %d; %v, %v", name, asks, c.asks, refused, err)
		}
	}
}

// TestHalveEndsAtAnyOtherFailure, with what was refused before.
func TestHalveEndsAtAnyOtherFailure(t *testing.T) {
	t.Parallel()
	down := errors.New("down")
	refused, err := refusal.Halve(func(some []int) error {
		switch {
		case slices.Contains(some, 0):
			return &pgconn.PgError{Code: "23514"}
		case slices.Contains(some, 3):
			return down
		}
		return nil
	}, []int{0, 1, 2, 3, 4})
	if !errors.Is(err, down) || len(refused) != 1 || refused[0].Item != 0 {
		t.Errorf("%v, %v", refused, err)
	}
}

// TestRefusedRowIsRetriedAloneAtGrowingIntervals, and is a row like any other once it was written.
func TestRefusedRowIsRetriedAloneAtGrowingIntervals(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var rows refusal.Rows[int]
		var waits []time.Duration
		for range 12 {
			wait := rows.Put(2, refusal.MaxWait)
			waits = append(waits, wait)
			together, alone, waiting := rows.Part([]int{1, 2, 3})
			if !slices.Equal(together, []int{1, 3}) || len(alone) != 0 || waiting[2] == 0 || !slices.Equal(rows.Waiting(), []int{2}) {
				t.Fatalf("after it was refused: %v, %v, %v", together, alone, waiting)
			}
			<-time.After(wait)
			together, alone, waiting = rows.Part([]int{1, 2, 3})
			if !slices.Equal(together, []int{1, 3}) || !slices.Equal(alone, []int{2}) || len(waiting) != 0 || len(rows.Waiting()) != 0 {
				t.Fatalf("after it has waited: %v, %v, %v", together, alone, waiting)
			}
			if rows.Empty() {
				t.Fatal("it is not recorded any more")
			}
		}
		if !slices.IsSorted(waits) || waits[0] != time.Second || waits[len(waits)-1] != refusal.MaxWait {
			t.Errorf("it has waited %v", waits)
		}
		<-time.After(2 * refusal.MaxWait)
		if !rows.Empty() {
			t.Error("a row that nobody tries is recorded for ever")
		}
		rows.Put(2, refusal.MaxWait)
		rows.Remove([]int{2})
		if together, _, _ := rows.Part([]int{2}); !rows.Empty() || len(together) != 1 {
			t.Error("a row that was written is recorded")
		}
	})
}

// TestReportLogsEachRowAndTheRest, and only what is no Error remains one for the caller.
func TestReportLogsEachRowAndTheRest(t *testing.T) {
	t.Parallel()
	core, logs := observer.New(zap.WarnLevel)
	other := errors.New("no connection")
	if err := refusal.Report(zap.New(core), other); !errors.Is(err, other) || logs.Len() > 0 {
		t.Errorf("of another error %v is left, and the log says %v", err, logs.All())
	}
	row := refusal.Row{Event: time.Second, Err: errors.New("bad row")}
	if err := refusal.Report(zap.New(core), &refusal.Error{Rows: []refusal.Row{row}, Advance: other, Rest: errors.New("no answer")}); err != nil {
		t.Error(err)
	}
	var said []any
	for _, line := range logs.TakeAll() {
		said = append(said, line.ContextMap()["error"])
	}
	if !slices.Equal(said, []any{"bad row", "no connection", "no answer"}) {
		t.Errorf("the log says %v", said)
	}
}

// TestRefusedRowIsNotUnanswered: a refused row is no statement without its answer, and what an Error has left undone may be one.
func TestRefusedRowIsNotUnanswered(t *testing.T) {
	t.Parallel()
	lost := errors.New("cut off")
	for name, c := range map[string]struct{ err, want error }{
		"none":          {nil, nil},
		"any other":     {lost, lost},
		"a refused row": {&refusal.Error{Rows: []refusal.Row{{}}}, nil},
		"and the rest":  {&refusal.Error{Rows: []refusal.Row{{}}, Rest: lost}, lost},
		"only the rest": {fmt.Errorf("taken: %w", &refusal.Error{Rest: lost}), lost},
	} {
		if got := refusal.Unanswered(c.err); !errors.Is(got, c.want) {
			t.Errorf("%s: %v", name, got)
		}
	}
}
