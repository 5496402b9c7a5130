package typed_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/typed"
	"eventsv2/test/rig"
)

// Structs that are refused. Each has the key of its name.
type (
	withChan      struct{ C chan int }
	withFunc      struct{ Deep struct{ F []func() } }
	withInterface struct{ S fmt.Stringer }
	withKey       struct{ M map[[2]int]string }
	withWriter    struct{ W writeOnly }
	withPointer   struct{ *recordEvent }
	withTime      struct{ time.Time }
	withDoubles   struct {
		oneX
		otherX
	}
	oneX      struct{ X int }
	otherX    struct{ X int }
	withQuote struct {
		A int `json:"it's"` //nolint:staticcheck // this is refused
	}
	onPointer   struct{}
	restless    struct{ Name string }
	alsoRecord  struct{ ID string }
	strange     struct{}
	poorRecord  struct{ Title string }
	laxRecord   struct{ recordEventLax }
	deepParent  struct{ Owner struct{ ID string } }
	deepChild   struct{ Owner struct{ Name string } }
	likeHandler struct{ recordEvent }
)

type recordEventLax struct {
	ID string `json:"id,omitempty"`
}

type writeOnly struct{}

func (writeOnly) MarshalText() ([]byte, error) { return nil, nil }

func (withChan) EventType() string        { return "A" }
func (withChan) EventAction() string      { return "" }
func (withFunc) EventType() string        { return "A" }
func (withFunc) EventAction() string      { return "" }
func (withInterface) EventType() string   { return "A" }
func (withInterface) EventAction() string { return "" }
func (withKey) EventType() string         { return "A" }
func (withKey) EventAction() string       { return "" }
func (withWriter) EventType() string      { return "A" }
func (withWriter) EventAction() string    { return "" }
func (withPointer) EventType() string     { return "A" }
func (withPointer) EventAction() string   { return "" }
func (withTime) EventType() string        { return "A" }
func (withTime) EventAction() string      { return "" }
func (withDoubles) EventType() string     { return "A" }
func (withDoubles) EventAction() string   { return "" }
func (withQuote) EventType() string       { return "A" }
func (withQuote) EventAction() string     { return "" }
func (*onPointer) EventType() string      { return "A" }
func (*onPointer) EventAction() string    { return "" }
func (r restless) EventType() string      { return "A" + r.Name }
func (restless) EventAction() string      { return "" }
func (alsoRecord) EventType() string      { return "RECORD" }
func (alsoRecord) EventAction() string    { return "" }
func (strange) EventType() string         { panic("no type") }
func (strange) EventAction() string       { return "" }
func (poorRecord) EventType() string      { return "RECORD" }
func (poorRecord) EventAction() string    { return "POOR" }
func (laxRecord) EventType() string       { return "RECORD" }
func (laxRecord) EventAction() string     { return "LAX" }
func (deepParent) EventType() string      { return "DEEP" }
func (deepParent) EventAction() string    { return "" }
func (deepChild) EventType() string       { return "DEEP" }
func (deepChild) EventAction() string     { return "CHILD" }
func (likeHandler) EventAction() string   { return "index" }

// Structs whose keys are refused.
type (
	noType      struct{}
	emptyPart   struct{}
	dotAtTheEnd struct{}
	reserved    struct{}
	spaced      struct{}
	long        struct{}
)

func (noType) EventType() string        { return "" }
func (noType) EventAction() string      { return "CREATE" }
func (emptyPart) EventType() string     { return "A" }
func (emptyPart) EventAction() string   { return "B..C" }
func (dotAtTheEnd) EventType() string   { return "A." }
func (dotAtTheEnd) EventAction() string { return "" }
func (reserved) EventType() string      { return "A" }
func (reserved) EventAction() string    { return "_" }
func (spaced) EventType() string        { return "A" }
func (spaced) EventAction() string      { return " B" }
func (long) EventType() string          { return strings.Repeat("A.", 127) + "A" }
func (long) EventAction() string        { return "A" }

func nothing[T any](context.Context, T, *eventqueue.Run) error { return nil }

func TestInvalidHandlersAreRefusedAtRegistration(t *testing.T) {
	t.Parallel()
	index := func(b *typed.Bus) error {
		return typed.On(b, "index", nothing[recordEvent])
	}
	strictly := func(b *typed.Bus) error {
		return typed.On(b, "index", nothing[recordEvent], typed.Strict())
	}
	register := func(b *typed.Bus) error { return b.Register(eventqueue.NewHandlers()) }
	for want, steps := range map[string][]func(*typed.Bus) error{
		`field "C" is a chan int, which JSON does not have`:                   {typed.Declare[withChan]},
		`field "Deep.F[]" is a func(), which JSON does not have`:              {typed.Declare[withFunc]},
		`field "S" is a fmt.Stringer: what is behind an interface`:            {typed.Declare[withInterface]},
		`field "M" is a map with keys of [2]int`:                              {typed.Declare[withKey]},
		`field "W" is a typed_test.writeOnly, which writes itself`:            {typed.Declare[withWriter]},
		`field "recordEvent" is an embedded pointer`:                          {typed.Declare[withPointer]},
		`so give that field a name`:                                           {typed.Declare[withTime]},
		`field "X" is there twice in typed_test.withDoubles`:                  {typed.Declare[withDoubles]},
		`field "A" has the name "it's" in its tag, which`:                     {typed.Declare[withQuote]},
		`it is a ptr and must be a struct`:                                    {typed.Declare[*onPointer]},
		`it is an interface and must be a struct`:                             {typed.Declare[typed.Event]},
		`its handling key: the handler panicked: no type`:                     {typed.Declare[strange]},
		`the key RECORD is that of typed_test.recordEvent already`:            {index, typed.Declare[alsoRecord]},
		`typed.Declare[typed_test.noType]: its handling key: ".CRE`:           {typed.Declare[noType]},
		`"A.B..C": a part is empty`:                                           {typed.Declare[emptyPart]},
		`"A.": a part is empty`:                                               {typed.Declare[dotAtTheEnd]},
		`a part is "_", which is reserved`:                                    {typed.Declare[reserved]},
		`a part is " B": it may have letters, digits, _ and -`:                {typed.Declare[spaced]},
		`is 257 bytes long: the limit is 255`:                                 {typed.Declare[long]},
		`the name is taken`:                                                   {index, index},
		`comes after Register`:                                                {register, index},
		`Register was called twice`:                                           {register, register},
		`handler "index" is called like the action of the event RECORD.index`: {index, typed.Declare[likeHandler], register},
		`has no field "id", which handler "index"`:                            {index, typed.Declare[poorRecord], register},
		`typed_test.laxRecord (RECORD.LAX) has no field "id" that is always`:  {strictly, typed.Declare[laxRecord], register},
		`has no field "Owner.ID", which handler "deep"`: {func(b *typed.Bus) error {
			return typed.On(b, "deep", nothing[deepParent])
		}, typed.Declare[deepChild], register},
		`handler "index": the function is nil`: {func(b *typed.Bus) error {
			return typed.On[recordEvent](b, "index", nil)
		}},
		`handler "": the name is empty`: {func(b *typed.Bus) error {
			return typed.On(b, "", nothing[recordEvent])
		}},
		`the name is "a.b": it may have`: {func(b *typed.Bus) error {
			return typed.On(b, "a.b", nothing[recordEvent])
		}},
		`a synchronous handler has no policy of its own`: {func(b *typed.Bus) error {
			return typed.On(b, "index", nothing[recordEvent], typed.Synchronous(), typed.WithPolicy(eventqueue.Policy{}))
		}},
		`Timeout is -1ns`: {func(b *typed.Bus) error {
			return typed.On(b, "index", nothing[recordEvent], typed.WithPolicy(eventqueue.Policy{Timeout: -1}))
		}},
		`the bus is nil`: {func(*typed.Bus) error { return typed.Declare[recordEvent](nil) }},
		`handler RECORD/_/_ is registered twice`: {index, func(b *typed.Bus) error {
			handlers := eventqueue.NewHandlers()
			taken := eventqueue.HandlerKey{Module: "RECORD", Name: "_", Modifier: "_"}
			f := eventqueue.HandlerFunc(func(context.Context, *eventqueue.Run) error { return nil })
			return errors.Join(handlers.Register(taken, f, eventqueue.Policy{}), b.Register(handlers))
		}},
	} {
		bus := newBus(t)
		for i, step := range steps {
			err := step(bus)
			if last := i == len(steps)-1; !last && err != nil || last && (err == nil || !strings.Contains(err.Error(), want)) {
				t.Errorf("step %d of %q: %v", i, want, err)
			}
		}
	}
	if _, err := typed.New(nil, typed.Config{}); err == nil {
		t.Error("a bus without a queue was made")
	}
	if _, err := typed.New(&eventqueue.Queue{}, typed.Config{Dispatch: eventqueue.Policy{Timeout: -1}}); err == nil ||
		!strings.Contains(err.Error(), "Dispatch: Timeout") {
		t.Errorf("a bus with a bad policy: %v", err)
	}
}

func TestInvalidEventsAreRefusedAtEmit(t *testing.T) {
	t.Parallel()
	bus := newBus(t)
	for _, err := range []error{typed.Declare[restless](bus), typed.Declare[everything](bus), typed.Declare[everything](bus)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	unwritable := full()
	unwritable.unseen = make(chan int) // which does not matter
	unwritable.Any = make(chan int)
	for want, event := range map[string]typed.Event{
		"typed_test.recordEvent is not known to this bus": recordEvent{},
		"the typed event is nil":                          nil,
		"event 0: the typed event is nil":                 (*everything)(nil),
		`has the key "AX" now, and was declared with "A"`: restless{"X"},
		"write event EVERYTHING as JSON":                  unwritable,
	} {
		if _, err := bus.Emit(t.Context(), rig.Canvas, event); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
	}
}
