package model_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"pgregory.net/rapid"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/locktimeout"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/worker"
)

// Few values, and many of them equal, so that what could meet does meet.
var (
	canvases  = []eventqueue.CanvasID{{1}, {2}}
	modules   = []string{"WORKER", "CRON"}
	names     = []string{"mail", "mailing"}
	modifiers = []string{"_", "bulk"}
	keys      = []string{"", "", "", "once", "b", "Ä"}
	orderings = []string{"", "", "line", "line", "Ä"}

	drawnPairs = []map[string]string{nil, nil, {}, {"user": "ada"}, {"zone": "ü\"<&>", "b": "", "a.long-key_0": "1"}}
	parents    = []eventqueue.EventID{0, 0, 1, 1 << 62}

	// durations are delays, intervals, timeouts and steps of the clock alike.
	// MaxRequeue and its neighbours are among them.
	durations = []time.Duration{
		0, time.Microsecond, 1500 * time.Nanosecond, 5 * time.Second, 10 * time.Second, 20 * time.Second, 30 * time.Second,
		time.Minute, eventqueue.MaxRequeue - time.Microsecond, eventqueue.MaxRequeue,
		eventqueue.MaxRequeue + time.Microsecond, eventqueue.MaxRequeue + 10*time.Second, time.Hour, 20 * time.Hour,
	}
	lockTimeouts = []time.Duration{10 * time.Second, 30 * time.Second, locktimeout.Default}
	lostAfters   = []time.Duration{time.Microsecond, 5 * time.Second, 10 * time.Second, time.Minute}
	claimIDs     = []eventqueue.ClaimID{0, 1, 2, eventqueue.WorkerNumber(7).Claim(3)}
	limits       = []int{1, 2, 3, 5, 1000}
)

// longAgo is a time that not every database can hold.
var longAgo = time.Date(1, time.January, 2, 0, 0, 0, 0, time.UTC)

func pick[T any](t *rapid.T, label string, from []T) T {
	return rapid.SampledFrom(from).Draw(t, label)
}

// refusedText is what a text column does not take.
const refusedText = "nul\x00"

// drawEvents draws events for a transaction of their own, or for the one that is
// open, for whose keys everybody else would wait.
func (w *world) drawEvents(t *rapid.T, inTx bool) []eventqueue.NewEvent {
	events := make([]eventqueue.NewEvent, rapid.IntRange(1, 4).Draw(t, "events"))
	for i := range events {
		e := eventqueue.NewEvent{
			Canvas: pick(t, "canvas", canvases), Module: pick(t, "module", modules), Name: pick(t, "name", names),
			Modifier: pick(t, "modifier", modifiers), Value: json.RawMessage(fmt.Sprintf(`{"n":%d}`, i)),
		}
		switch rapid.IntRange(0, 3).Draw(t, "due") {
		case 0:
			e.Delay = pick(t, "delay", durations)
		case 1:
			e.DelayUntil = w.now.Add(pick(t, "until", durations))
		case 2:
			e.DelayUntil = pick(t, "past", []time.Time{w.now.Add(-pick(t, "ago", durations)), longAgo})
		}
		key := eventqueue.UniqueKey{Canvas: e.Canvas, Key: pick(t, "key", keys)}
		if key.Key != "" && (inTx || !w.keys[key]) {
			e.UniqueKey, e.UniqueFor = key.Key, pick(t, "uniqueFor", durations)
		}
		e.OrderingKey = pick(t, "orderingKey", orderings)
		e.Attributes = pick(t, "attributes", drawnPairs)
		e.ParentID = pick(t, "parent", parents)
		events[i] = e
	}
	if rapid.IntRange(0, 39).Draw(t, "refused") == 39 {
		last := &events[len(events)-1]
		last.Value = json.RawMessage(`"` + refusedText + `"`)
		last.UniqueKey, last.UniqueFor = "", 0 // a repeat within the batch is not sent
	}
	return events
}

// drawIDs draws different ids: of events that are there, that were, and that never
// were.
func (w *world) drawIDs(t *rapid.T, label string) []eventqueue.EventID {
	return rapid.SliceOfNDistinct(rapid.Custom(w.drawID), 1, min(8, int(w.lastID)+2), rapid.ID[eventqueue.EventID]).Draw(t, label)
}

func (w *world) drawID(t *rapid.T) eventqueue.EventID {
	rows := w.mem.Events()
	if len(rows) > 0 && rapid.IntRange(0, 9).Draw(t, "there") > 0 {
		return rows[rapid.IntRange(0, len(rows)-1).Draw(t, "row")].ID
	}
	return eventqueue.EventID(rapid.Int64Range(1, int64(w.lastID)+2).Draw(t, "id"))
}

func (w *world) drawHandlers(t *rapid.T) eventqueue.HandlerSet {
	var handlers eventqueue.HandlerSet
	if rapid.IntRange(0, 3).Draw(t, "knowsAll") > 0 {
		for _, module := range modules {
			for _, name := range names {
				for _, modifier := range modifiers {
					handlers.Everywhere = append(handlers.Everywhere, eventqueue.HandlerKey{Module: module, Name: name, Modifier: modifier})
				}
			}
		}
		return handlers
	}
	for range rapid.IntRange(0, 3).Draw(t, "everywhere") {
		handlers.Everywhere = append(handlers.Everywhere, drawKey(t))
	}
	for range rapid.IntRange(0, 3).Draw(t, "onCanvas") {
		handlers.OnCanvas = append(handlers.OnCanvas, eventqueue.CanvasHandler{Canvas: pick(t, "canvas", canvases), Key: drawKey(t)})
	}
	return handlers
}

func drawKey(t *rapid.T) eventqueue.HandlerKey {
	return eventqueue.HandlerKey{Module: pick(t, "module", modules), Name: pick(t, "name", names), Modifier: pick(t, "modifier", modifiers)}
}

func drawScope(t *rapid.T) eventqueue.Scope {
	return eventqueue.Scope{Canvas: pick(t, "canvas", canvases), Module: pick(t, "module", modules), Name: pick(t, "name", names)}
}

// drawClaim draws a claim that holds, one that did, or one that was never given.
func (w *world) drawClaim(t *rapid.T) worker.Claim {
	if len(w.claims) == 0 || rapid.IntRange(0, 9).Draw(t, "guess") == 9 {
		return worker.Claim{Event: w.drawID(t), Attempt: rapid.Int32Range(0, 3).Draw(t, "attempt"), ID: pick(t, "claimID", claimIDs)}
	}
	// The latest are the ones that probably hold.
	recent := w.claims[max(0, len(w.claims)-6):]
	if rapid.IntRange(0, 3).Draw(t, "old") == 3 {
		recent = w.claims
	}
	return pick(t, "claim", recent)
}

var endLabels = []machine.Label{
	machine.ExecutesToCompletion, machine.RetryTooMany, machine.FailedForGood,
	machine.RetryAllowed, machine.Snoozed, machine.Released, machine.OverLimit,
}

// drawClaims draws claims of different events.
func (w *world) drawClaims(t *rapid.T) []worker.Claim {
	var claims []worker.Claim
	seen := map[eventqueue.EventID]bool{}
	for range rapid.IntRange(1, 5).Draw(t, "claims") {
		if c := w.drawClaim(t); !seen[c.Event] {
			seen[c.Event] = true
			claims = append(claims, c)
		}
	}
	return claims
}

// The errors that an end may have: lastErrors also such that the database
// refuses.
var (
	storableErrors = []string{"broken", "a", "b"}
	lastErrors     = slices.Concat(storableErrors, storableErrors, storableErrors, []string{refusedText})
)

func (w *world) drawCompletions(t *rapid.T, errors []string) []worker.Completion {
	claims := w.drawClaims(t)
	unique := map[eventqueue.EventID]bool{}
	for _, r := range w.mem.Events() {
		unique[r.ID] = r.UniqueFor > 0
	}
	completions := make([]worker.Completion, len(claims))
	for i, c := range claims {
		completion := worker.Completion{Claim: c, Label: pick(t, "label", endLabels), Unique: unique[c.Event],
			Grouped: w.grouped[c], Passes: rapid.Bool().Draw(t, "passes")}
		switch completion.Label {
		case machine.RetryAllowed, machine.Snoozed, machine.OverLimit:
			completion.Delay = pick(t, "delay", durations)
		}
		switch completion.Label {
		case machine.RetryAllowed, machine.RetryTooMany, machine.FailedForGood:
			completion.LastError, completion.Duration = pick(t, "lastError", errors), pick(t, "duration", durations)
			completion.Unrecorded = rapid.IntRange(0, 3).Draw(t, "unrecorded") == 3
		}
		completions[i] = completion
	}
	return completions
}

// drawPlaces gives some of the ends the places of their rows. Those that it gives
// the place of a row of no other end are misled, and need not be written.
func (w *world) drawPlaces(t *rapid.T, completions []worker.Completion) (placed, misled []worker.Completion) {
	places := map[eventqueue.EventID]worker.RowID{}
	rows, err := w.pool.Query(w.ctx, `SELECT id, ctid FROM events_v2`)
	if err != nil {
		t.Fatal(err)
	}
	var id eventqueue.EventID
	var at pgtype.TID
	if _, err := pgx.ForEachRow(rows, []any{&id, &at}, func() error {
		places[id] = worker.RowID(at.BlockNumber)<<16 | worker.RowID(at.OffsetNumber)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for _, completion := range completions {
		switch rapid.IntRange(0, 3).Draw(t, "place") {
		case 0:
			completion.RowID = places[completion.Event]
		case 1:
			other := w.drawID(t)
			named := slices.ContainsFunc(completions, func(e worker.Completion) bool { return e.Event == other })
			if places[other] != 0 && !named && completion.LastError != refusedText {
				completion.RowID = places[other]
				misled = append(misled, completion)
				continue
			}
		}
		placed = append(placed, completion)
	}
	return placed, misled
}

// drawTime draws a time that an operation may be given: now, or one that was
// returned before.
func (w *world) drawTime(t *rapid.T) time.Time {
	if len(w.times) > 0 && rapid.Bool().Draw(t, "earlier") {
		return pick(t, "time", w.times)
	}
	return w.now
}
