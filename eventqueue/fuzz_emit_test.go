package eventqueue_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/test/rig"
	"eventsv2/test/testenv"
)

// fuzzedBytes is the largest value in these tests, so that the limit is found.
const fuzzedBytes = 512

// century is the largest limit for delays.
const century = 100 * 366 * 24 * time.Hour

// nobody is a publisher that drops all notifications.
type nobody struct{}

func (nobody) Publish(context.Context, []eventqueue.Notification) error { return nil }

// FuzzEmit hands in any event, as the second of two. Either it is refused with an
// error that names a field which is wrong with it, and nothing is written; or
// both are there, byte for byte (I8) and not due early (I6).
func FuzzEmit(f *testing.F) {
	for _, e := range emitSeeds() {
		f.Add(e.Canvas[:], e.Module, e.Name, e.Modifier, []byte(e.Value), int64(e.Delay), e.DelayUntil.Unix(), int64(e.DelayUntil.Nanosecond()), int64(0))
	}
	canvas := rig.Canvas // a copy, since fuzzing may write into it
	for _, d := range rig.EdgesOfDelays() {
		until := time.Time{}.Unix()
		f.Add(canvas[:], "m", "n", "_", []byte(`1`), d, until, int64(0), int64(math.MaxInt64))
		f.Add(canvas[:], "m", "n", "_", []byte(`1`), int64(0), d, d, int64(math.MaxInt64))
		f.Add(canvas[:], "m", "n", "_", []byte(`1`), int64(0), -d, -d, int64(0))
	}
	db := table{pgstore.New(testenv.Pool(f))} // of all inputs
	f.Fuzz(func(t *testing.T, on []byte, module, name, modifier string, value []byte, delay, seconds, nanos, maxDelay int64) {
		e := eventqueue.NewEvent{Module: module, Name: name, Modifier: modifier, Value: value,
			Delay: time.Duration(delay), DelayUntil: time.Unix(seconds, nanos)}
		copy(e.Canvas[:], on)
		limits := eventqueue.Limits{MaxValueBytes: fuzzedBytes, MaxDelay: time.Duration(maxDelay)}
		if sane := limits.MaxDelay >= 0 && limits.MaxDelay <= century; (limits.Validate() == nil) != sane {
			t.Fatalf("a MaxDelay of %s: %v, want an error outside 0 to %s", limits.MaxDelay, limits.Validate(), century)
		}
		limits.MaxDelay = min(max(limits.MaxDelay, 0), century)
		if atTheLimit(&e, limits) {
			return // whether this is refused depends on the moment
		}
		emitFuzzed(t, db, &e, limits)
	})
}

func emitFuzzed(t *testing.T, db table, e *eventqueue.NewEvent, limits eventqueue.Limits) {
	t.Helper()
	queue, err := eventqueue.New(db, nobody{}, eventqueue.QueueConfig{Limits: limits})
	if err != nil {
		t.Fatal(err)
	}
	good := eventqueue.NewEvent{Canvas: rig.Canvas, Module: "m", Name: "n", Modifier: "_", Value: json.RawMessage(`1`)}
	before := db.last(t)
	ids, err := queue.EmitMany(t.Context(), []eventqueue.NewEvent{good, *e})
	bad := badFields(e, limits)
	if err != nil {
		var invalid *eventqueue.InvalidError
		if !errors.As(err, &invalid) || invalid.Index != 1 || !bad[invalid.Field] || invalid.Problem == "" {
			t.Fatalf("%+v: emit fails with %v, want an *InvalidError of event 1 that names one of %v", e, err, bad)
		}
		if after := db.last(t); after != before {
			t.Fatalf("%+v was refused, and events up to %s were written", e, after)
		}
		return
	}
	if len(bad) > 0 {
		t.Fatalf("%+v was accepted, though it has %v", e, bad)
	}
	first := db.row(t, ids[0])
	if first.value != `1` {
		t.Fatalf("the event beside %+v is %+v", e, first)
	}
	second := db.row(t, ids[1])
	if second.canvas != e.Canvas || second.HandlerKey != e.Handler() || second.value != string(e.Value) {
		t.Fatalf("%+v became %+v", e, second)
	}
	checkDue(t, e, second)
}

// checkDue allows for the database's unit, and never downwards.
func checkDue(t *testing.T, e *eventqueue.NewEvent, row row) {
	t.Helper()
	want := row.enqueuedAt.Add(e.Delay)
	if !e.DelayUntil.IsZero() && e.DelayUntil.After(want) {
		want = e.DelayUntil
	}
	if row.delayUntil.Before(want) || !row.delayUntil.Before(want.Add(time.Microsecond)) {
		t.Fatalf("%+v, emitted at %s, is due at %s: want %s, rounded up to a microsecond", e, row.enqueuedAt, row.delayUntil, want)
	}
}

// row is what an emit has written.
type row struct {
	eventqueue.HandlerKey
	canvas                 eventqueue.CanvasID
	value                  string
	delayUntil, enqueuedAt time.Time
}

// table is a database that emitted events can be read from.
type table struct{ *pgstore.Store }

func (p table) row(t *testing.T, id eventqueue.EventID) (r row) {
	t.Helper()
	err := p.Pool().QueryRow(t.Context(), `
SELECT canvas_id, module, name, modifier, value, delay_until, enqueued_at FROM events_v2 WHERE id = $1`, id).
		Scan((*[16]byte)(&r.canvas), &r.Module, &r.Name, &r.Modifier, &r.value, &r.delayUntil, &r.enqueuedAt)
	if err != nil {
		t.Fatalf("read event %s: %v", id, err)
	}
	return r
}

// last is the highest id given away.
func (p table) last(t *testing.T) (id eventqueue.EventID) {
	t.Helper()
	if err := p.Pool().QueryRow(t.Context(), `SELECT coalesce(max(id), 0) FROM events_v2`).Scan(&id); err != nil {
		t.Fatal(err)
	}
	return id
}

// badFields says what is wrong with an event, field by field. It shares nothing
// with the code under test.
func badFields(e *eventqueue.NewEvent, limits eventqueue.Limits) map[string]bool {
	maxDelay := limits.MaxDelay
	if maxDelay == 0 {
		maxDelay = 366 * 24 * time.Hour
	}
	bad := map[string]bool{
		"canvas_id": e.Canvas == eventqueue.CanvasID{},
		"module":    badName(e.Module), "name": badName(e.Name), "modifier": badName(e.Modifier),
		"delay_until": e.Delay < 0 || e.Delay > maxDelay || e.Delay != 0 && !e.DelayUntil.IsZero() ||
			e.DelayUntil.After(time.Now().Add(maxDelay)),
		"value": len(e.Value) > limits.MaxValueBytes || !json.Valid(e.Value) || !utf8.Valid(e.Value) || badEscape(string(e.Value)),
	}
	for field, is := range bad {
		if !is {
			delete(bad, field)
		}
	}
	return bad
}

// atTheLimit tells whether a time is so near to the limit that a moment decides.
func atTheLimit(e *eventqueue.NewEvent, limits eventqueue.Limits) bool {
	var sooner, later eventqueue.NewEvent
	sooner, later = *e, *e
	sooner.DelayUntil, later.DelayUntil = e.DelayUntil.Add(-time.Hour), e.DelayUntil.Add(time.Hour)
	return badFields(&sooner, limits)["delay_until"] != badFields(&later, limits)["delay_until"]
}

var controlCharacter = regexp.MustCompile(`[\x00-\x1f\x7f-\x{9f}]`)

// badName tells whether a part of a handler key cannot be used.
func badName(s string) bool {
	return s == "" || len(s) > 255 || !utf8.ValidString(s) || controlCharacter.MatchString(s)
}

var (
	surrogatePair = regexp.MustCompile(`\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}`)
	noCharacter   = regexp.MustCompile(`\\u(0000|[dD][89a-fA-F][0-9a-fA-F]{2})`)
)

// badEscape tells whether JSON names a character that there is not, or U+0000.
func badEscape(text string) bool {
	text = strings.ReplaceAll(text, `\\`, "-")
	return noCharacter.MatchString(surrogatePair.ReplaceAllString(text, "-"))
}

// emitSeeds are events on either side of every rule.
func emitSeeds() []eventqueue.NewEvent {
	good := eventqueue.NewEvent{Canvas: rig.Canvas, Module: "m", Name: "n", Modifier: "_", Value: json.RawMessage(`1`)}
	with := func(change func(e *eventqueue.NewEvent)) eventqueue.NewEvent { e := good; change(&e); return e }
	seeds := []eventqueue.NewEvent{good, with(func(e *eventqueue.NewEvent) { e.Canvas = eventqueue.CanvasID{} })}
	for _, value := range []string{
		"", `null`, ` {"a": [1e400, -0.0, "ü😀\t\\u0000"]} `, `"\ud83d\ude00"`, `"\ud83d"`, `"\ude00\ud83d"`, `"\u0000"`, `"\\u0000\\\ud800"`,
		"\"\ufffd\ufeff\u2028\"", "\"\xed\xa0\x80\"", "\"\xff\"", "\"\x7f\"", `{"a":1,"a":2}`, `1 2`, `'1'`,
		strings.Repeat(" ", fuzzedBytes-1) + `1`, strings.Repeat(" ", fuzzedBytes) + `1`, strings.Repeat("[", 200) + strings.Repeat("]", 200),
	} {
		seeds = append(seeds, with(func(e *eventqueue.NewEvent) { e.Value = json.RawMessage(value) }))
	}
	for _, name := range nameSeeds() {
		seeds = append(seeds,
			with(func(e *eventqueue.NewEvent) { e.Module = name }),
			with(func(e *eventqueue.NewEvent) { e.Name = name }),
			with(func(e *eventqueue.NewEvent) { e.Modifier = name }))
	}
	return seeds
}
