package ndjson_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/ndjson"
)

const canvas = "7f0c2a4e-5b1d-4c8e-9a36-2d1f0e4b8c71"

// line writes an event with the given value and further fields.
func line(value, more string) string {
	return fmt.Sprintf(`{"canvas_id":%q,"module":"WORKER","name":"n","modifier":"_","value":%s%s}`, canvas, value, more)
}

func readAll(text string) ([]eventqueue.NewEvent, []int, error) {
	var events []eventqueue.NewEvent
	var lines []int
	err := ndjson.Read(strings.NewReader(text), "in.ndjson", eventqueue.Limits{}, func(line int, e eventqueue.NewEvent) error {
		events, lines = append(events, e), append(lines, line)
		return nil
	})
	return events, lines, err
}

func TestValuesAreUnchangedByteForByte(t *testing.T) {
	t.Parallel()
	for _, value := range []string{
		`{}`, `null`, `"text"`, `1e400`, `-0`, `0.1000000000000000055`, `12345678901234567890123`,
		`{ "b" : 1,"a":[ 1 , 2 ], "a" : 3 }`, "{\t\"x\":\t1}", `"\u00e9 é \ud83d\ude00 <&> \/"`,
		`"` + strings.Repeat("x", 200<<10) + `"`,
	} {
		events, _, err := readAll(line(value, "") + "\n")
		if err != nil {
			t.Errorf("%.60s: %v", value, err)
			continue
		}
		if got := string(events[0].Value); got != value {
			t.Errorf("value: got %.60q, want %.60q", got, value)
		}
	}
}

func TestFieldsAreReadWithTheirLine(t *testing.T) {
	t.Parallel()
	text := "\n" + line("1", `,"delay":"90s"`) + "\r\n \n" +
		`{"value":2,"modifier":"é","name":"a b","module":"W\u0041","canvas_id":"` + strings.ToUpper(canvas) + `","delay_until":"2020-01-31T09:00:00+01:00"}`
	events, lines, err := readAll(text)
	if err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(lines) != "[2 4]" {
		t.Errorf("lines: got %v, want [2 4]", lines)
	}
	if events[0].Delay != 90*time.Second || !events[0].DelayUntil.IsZero() {
		t.Errorf("delay: got %v and %v, want 90s alone", events[0].Delay, events[0].DelayUntil)
	}
	second := events[1]
	if want := time.Date(2020, 1, 31, 8, 0, 0, 0, time.UTC); !second.DelayUntil.Equal(want) {
		t.Errorf("delay_until: got %v, want %v", second.DelayUntil, want)
	}
	if key := second.Handler().String(); key != "WA/a b/é" {
		t.Errorf("handler: got %s", key)
	}
	if second.Canvas.String() != canvas {
		t.Errorf("canvas: got %s", second.Canvas)
	}
}

func TestKeysAreRead(t *testing.T) {
	t.Parallel()
	events, _, err := readAll(line("1", `,"unique_key":"k","unique_for":"24h","ordering_key":"o"`) + "\n" +
		line("2", `,"unique_key":"k","unique_mode":"replace","max_wait":"1m","priority":"low"`))
	if err != nil {
		t.Fatal(err)
	}
	first, second := events[0], events[1]
	if first.UniqueKey != "k" || first.UniqueMode != "" || first.UniqueFor != 24*time.Hour || first.OrderingKey != "o" || first.Priority != "" {
		t.Errorf("the keys of the first are %+v", first)
	}
	if second.UniqueKey != "k" || second.UniqueMode != "replace" || second.MaxWait != time.Minute || second.Priority != "low" {
		t.Errorf("the keys of the second are %+v", second)
	}
}

func TestAttributesAreRead(t *testing.T) {
	t.Parallel()
	events, _, err := readAll(line("1", `,"attributes":{"user":"\u0061da","empty":""}`) + "\n" + line("2", `,"attributes":{}`))
	if err != nil {
		t.Fatal(err)
	}
	if of := events[0].Attributes; len(of) != 2 || of["user"] != "ada" || of["empty"] != "" || len(events[1].Attributes) != 0 {
		t.Errorf("the attributes are %q and %q", of, events[1].Attributes)
	}
}

func TestValueIsNotOverwrittenByTheNextLine(t *testing.T) {
	t.Parallel()
	events, _, err := readAll(line(`"first"`, "") + "\n" + line(`"second"`, "") + "\n")
	if err != nil {
		t.Fatal(err)
	}
	if string(events[0].Value) != `"first"` {
		t.Errorf("the first value was overwritten: %s", events[0].Value)
	}
}

func TestMistakesNameLineAndField(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, text, field, want string }{
		{"not JSON", `{"canvas_id":}`, "", "is not JSON, at byte 14"},
		{"cut off", `{"canvas_id":"x"`, "", "is not JSON"},
		{"two objects", line("1", "") + line("2", ""), "", "is not JSON"},
		{"no object", `[1]`, "", "no object"},
		{"unknown key", line("1", `,"delay_untli":"x"`), "delay_untli", "not a key"},
		{"other spelling", strings.Replace(line("1", ""), "name", "Name", 1), "Name", "not a key"},
		{"key twice", line("1", `,"value":2`), "value", "twice"},
		{"no value", strings.Replace(line("1", ""), `,"value":1`, "", 1), "value", "missing"},
		{"no canvas", `{"module":"W","name":"n","modifier":"_","value":1}`, "canvas_id", "missing"},
		{"bad canvas", strings.Replace(line("1", ""), canvas, "1234", 1), "canvas_id", "not a uuid"},
		{"zero canvas", strings.Replace(line("1", ""), canvas, "00000000-0000-0000-0000-000000000000", 1), "canvas_id", "missing"},
		{"number as name", strings.Replace(line("1", ""), `"n"`, `7`, 1), "name", "is a number"},
		{"null as name", strings.Replace(line("1", ""), `"n"`, `null`, 1), "name", "is null"},
		{"empty name", strings.Replace(line("1", ""), `"n"`, `""`, 1), "name", "is empty"},
		{"control character", strings.Replace(line("1", ""), `"n"`, `"a\u0000"`, 1), "name", "control character"},
		{"half a surrogate in a name", strings.Replace(line("1", ""), `"n"`, `"\ud800\ufffd"`, 1), "name", "surrogate"},
		{"no UTF-8 in a name", strings.Replace(line("1", ""), `"n"`, "\"\xff\"", 1), "name", "not valid UTF-8"},
		{"long name", strings.Replace(line("1", ""), `"n"`, `"`+strings.Repeat("n", 256)+`"`, 1), "name", "256 bytes"},
		{"zero byte", line(`"\u0000"`, ""), "value", `\u0000`},
		{"half a surrogate", line(`"\udc00"`, ""), "value", "surrogate"},
		{"no UTF-8", line("\"\xff\"", ""), "value", "not valid UTF-8"},
		{"large value", line(`"`+strings.Repeat("x", 256<<10)+`"`, ""), "value", "the limit is 262144"},
		{"bad delay", line("1", `,"delay":"soon"`), "delay", "not a duration"},
		{"delay as number", line("1", `,"delay":5`), "delay", "is a number"},
		{"negative delay", line("1", `,"delay":"-1s"`), "delay", "negative"},
		{"long delay", line("1", `,"delay":"9000h"`), "delay", "limit"},
		{"bad time", line("1", `,"delay_until":"tomorrow"`), "delay_until", "not a time"},
		{"far time", line("1", `,"delay_until":"2999-01-01T00:00:00Z"`), "delay_until", "limit"},
		{"attributes as text", line("1", `,"attributes":"user=ada"`), "attributes", "is a text: write an object"},
		{"no attributes", line("1", `,"attributes":null`), "attributes", "is null: write an object"},
		{"a number as attribute", line("1", `,"attributes":{"n":7}`), "attributes", `has at "n" what is a number`},
		{"an attribute twice", line("1", `,"attributes":{"a":"1","b":"2","\u0061":"3"}`), "attributes", `has "a" twice`},
		{"a surrogate in an attribute", line("1", `,"attributes":{"a":"\ud800"}`), "attributes", "surrogate"},
		{"a key in upper case", line("1", `,"attributes":{"A":"1"}`), "attributes", `has the key "A"`},
		{"NUL in an attribute", line("1", `,"attributes":{"a":"\u0000"}`), "attributes", "U+0000"},
		{"no unique key", line("1", `,"unique_key":""`), "unique_key", "is empty"},
		{"no unique mode", line("1", `,"unique_key":"k","unique_mode":""`), "unique_mode", "is empty"},
		{"no ordering key", line("1", `,"ordering_key":""`), "ordering_key", "is empty"},
		{"no priority", line("1", `,"priority":""`), "priority", "is empty: leave it out for an event of normal priority"},
		{"unknown priority", line("1", `,"priority":"High"`), "priority", `is "High": use high, normal or low`},
		{"priority as a number", line("1", `,"priority":1`), "priority", "is a number"},
		{"unknown mode", line("1", `,"unique_key":"k","unique_mode":"sometimes"`), "unique_mode", "use until_end, until_start or replace"},
		{"mode without a key", line("1", `,"unique_mode":"replace"`), "unique_key", "is missing"},
		{"bad bound", line("1", `,"unique_key":"k","unique_mode":"replace","max_wait":"soon"`), "max_wait", "not a duration"},
		{"bound of another mode", line("1", `,"unique_key":"k","max_wait":"1m"`), "max_wait", "goes with the mode replace only"},
		{"bad time after the end", line("1", `,"unique_key":"k","unique_for":"soon"`), "unique_for", "not a duration"},
		{"both delays", line("1", `,"delay":"1s","delay_until":"2030-01-01T00:00:00Z"`), "delay", "together"},
		{"long line", strings.Repeat(" ", 2<<20), "", "longer than"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			events, _, err := readAll(line("0", "") + "\n" + c.text + "\n")
			var at *ndjson.Error
			if !errors.As(err, &at) {
				t.Fatalf("got %v, want an *Error", err)
			}
			if len(events) != 1 || at.Line != 2 || at.Field != c.field || !strings.Contains(at.Problem, c.want) {
				t.Errorf("got %d events and line %d, field %q, %s; want 1, 2, %q, …%s…",
					len(events), at.Line, at.Field, at.Problem, c.field, c.want)
			}
			if !strings.HasPrefix(err.Error(), "in.ndjson:2: "+c.field) {
				t.Errorf("the text does not begin with the place: %v", err)
			}
		})
	}
}

func TestLiteralReplacementCharactersAreAccepted(t *testing.T) {
	t.Parallel()
	events, _, err := readAll(strings.Replace(line("1", ""), `"n"`, `"\ufffd\uFFFD`+"\uFFFD"+`\\ufffd"`, 1))
	if err != nil {
		t.Fatal(err)
	}
	if want := "\uFFFD\uFFFD\uFFFD\\ufffd"; events[0].Name != want {
		t.Errorf("name: got %q, want %q", events[0].Name, want)
	}
}

func TestErrorsOfReaderAndCallbackAreReturned(t *testing.T) {
	t.Parallel()
	stop := errors.New("stop")
	calls := 0
	yield := func(int, eventqueue.NewEvent) error { calls++; return stop }
	text := line("1", "") + "\n" + line("2", "") + "\n"
	if err := ndjson.Read(strings.NewReader(text), "x", eventqueue.Limits{}, yield); !errors.Is(err, stop) || calls != 1 {
		t.Errorf("yield's error: got %v after %d calls, want it as it is after 1", err, calls)
	}
	broken := io.MultiReader(strings.NewReader("\n"), iotest.ErrReader(stop))
	err := ndjson.Read(broken, "x", eventqueue.Limits{}, yield)
	if !errors.Is(err, stop) || !strings.HasPrefix(err.Error(), "x:2: read: ") {
		t.Errorf("the reader's error: got %v", err)
	}
	if err := ndjson.Read(strings.NewReader(text), "x", eventqueue.Limits{MaxValueBytes: -1}, yield); err == nil {
		t.Error("limits that make no sense were taken")
	}
}

// FuzzRead holds the reader to its guarantees: an accepted line is an event that emit
// accepts, with the same bytes as in the text; a refused one is an *Error of that line.
func FuzzRead(f *testing.F) {
	f.Add([]byte(line(`{"a":1e400}`, "")))
	f.Add([]byte(line(`"\ud83d\ude00"`, `,"delay":"1h"`)))
	f.Add([]byte(`{"canvas_id":"","canvas_id":1}`))
	f.Add([]byte("\n\r\n[]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		limits := eventqueue.Limits{}
		last := 0
		err := ndjson.Read(bytes.NewReader(text), "fuzz", limits, func(number int, e eventqueue.NewEvent) error {
			if number <= last {
				t.Errorf("line %d came after line %d", number, last)
			}
			last = number
			at := bytes.Split(text, []byte("\n"))[number-1]
			if !bytes.Contains(at, e.Value) || !json.Valid(at) {
				t.Errorf("line %d: the value %q is not in the text", number, e.Value)
			}
			if err := limits.CheckEvents([]eventqueue.NewEvent{e}, time.Now()); err != nil {
				t.Errorf("line %d: emit refuses what was read: %v", number, err)
			}
			return nil
		})
		var at *ndjson.Error
		if err != nil && (!errors.As(err, &at) || at.Line <= last) {
			t.Errorf("got %v after line %d, want an *Error of a later line", err, last)
		}
	})
}
