package httptarget

import (
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"eventsv2/eventqueue"
)

// FuzzKey checks that the handlers file accepts the same handler keys as emit and the
// registry, byte for byte, however YAML has to write them.
func FuzzKey(f *testing.F) {
	for _, name := range []string{
		"m", "", "a/b", " a ", "größe", "e\u0301", "~", "null", "true", "1", "1e3", "2024-01-01", "0x1f", "<<", "=", "*a", "&a", "!!str", "- a",
		"a: b", "a #b", "'", `"`, `\`, "%", "|", "\ufeff", "\u2028", "\u0085", "\x00", "\t", "a\nb", "\x7f", "\xff", "\U0010ffff", strings.Repeat("ü", 127), strings.Repeat("n", 256),
	} {
		f.Add(name, "n", "_")
		f.Add("m", name, name)
	}
	f.Fuzz(func(t *testing.T, module, name, modifier string) {
		key := eventqueue.HandlerKey{Module: module, Name: name, Modifier: modifier}
		text, err := yaml.Marshal(map[string]any{keyHandlers: []map[string]string{
			{keyModule: module, keyName: name, keyModifier: modifier, keyURL: "http://target/"},
		}})
		if err != nil {
			t.Fatal(err)
		}
		if len(text) > MaxFileBytes {
			return // too long for a file
		}
		file, err := Parse("f", text)
		field, bad := eventqueue.CheckHandler(key)
		switch {
		case bad != nil && err == nil:
			t.Fatalf("%q was taken, though its %s %v", key, field, bad)
		case bad == nil && err != nil:
			t.Fatalf("%q was refused: %v\n%s", key, err, text)
		case bad == nil && (len(file.Entries) != 1 || file.Entries[0].Key != key):
			t.Fatalf("%q became %q\n%s", key, file.Entries[0].Key, text)
		}
	})
}
