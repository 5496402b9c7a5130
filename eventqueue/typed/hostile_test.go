package typed_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/typed"
	"eventsv2/test/rig"
)

// unusual has what encoding/json treats in a way of its own.
type unusual struct {
	namedPart `json:"part"`
	Ident
	Grades  []Grade
	Quoted  Grade  `json:",string"`
	Counted *int   `json:",string"`
	Word    string `json:",string"`
	Many    map[Grade]*item
	Bytes   map[string][2]uint8
	Deep    **item
	Holes   []*item
	Dash    int `json:"-,"` //nolint:staticcheck // it is meant
	Odd     int `json:"a b/c.d"`
}

// namedPart is embedded, not exported, and has a name in the tag.
type namedPart struct {
	ID string `json:"id"`
}

// Ident is embedded, and no struct.
type Ident string

// Grade is a number that writes itself as text.
type Grade uint8

func (g Grade) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "grade %d", uint8(g)), nil }

func (g *Grade) UnmarshalText(text []byte) error {
	digits, found := strings.CutPrefix(string(text), "grade ")
	n, err := strconv.ParseUint(digits, 10, 8)
	if !found || err != nil {
		return errors.New("it is no grade")
	}
	*g = Grade(n)
	return nil
}

func (unusual) EventType() string   { return "UNUSUAL" }
func (unusual) EventAction() string { return "" }

func fullUnusual() unusual {
	seven, price := 7, &item{Price: 3}
	return unusual{namedPart: namedPart{"17"}, Ident: "i", Grades: []Grade{2, 3}, Quoted: 4, Counted: &seven, Word: `a "word"`,
		Many: map[Grade]*item{5: nil, 6: price}, Bytes: map[string][2]uint8{"ä\n": {1, 2}}, Deep: &price, Holes: []*item{nil, price}, Dash: 8, Odd: 9}
}

func TestUnusualFieldsSurviveARoundTrip(t *testing.T) {
	t.Parallel()
	bus, read := reading[unusual](t)
	want := fullUnusual()
	event, err := bus.NewEvent(rig.Canvas, want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := read(string(event.Value))
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(unusual{})); err != nil || diff != "" {
		t.Errorf("%s: %v\n%s", event.Value, err, diff)
	}
}

func TestMistakesInUnusualFieldsAreNamed(t *testing.T) {
	t.Parallel()
	bus, read := reading[unusual](t, typed.Strict())
	event, err := bus.NewEvent(rig.Canvas, fullUnusual())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ field, value, want string }{
		{"part", `{}`, `field "part.id" is missing`},
		{"part", `{"id": 7}`, `field "part.id" is the number 7: it must be a string`},
		{"Grades", `["grade 1", null]`, `field "Grades[1]" is null: it must be a typed_test.Grade`},
		{"Grades", `["grade 1", "x"]`, `field "Grades[1]" is a string: it must be a typed_test.Grade: it is no grade`},
		{"Grades", `"AAAA"`, `field "Grades" is a string: it must be an array`},
		{"Counted", `"a secret"`, `field "Counted" is a string: it must hold a number that fits int`},
		{"Counted", `"1 2"`, `field "Counted" is a string: it must hold a number that fits int`},
		{"Word", `"word"`, `field "Word" is a string: it must hold a string`},
		{"Many", `{"x": null}`, `field "Many.x" has a key that is no typed_test.Grade: it is no grade`},
		{"Many", `{"grade 1": {"price": []}}`, `field "Many.grade 1.price" is an array: it must be a number that fits int`},
		{"Bytes", `{"a": [1, 2, 3]}`, `field "Bytes.a" is an array of 3: it must be one of 2`},
		{"Bytes", `{"a": [1, 256]}`, `field "Bytes.a[1]" is the number 256: it must be a number that fits uint8`},
		{"Deep", `3`, `field "Deep" is the number 3: it must be an object`},
	} {
		if _, err = read(withField(t, event.Value, c.field, c.value)); err == nil || err.Error() != "event UNUSUAL as typed_test.unusual: "+c.want {
			t.Errorf("%s = %s:\n got %v\nwant %s", c.field, c.value, err, c.want)
		}
	}
}

// TestLastOfTwoEqualFieldsCounts: nothing of the first is left.
func TestLastOfTwoEqualFieldsCounts(t *testing.T) {
	t.Parallel()
	_, read := reading[recordCreated](t)
	got, err := read(`{"id":"1","title":"a","labels":{"x":"1"},"id":"2","labels":{"y":"2"},"ID":7,"tit\u006ce":"b"}`)
	want := recordCreated{recordEvent{"2"}, "b", map[string]string{"y": "2"}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(recordCreated{})); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
}

// deepTree is nested as deeply as its value says.
type deepTree struct {
	Leaves []deepTree `json:"leaves"`
	Pad    string     `json:"pad,omitempty"`
}

func (deepTree) EventType() string   { return "TREE" }
func (deepTree) EventAction() string { return "" }

// TestDeepValueIsReadOnce: what is copied at each level would be a gigabyte.
func TestDeepValueIsReadOnce(t *testing.T) {
	t.Parallel()
	_, read := reading[deepTree](t)
	const deep = 4900
	value := strings.Repeat(`{"leaves":[`, deep) + `{"leaves":[],"pad":"` + strings.Repeat("x", 190_000) + `"}` + strings.Repeat(`]}`, deep)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got, err := read(value)
	runtime.ReadMemStats(&after)
	if err != nil || len(got.Leaves) != 1 {
		t.Fatalf("%d leaves, %v", len(got.Leaves), err)
	}
	if mb := (after.TotalAlloc - before.TotalAlloc) >> 20; mb > 500 {
		t.Errorf("reading %d KiB took %d MiB", len(value)>>10, mb)
	}
	if _, err := read(strings.Repeat(`{"leaves":[`, 6000) + strings.Repeat(`]}`, 6000)); err == nil || !strings.HasSuffix(err.Error(), "the value is not JSON") {
		t.Errorf("what no library reads: %v", err)
	}
}

// FuzzSplit compares the cursor with the library: the items of an array, and the
// members of an object.
func FuzzSplit(f *testing.F) {
	for _, seed := range []string{`[]`, ` [ 1 , "a,]" ,{"b":[2]},null,-1.5e3 ] `, `{}`, `{"a":1,"a" : [{}],"\"":"\\","\u00e4":true}`, `{"` + "\xff" + `":1}`, `[[[]],[{}],""]`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var items []json.RawMessage
		var members map[string]json.RawMessage
		array, object := json.Unmarshal(text, &items) == nil && items != nil, json.Unmarshal(text, &members) == nil && members != nil
		if !array && !object {
			return
		}
		gotItems, gotMembers, rest := typed.Split(text)
		if rest := strings.TrimSpace(rest); rest != "" {
			t.Errorf("%q is left", rest)
		}
		if array {
			if diff := cmp.Diff(items, gotItems); diff != "" && len(items)+len(gotItems) > 0 {
				t.Errorf("items: %s", diff)
			}
		} else if diff := cmp.Diff(members, gotMembers); diff != "" {
			t.Errorf("members: %s", diff)
		}
	})
}

// More structs that are refused.
type (
	withEuro struct{ part }
	part     struct {
		A int `json:"€"`
	}
	withJSONKey struct{ M map[jsonKey]int }
	withMethods struct {
		textPart  `json:"text"`
		otherPart `json:"other"` // so that the methods of neither are the struct's
	}
	textPart  struct{ A int }
	otherPart struct{ B int }
	jsonKey   struct{ A int }
)

func (textPart) MarshalText() ([]byte, error)  { return nil, nil }
func (*textPart) UnmarshalText([]byte) error   { return nil }
func (otherPart) MarshalText() ([]byte, error) { return nil, nil }
func (*otherPart) UnmarshalText([]byte) error  { return nil }
func (jsonKey) MarshalJSON() ([]byte, error)   { return nil, nil }
func (*jsonKey) UnmarshalJSON([]byte) error    { return nil }
func (withEuro) EventType() string             { return "A" }
func (withEuro) EventAction() string           { return "" }
func (withJSONKey) EventType() string          { return "A" }
func (withJSONKey) EventAction() string        { return "" }
func (withMethods) EventType() string          { return "A" }
func (withMethods) EventAction() string        { return "" }

func TestLossyFieldsAreRefused(t *testing.T) {
	t.Parallel()
	for want, declare := range map[string]func(*typed.Bus) error{
		`field "A" has the name "€" in its tag`: typed.Declare[withEuro],
		`field "M" is a map with keys of `:      typed.Declare[withJSONKey],
		`field "textPart" is embedded and not `: typed.Declare[withMethods],
	} {
		if err := declare(newBus(t)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// Structs of children, whose fields are not of the types that their parents have.
type (
	numbered struct {
		ID int `json:"id"`
	}
	quotedNumber struct {
		ID int `json:"id,string"`
	}
	ownerIsText   struct{ Owner string }
	deepOwner     struct{ Owner struct{ ID []int } }
	selfMadeOwner struct{ Owner struct{ ID Grade } }
)

func (numbered) EventType() string        { return "RECORD" }
func (numbered) EventAction() string      { return "NUMBERED" }
func (quotedNumber) EventType() string    { return "RECORD" }
func (quotedNumber) EventAction() string  { return "QUOTED" }
func (ownerIsText) EventType() string     { return "DEEP" }
func (ownerIsText) EventAction() string   { return "TEXT" }
func (deepOwner) EventType() string       { return "DEEP" }
func (deepOwner) EventAction() string     { return "DEEP" }
func (selfMadeOwner) EventType() string   { return "DEEP" }
func (selfMadeOwner) EventAction() string { return "SELF" }

// TestChildThatItsParentCannotReadIsRefused: each of its events would fail. What
// may fit is not.
func TestChildThatItsParentCannotReadIsRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		want    string
		declare func(*typed.Bus) error
	}{
		{`typed_test.numbered (RECORD.NUMBERED) has no field "id" that is a string (there it is a number), which handler "index" reads into`,
			typed.Declare[numbered]},
		{`has no field "Owner" that is an object (there it is a string), which handler "deep"`, typed.Declare[ownerIsText]},
		{`has no field "Owner.ID" that is a string (there it is an array), which handler "deep"`, typed.Declare[deepOwner]},
		{"", typed.Declare[laxRecord]}, // a handler that is not strict reads "" where it is left out
		{"", typed.Declare[quotedNumber]},
		{"", typed.Declare[selfMadeOwner]},
	} {
		bus := newBus(t)
		err := errors.Join(typed.On(bus, "index", nothing[recordEvent]), typed.On(bus, "deep", nothing[deepParent]), c.declare(bus))
		if err != nil {
			t.Fatal(err)
		}
		err = bus.Register(eventqueue.NewHandlers())
		if (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v", c.want, err)
		}
	}
	if err := newBus(t).Register(nil); err == nil || !strings.Contains(err.Error(), "handlers must not be nil") {
		t.Errorf("no handlers: %v", err)
	}
}

// TestPanicOfASynchronousHandlerNamesIt: several run within one event.
func TestPanicOfASynchronousHandlerNamesIt(t *testing.T) {
	t.Parallel()
	bus := newBus(t)
	handlers := eventqueue.NewHandlers()
	if err := errors.Join(
		typed.On(bus, "fine", nothing[recordEvent], typed.Synchronous()),
		typed.On(bus, "views", func(context.Context, recordEvent, *eventqueue.Run) error { panic("no counter") }, typed.Synchronous()),
		bus.Register(handlers),
	); err != nil {
		t.Fatal(err)
	}
	run := eventqueue.Run{Event: eventqueue.Event{Module: "RECORD", Name: "_", Modifier: "_", Value: json.RawMessage(`{"id":"1"}`)}}
	registered, _ := handlers.Lookup(&run.Event)
	handler := registered.Handler
	defer func() {
		if value := recover(); value != nil {
			t.Errorf("it panicked with %v", value)
		}
	}()
	err := handler.Handle(t.Context(), &run)
	var panicked *eventqueue.PanicError
	if !errors.As(err, &panicked) || !strings.Contains(err.Error(), "synchronous handler views: the handler panicked: no counter") {
		t.Errorf("the error is %v", err)
	}
}

// TestMismatchedValueIsNotRetried: no retry can repair a value.
func TestMismatchedValueIsNotRetried(t *testing.T) {
	t.Parallel()
	bus := newBus(t)
	handlers := eventqueue.NewHandlers()
	if err := errors.Join(typed.On(bus, "index", nothing[recordEvent]), bus.Register(handlers)); err != nil {
		t.Fatal(err)
	}
	for name, modifier := range map[string]string{"_": "_", "index": "RECORD"} {
		run := eventqueue.Run{Event: eventqueue.Event{Module: "RECORD", Name: name, Modifier: modifier, Value: json.RawMessage(`{"id":7}`)}}
		registered, _ := handlers.Lookup(&run.Event)
		handler := registered.Handler
		err := handler.Handle(t.Context(), &run)
		var wrong *typed.DecodeError
		if !eventqueue.IsPermanent(err) || !errors.As(err, &wrong) || wrong.Field != "id" {
			t.Errorf("%s: %v is permanent: %t", name, err, eventqueue.IsPermanent(err))
		}
	}
}
