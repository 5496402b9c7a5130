package eventctl

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"eventsv2/eventqueue"
)

// FuzzScope holds the flags that name a handler to what the rules and emit say of
// it: they take the same ones, byte for byte, as the one to name and as a filter.
func FuzzScope(f *testing.F) {
	for _, name := range []string{"m", "", "-", "--name=x", "a=b", " a ", "größe", "a,b", `"a"`, "\xff", "\x00", "a\n", strings.Repeat("n", 255), strings.Repeat("n", 256)} {
		f.Add(canvasA, name, "n")
		f.Add(strings.ToUpper(canvasB), "m", name)
		f.Add(name, name, name)
	}
	f.Add("00000000-0000-0000-0000-000000000000", "m", "n")
	f.Fuzz(func(t *testing.T, canvas, module, name string) {
		flags := parseScope(t, "--canvas="+canvas, "--module="+module, "--name="+name)
		wantCanvas, err := eventqueue.ParseCanvasID(canvas)
		want := eventqueue.Scope{Canvas: wantCanvas, Module: module, Name: name}
		good := err == nil && want.Validate() == nil

		scope, err := flags.scope()
		if (err == nil) != good || good && scope != want {
			t.Fatalf("--canvas=%q --module=%q --name=%q names %+v (%v): want %+v, accepted %t", canvas, module, name, scope, err, want, good)
		}
		filter, err := flags.filter()
		if (err == nil) != good || good && (filter.Canvas == nil || *filter.Canvas != wantCanvas || filter.Module != module || filter.Name != name) {
			t.Fatalf("--canvas=%q --module=%q --name=%q filters %+v (%v): want %+v, accepted %t", canvas, module, name, filter, err, want, good)
		}
	})
}

// parseScope reads a command line with the flags of a scope.
func parseScope(t *testing.T, args ...string) *scopeFlags {
	t.Helper()
	cmd := &cobra.Command{Use: "test"}
	flags := addScope(cmd)
	if err := cmd.ParseFlags(args); err != nil {
		t.Fatal(err)
	}
	return flags
}
