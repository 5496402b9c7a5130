package workerhandlers_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"eventsv2/eventqueue"
	"eventsv2/internal/workerhandlers"
)

// TestReadReturnsWhatListWrote, and what can be read of any other text.
func TestReadReturnsWhatListWrote(t *testing.T) {
	t.Parallel()
	key := eventqueue.HandlerKey{Module: "WORKER", Name: "send", Modifier: "_"}
	both := eventqueue.HandlerSet{Everywhere: []eventqueue.HandlerKey{key}, OnCanvas: []eventqueue.CanvasHandler{{Canvas: eventqueue.CanvasID{1}, Key: key}}}
	for _, set := range []eventqueue.HandlerSet{{}, both} {
		text, err := json.Marshal(workerhandlers.List(set))
		if err != nil {
			t.Fatal(err)
		}
		if got, whole := workerhandlers.Read(text); !whole || !reflect.DeepEqual(got, set) {
			t.Errorf("%s is read as %+v, whole: %t", text, got, whole)
		}
	}
	const send = `{"module": "WORKER", "name": "send", "modifier": "_"}`
	for text, handlers := range map[string]int{"": 0, "null": 0, "{}": 0, "1": 0, `"x"`: 0, "[1]": 0, "[null]": 0, "[[]]": 0, "[{}]": 0,
		`[{"module": 1, "name": "send"}]`: 0, `[{"module": "WORKER", "name": "send", "canvas_id": "here"}]`: 0, "[" + send + ", 1, " + send + "]": 2} {
		if got, whole := workerhandlers.Read([]byte(text)); whole || len(got.Everywhere) != handlers || len(got.OnCanvas) != 0 {
			t.Errorf("%s is read as %+v, whole: %t", text, got, whole)
		}
	}
}
