package typed_test

import (
	"context"
	"encoding/json"
	"errors"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/typed"
	"eventsv2/test/rig"
)

// everything has a field of each kind that JSON can hold.
type everything struct {
	embeddedPart
	Text     string            `json:"text"`
	Number   int8              `json:"number"`
	Share    float32           `json:"share"`
	Yes      bool              `json:"yes"`
	Quoted   int               `json:"quoted,string"`
	At       time.Time         `json:"at"`
	IP       net.IP            `json:"ip"`
	Big      big.Int           `json:"big"`
	Bytes    []byte            `json:"bytes"`
	Pair     [2]string         `json:"pair"`
	Items    []item            `json:"items"`
	ByNumber map[int]item      `json:"by_number"`
	Names    map[string]string `json:"names"`
	Raw      json.RawMessage   `json:"raw"`
	Any      any               `json:"any"`
	Tree     tree              `json:"tree"`
	Untagged string

	Perhaps *item     `json:"perhaps"`
	Empty   string    `json:"empty,omitempty"`
	Zero    time.Time `json:"zero,omitzero"`
	Hidden  func()    `json:"-"`
	unseen  chan int
}

type embeddedPart struct {
	Part string `json:"part"`
	Text int    `json:"text"` // hidden by the field above
}

type item struct {
	Price int    `json:"price"`
	Note  string `json:"note,omitempty"`
}

type tree struct {
	Leaves []tree `json:"leaves"`
}

func (everything) EventType() string   { return "EVERYTHING" }
func (everything) EventAction() string { return "" }

func full() everything {
	return everything{embeddedPart: embeddedPart{Part: "p"}, Text: "<ü>", Number: -7, Share: 0.5, Yes: true, Quoted: 9,
		At: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC), IP: net.IPv4(10, 0, 0, 1), Big: *big.NewInt(1 << 40), Bytes: []byte{1, 2},
		Pair: [2]string{"a", "b"}, Items: []item{{1, "n"}, {2, ""}}, ByNumber: map[int]item{-3: {4, ""}}, Names: map[string]string{"k": "v"},
		Raw: json.RawMessage(`{"x":[1]}`), Any: []any{"a", nil}, Tree: tree{[]tree{{nil}, {[]tree{}}}}, Untagged: "u", Perhaps: &item{Price: 5}}
}

// reading is a bus with one handler, without a database: NewEvent writes, and
// the registered handler reads.
func reading[T typed.Event](t *testing.T, options ...typed.HandlerOption) (*typed.Bus, func(value string) (T, error)) {
	t.Helper()
	bus := newBus(t)
	var got T
	if err := typed.On(bus, "read", func(_ context.Context, e T, _ *eventqueue.Run) error {
		got = e
		return nil
	}, options...); err != nil {
		t.Fatal(err)
	}
	handlers := eventqueue.NewHandlers()
	if err := bus.Register(handlers); err != nil {
		t.Fatal(err)
	}
	var zero T
	key := strings.TrimSuffix(zero.EventType()+"."+zero.EventAction(), ".")
	module, _, _ := strings.Cut(key, ".")
	run := eventqueue.Run{Event: eventqueue.Event{Module: module, Name: "read", Modifier: key}}
	registered, found := handlers.Lookup(&run.Event)
	handler := registered.Handler
	if !found {
		t.Fatalf("no handler of %s", run.Handler())
	}
	return bus, func(value string) (T, error) {
		run := eventqueue.Run{Event: run.Event}
		run.Value = json.RawMessage(value)
		got = *new(T)
		err := handler.Handle(t.Context(), &run)
		return got, err
	}
}

// withField is a value in which one field is another.
func withField(t *testing.T, value json.RawMessage, field, other string) string {
	t.Helper()
	var members map[string]json.RawMessage
	if err := json.Unmarshal(value, &members); err != nil {
		t.Fatal(err)
	}
	members[field] = json.RawMessage(other)
	changed, err := json.Marshal(members)
	if err != nil {
		t.Fatal(err)
	}
	return string(changed)
}

func newBus(t *testing.T) *typed.Bus {
	t.Helper()
	bus, err := typed.New(&eventqueue.Queue{}, typed.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return bus
}

func TestValueSurvivesARoundTrip(t *testing.T) {
	t.Parallel()
	bus, read := reading[everything](t)
	for _, want := range []everything{full(), {}} {
		event, err := bus.NewEvent(rig.Canvas, want)
		if err != nil {
			t.Fatal(err)
		}
		got, err := read(" " + string(event.Value) + "\n")
		if err != nil {
			t.Fatalf("%s: %v", event.Value, err)
		}
		// It has to agree with the library's own decoder.
		var reference everything
		if err := json.Unmarshal(event.Value, &reference); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(reference, got, cmp.AllowUnexported(everything{}, big.Int{})); diff != "" {
			t.Errorf("%s: reference and value differ:\n%s", event.Value, diff)
		}
	}
}

// TestStrictHandlerRefusesMissingFields leaves out one field of a value after the other.
func TestStrictHandlerRefusesMissingFields(t *testing.T) {
	t.Parallel()
	bus, read := reading[everything](t, typed.Strict())
	event, err := bus.NewEvent(rig.Canvas, full())
	if err != nil {
		t.Fatal(err)
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(event.Value, &members); err != nil {
		t.Fatal(err)
	}
	if len(members) != 19 {
		t.Errorf("%d fields were written", len(members))
	}
	for name, value := range members {
		delete(members, name)
		without, err := json.Marshal(members)
		if err != nil {
			t.Fatal(err)
		}
		members[name] = value
		_, err = read(string(without))
		if name == "perhaps" {
			if err != nil {
				t.Errorf("a pointer may be missing: %v", err)
			}
			continue
		}
		var wrong *typed.DecodeError
		if !errors.As(err, &wrong) || wrong.Field != name || wrong.Problem != "is missing" || wrong.Key != "EVERYTHING" {
			t.Errorf("without %s: %v", name, err)
		}
	}
}

// TestMissingFieldsAreZero leaves out each field of a value, and makes it null, and compares with encoding/json.
func TestMissingFieldsAreZero(t *testing.T) {
	t.Parallel()
	bus, read := reading[everything](t)
	event, err := bus.NewEvent(rig.Canvas, full())
	if err != nil {
		t.Fatal(err)
	}
	agree := func(value string) {
		t.Helper()
		var reference everything
		if err := json.Unmarshal([]byte(value), &reference); err != nil {
			t.Fatal(err)
		}
		got, err := read(value)
		if err != nil {
			t.Errorf("%s: %v", value, err)
		}
		if diff := cmp.Diff(reference, got, cmp.AllowUnexported(everything{}, big.Int{})); diff != "" {
			t.Errorf("%s: encoding/json and the handler differ:\n%s", value, diff)
		}
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(event.Value, &members); err != nil {
		t.Fatal(err)
	}
	for name, value := range members {
		delete(members, name)
		without, err := json.Marshal(members)
		if err != nil {
			t.Fatal(err)
		}
		agree(string(without))
		members[name] = value
		agree(withField(t, event.Value, name, "null"))
	}
	agree(`{}`)
	agree(`{"items":[null,{}],"by_number":{"3":null,"4":{}},"pair":[null,"b"],"perhaps":{},"tree":{"leaves":[{},null]}}`)
	for value, want := range map[string]string{
		`null`: "the value is null: it must be an object", "\n null": "the value is null", `{"text":7}`: `field "text" is the number 7`, `{"quoted":"null"}`: `field "quoted" is a string`,
		`{"Text":7,"text":[]}`: `field "text" is an array`, `{"pair":["a"]}`: `field "pair" is an array of 1`,
	} {
		if _, err := read(value); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", value, err)
		}
	}
}

func TestMistakesInValuesAreNamed(t *testing.T) {
	t.Parallel()
	bus, read := reading[everything](t, typed.Strict())
	event, err := bus.NewEvent(rig.Canvas, full())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ field, value, want string }{
		{"text", `7`, `field "text" is the number 7: it must be a string`},
		{"text", `null`, `field "text" is null: it must be a string`},
		{"number", `300`, `field "number" is the number 300: it must be a number that fits int8`},
		{"number", `1.5`, `field "number" is the number 1.5: it must be a number that fits int8`},
		{"number", `"secret"`, `field "number" is a string: it must be a number that fits int8`},
		{"share", `[]`, `field "share" is an array: it must be a number that fits float32`},
		{"yes", `{}`, `field "yes" is an object: it must be true or false`},
		{"quoted", `9`, `field "quoted" is the number 9: it must be a string, by its tag`},
		{"quoted", `"x"`, `field "quoted" is a string: it must hold a number that fits int`},
		{"quoted", `""`, `field "quoted" is a string: it must hold a number that fits int`},
		{"at", `"yesterday"`, `field "at" is a string: it must be a time.Time: `},
		{"at", `null`, `field "at" is null: it must be a time.Time`},
		{"ip", `"here"`, `field "ip" is a string: it must be a net.IP: `},
		{"bytes", `"%"`, `field "bytes" is a string: it must be a string in base64`},
		{"pair", `["a"]`, `field "pair" is an array of 1: it must be one of 2`},
		{"pair", `"a"`, `field "pair" is a string: it must be an array`},
		{"items", `[{"price": 1}, {"note": "n"}]`, `field "items[1].price" is missing`},
		{"items", `[{"price": 1}, {"price": true}]`, `field "items[1].price" is true: it must be a number that fits int`},
		{"items", `[null]`, `field "items[0]" is null: it must be an object`},
		{"by_number", `{"3": {}}`, `field "by_number.3.price" is missing`},
		{"by_number", `{"x": {"price": 1}}`, `field "by_number.x" has a key that is no int: `},
		{"names", `{"k": 1}`, `field "names.k" is the number 1: it must be a string`},
		{"tree", `{"leaves": [{"leaves": []}, {}]}`, `field "tree.leaves[1].leaves" is missing`},
		{"perhaps", `{}`, `field "perhaps.price" is missing`},
		{"part", `false`, `field "part" is false: it must be a string`},
		{"empty", `1`, `field "empty" is the number 1: it must be a string`},
	} {
		_, err = read(withField(t, event.Value, c.field, c.value))
		want := "event EVERYTHING as typed_test.everything: " + c.want
		if err == nil || err.Error() != want && (!strings.HasSuffix(want, ": ") || !strings.HasPrefix(err.Error(), want)) {
			t.Errorf("%s = %s:\n got %v\nwant %s", c.field, c.value, err, want)
		}
	}
	for value, want := range map[string]string{
		`[]`: "the value is an array: it must be an object", `null`: "the value is null: it must be an object", `{`: "the value is not JSON"} {
		if _, err := read(value); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: %v", value, err)
		}
	}
	// The name of a field is as it is written: no other case will do.
	if _, err := read(strings.Replace(string(event.Value), `"text"`, `"Text"`, 1)); err == nil || !strings.Contains(err.Error(), `"text" is missing`) {
		t.Errorf("a field in another case: %v", err)
	}
}
