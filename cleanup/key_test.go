package cleanup

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"eventsv2/eventqueue"
)

var canvas = eventqueue.CanvasID{0xca, 15: 1}

func keyOf(t testing.TB, config Config, inputs map[string]any) Key {
	t.Helper()
	key, err := NewKey(canvas, "slack", config, inputs)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// TestKeyHasTheChosenInputsOnly: in any order, and of no others.
func TestKeyHasTheChosenInputsOnly(t *testing.T) {
	t.Parallel()
	inputs := map[string]any{"target": "anna", "channel": map[string]any{"b": 1, "a": []int{2}}, "issues": []string{"never the same"}}
	of := func(names ...string) Key { return keyOf(t, Config{Key: "todo", Inputs: names}, inputs) }
	key := of("target", "channel")
	if key != of("channel", "target") {
		t.Error("the order of the names counts")
	}
	if key == of("target") || key == of("target", "channel", "issues") {
		t.Error("other inputs make the same key")
	}
	if none := of(); none.Inputs != NoInputs || none == key {
		t.Errorf("no inputs make %s", none)
	}
	same := map[string]any{
		"target": json.RawMessage(` "anna" `),
		"channel": struct {
			B int   `json:"b"`
			A []int `json:"a"`
		}{1, []int{2}},
	}
	if key != keyOf(t, Config{Key: "todo", Inputs: []string{"target", "channel"}}, same) {
		t.Error("the same values, written otherwise, make another key")
	}
	pinned := Key{Canvas: canvas, Component: "slack", Topic: "todo",
		Inputs: "7c142a03fa8c7f46e890e67540bf3ab19f07355b41dc8a7fb5c8c5f1186c61b3"}
	if of("target") != pinned {
		t.Errorf("the hash of an input has changed, and with it all keys: %s", of("target"))
	}
}

func TestKeyOfUnusableInputsIsRefused(t *testing.T) {
	t.Parallel()
	inputs := map[string]any{"target": "anna", "channel": "#dev", "callback": func() {}, "torn": "a\xff", "fffd": "a\uFFFD", "half": json.RawMessage(`"\ud800"`)}
	for name, want := range map[string]string{
		"chanel":   `there is no input "chanel": there are callback, channel, fffd, half, target, torn`,
		"callback": `input "callback": json: unsupported type: func()`,
		"torn":     `input "torn": its text is not valid UTF-8`,
		"fffd":     `U+FFFD`,
		"half":     `U+FFFD`,
	} {
		key, err := NewKey(canvas, "slack", Config{Key: "k", Inputs: []string{"target", name}}, inputs)
		if err == nil || !strings.Contains(err.Error(), want) || key != (Key{}) {
			t.Errorf("%s: %s, %v; want an error with %q", name, key, err, want)
		}
	}
	for _, c := range []struct {
		canvas    eventqueue.CanvasID
		component string
		config    Config
		want      string
	}{
		{eventqueue.CanvasID{}, "slack", Config{Key: "k"}, "canvas is missing"},
		{canvas, "", Config{Key: "k"}, "component is missing"},
		{canvas, "sl\x00ck", Config{Key: "k"}, "control character"},
		{canvas, "slack", Config{}, "key is missing"},
		{canvas, "slack", Config{Key: "k", Inputs: []string{"x"}}, `there is no input "x": there are no inputs`},
	} {
		if _, err := NewKey(c.canvas, c.component, c.config, nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want an error with %q", c, err, c.want)
		}
	}
	if err := (Key{Canvas: canvas, Component: "c", Topic: "t", Inputs: "mine"}).Validate(); err == nil {
		t.Error("a hash of one's own is valid")
	}
}

// alikes read the same one after the other, or nearly, and are different.
var alikes = []struct {
	component, topic string
	names            []string
	inputs           map[string]any
}{
	{component: "a", topic: "bc"}, {component: "ab", topic: "c"},
	{component: "a/b", topic: "c"}, {component: "a", topic: "b/c"},
	{component: `a"/"b`, topic: "c"}, {component: "a", topic: `b"/"c`},
	{names: []string{"a", "b"}, inputs: map[string]any{"a": "x", "b": "y"}},
	{names: []string{"a", "b"}, inputs: map[string]any{"a": "y", "b": "x"}},
	{names: []string{"a", "b"}, inputs: map[string]any{"a": "xy", "b": ""}},
	{names: []string{"ab"}, inputs: map[string]any{"ab": "xy"}},
	{names: []string{"a"}, inputs: map[string]any{"a": "1"}},
	{names: []string{"a"}, inputs: map[string]any{"a": 1}},
	{names: []string{"a"}, inputs: map[string]any{"a": nil}},
	{names: []string{"a"}, inputs: map[string]any{"a": "null"}},
	{names: []string{"a"}, inputs: map[string]any{"a": []string{"x", "y"}}},
	{names: []string{"a"}, inputs: map[string]any{"a": `["x","y"]`}},
	{names: []string{"a"}, inputs: map[string]any{"a": []string{"x,y"}}},
	{names: []string{"a"}, inputs: map[string]any{"a": int64(9007199254740992)}},
	{names: []string{"a"}, inputs: map[string]any{"a": json.Number("9007199254740993")}},
	{names: []string{"b"}, inputs: map[string]any{"b": 1}},
}

// TestDifferentKeysNeverCollide: parts and inputs that read the same one after the
// other are different keys, as text too.
func TestDifferentKeysNeverCollide(t *testing.T) {
	t.Parallel()
	seen, texts := map[Key]int{}, map[string]int{}
	for i, c := range alikes {
		if c.component == "" {
			c.component, c.topic = "slack", "k"
		}
		key, err := NewKey(canvas, c.component, Config{Key: c.topic, Inputs: c.names}, c.inputs)
		if err != nil {
			t.Fatal(err)
		}
		if j, taken := seen[key]; taken {
			t.Errorf("%d and %d are both %s", i, j, key)
		}
		if j, taken := texts[key.String()]; taken {
			t.Errorf("%d and %d are both written %s", i, j, key)
		}
		seen[key], texts[key.String()] = i, i
	}
}

// TestDifferentInputsNeverCollide: the hash is the same exactly when the inputs are.
func TestDifferentInputsNeverCollide(t *testing.T) {
	t.Parallel()
	all := []string{"a", "ab", "b", "c"}
	rapid.Check(t, func(t *rapid.T) {
		draw := func(what string) (names []string, inputs map[string]any) {
			inputs = map[string]any{}
			for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom(all), 1, 3, rapid.ID).Draw(t, what) {
				names = append(names, name)
				inputs[name] = rapid.StringMatching(`["a:,]{0,3}`).Draw(t, name)
			}
			return names, inputs
		}
		names1, inputs1 := draw("one")
		names2, inputs2 := draw("two")
		hash1, err1 := hashInputs(names1, inputs1)
		hash2, err2 := hashInputs(names2, inputs2)
		text1, _ := json.Marshal(inputs1)
		text2, _ := json.Marshal(inputs2)
		if err1 != nil || err2 != nil || (hash1 == hash2) != (string(text1) == string(text2)) {
			t.Fatalf("%s and %s hash to %s and %s, %v, %v", text1, text2, hash1, hash2, err1, err2)
		}
	})
}
