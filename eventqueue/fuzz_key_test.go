package eventqueue_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/test/rig"
	"eventsv2/test/testenv"
)

// nameSeeds are parts of handler keys on either side of every rule.
func nameSeeds() []string {
	return []string{
		"", "_", "a/b", "größe", "e\u0301", "\u00e9", " a ", "%s", `\`, `'`, "NULL", "\ufeff", "\u200b", "\U0010ffff",
		"\x00", "a\n", "\u0085", "\x7f", "\xff", "\xed\xa0\x80", strings.Repeat("n", 255), strings.Repeat("n", 256), strings.Repeat("ü", 128),
	}
}

// stub is a handler that can be told from others.
type stub struct{ name string }

func (stub) Handle(context.Context, *eventqueue.Run) error { return nil }

// FuzzHandlerKey holds everything that reads a handler key to one opinion: the
// check, the registry, the rules, the emit, the claim, and the walk through the
// diagram. Keys are the same when their bytes are, and never otherwise.
func FuzzHandlerKey(f *testing.F) {
	for i, name := range nameSeeds() {
		other := nameSeeds()[(i+1)%len(nameSeeds())]
		f.Add(name, "n", "_", "m", other, "_")
		f.Add("m", name, "_", "m", name, "_")
		f.Add("m", "n", name, "m/n", "_", name)
		f.Add(name, name, name, name, name, name)
	}
	store := pgstore.New(testenv.Pool(f)) // of all inputs
	f.Fuzz(func(t *testing.T, module, name, modifier, module2, name2, modifier2 string) {
		everywhere := eventqueue.HandlerKey{Module: module, Name: name, Modifier: modifier}
		onCanvas := eventqueue.HandlerKey{Module: module2, Name: name2, Modifier: modifier2}
		handlers := eventqueue.NewHandlers()
		one := handlers.Register(everywhere, stub{"everywhere"}, eventqueue.Policy{})
		checkKey(t, everywhere, one)
		two := handlers.RegisterOn(rig.Canvas, onCanvas, stub{"on canvas"}, eventqueue.Policy{})
		checkKey(t, onCanvas, two)
		if one != nil || two != nil {
			return
		}
		if err := handlers.Register(everywhere, stub{}, eventqueue.Policy{}); err == nil {
			t.Fatalf("%q was registered twice", everywhere)
		}
		checkFound(t, store, handlers, everywhere, onCanvas)
	})
}

// checkKey compares what the others say of a key with naming its bad fields.
func checkKey(t *testing.T, key eventqueue.HandlerKey, registered error) {
	t.Helper()
	want := ""
	for _, part := range []struct{ field, text string }{{"modifier", key.Modifier}, {"name", key.Name}, {"module", key.Module}} {
		if badName(part.text) {
			want = part.field
		}
	}
	field, err := eventqueue.CheckHandler(key)
	if field != want || (err != nil) != (want != "") {
		t.Fatalf("CheckHandler(%q) names %q (%v): want %q", key, field, err, want)
	}
	if (registered != nil) != (want != "") || want != "" && !strings.Contains(registered.Error(), want+": ") {
		t.Fatalf("the registry says %v of %q: want it to name %q", registered, key, want)
	}
	scope := eventqueue.Scope{Canvas: rig.Canvas, Module: key.Module, Name: key.Name}.Validate()
	if bad := want == "module" || want == "name"; (scope != nil) != bad || bad && !strings.HasPrefix(scope.Error(), want+": ") {
		t.Fatalf("the rules say %v of %q: want them to name %q", scope, key, want)
	}
}

// checkFound emits events of both keys, on the canvas and on another one, and
// compares who would run them with what the claim says and where it leads.
func checkFound(t *testing.T, store *pgstore.Store, handlers *eventqueue.Handlers, everywhere, onCanvas eventqueue.HandlerKey) {
	t.Helper()
	queue, err := eventqueue.New(store, nobody{}, eventqueue.QueueConfig{})
	if err != nil {
		t.Fatal(err)
	}
	var events []eventqueue.NewEvent
	for _, key := range []eventqueue.HandlerKey{everywhere, onCanvas} {
		for _, on := range []eventqueue.CanvasID{rig.Canvas, {1}} {
			events = append(events, eventqueue.NewEvent{Canvas: on, Module: key.Module, Name: key.Name, Modifier: key.Modifier,
				Value: json.RawMessage(`1`)})
		}
	}
	ids, err := queue.EmitMany(t.Context(), events)
	if err != nil {
		t.Fatalf("a key that can be registered cannot be emitted: %v", err)
	}
	found, err := store.Claim(t.Context(), ids, handlers.Set(), 0)
	if err != nil || len(found) != len(events) {
		t.Fatalf("claimed %d of %d events: %v", len(found), len(events), err)
	}
	for _, f := range found {
		want, leads := "<nil>", machine.Queue
		switch {
		case f.Event.Handler() == onCanvas && f.Event.Canvas == rig.Canvas:
			want, leads = "{on canvas}", machine.Process
		case f.Event.Handler() == everywhere:
			want, leads = "{everywhere}", machine.Process
		}
		registered, ok := handlers.Lookup(&f.Event)
		handler := registered.Handler
		state, label := machine.DecideClaim(f.Facts)
		if fmt.Sprint(handler) != want || ok != (want != "<nil>") || f.Facts.HandlerKnown != ok || state != leads {
			t.Fatalf("an event %q of canvas %s: handler %v (%t), %s to %s; want %s and %s", f.Event.Handler(), f.Event.Canvas,
				handler, ok, label, state, want, leads)
		}
	}
}

// FuzzCanvasID holds the text of a canvas to one form: what is read is written in
// the same way, but for the case, and what is written can be read.
func FuzzCanvasID(f *testing.F) {
	for _, text := range []string{
		rig.Canvas.String(), strings.ToUpper(rig.Canvas.String()), "{" + rig.Canvas.String() + "}", "urn:uuid:" + rig.Canvas.String(),
		strings.ReplaceAll(rig.Canvas.String(), "-", ""), "", "00000000-0000-0000-0000-000000000000", "ca170000 0000-0000-0000-000000000001",
		"ca170000-0000-0000-0000-00000000000g", "ca17000-00000-0000-0000-000000000001", "\u00e9a170000-0000-0000-0000-00000000000",
	} {
		f.Add(text, []byte(text))
	}
	f.Fuzz(func(t *testing.T, text string, raw []byte) {
		var some eventqueue.CanvasID
		copy(some[:], raw)
		if again, err := eventqueue.ParseCanvasID(some.String()); err != nil || again != some {
			t.Fatalf("%s is read as %s (%v)", some, again, err)
		}
		read, err := eventqueue.ParseCanvasID(text)
		var unmarshalled eventqueue.CanvasID
		if other := unmarshalled.UnmarshalText([]byte(text)); (other == nil) != (err == nil) || unmarshalled != read {
			t.Fatalf("%q is read as %s (%v) and as %s (%v)", text, read, err, unmarshalled, other)
		}
		if err != nil {
			return
		}
		written, err := read.MarshalText()
		if err != nil || string(written) != strings.ToLower(text) || read.String() != string(written) {
			t.Fatalf("%q is read as %s and written as %q (%v)", text, read, written, err)
		}
	})
}
