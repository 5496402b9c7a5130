package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"eventsv2/eventqueue"
	"eventsv2/test/command"
)

func TestSampleInputIsValid(t *testing.T) {
	t.Parallel()
	in, err := loadInput("")
	if err != nil {
		t.Fatal(err)
	}
	refused, largest := 0, 0
	for _, e := range in.events {
		largest = max(largest, len(e.Value))
		if bytes.Contains(e.Value, []byte(refusalMark)) {
			refused++
		}
	}
	if n := len(in.events); n < 150 || n > 300 || !in.refusals || refused != 2 || largest < 10<<10 {
		t.Errorf("the sample has %d events, %d refused, the largest of %d bytes", n, refused, largest)
	}
	first, rest := in.split()
	if len(first)+len(rest) != len(in.events) {
		t.Errorf("split into %d and %d", len(first), len(rest))
	}
	if _, count := busiestScope(first); count < 2 || count == len(first) {
		t.Errorf("%d of %d events would be paused", count, len(first))
	}
}

func TestBadInputStartsNothing(t *testing.T) {
	t.Parallel()
	event := `{"canvas_id":"7f0c2a4e-5b1d-4c8e-9a36-2d1f0e4b8c71","module":"WORKER","name":"n","modifier":"_","value":1}`
	for _, c := range []struct{ name, text, want string }{
		{"no JSON", event + "\nnonsense\n", ":2: is not JSON"},
		{"a field", strings.Replace(event, `"n"`, `""`, 1), ":1: name: is empty"},
		{"a delay", strings.Replace(event, "}", `,"delay":"1h"}`, 1), ":1: delay: "},
		{"nothing", "\n\n", "holds no event"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "in.ndjson")
			if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			refuses(t, []string{"-input", path}, c.want)
		})
	}
}

func TestBadOptionsStartNothing(t *testing.T) {
	t.Parallel()
	refuses(t, []string{"-input", filepath.Join(t.TempDir(), "missing.ndjson")}, "no such file")
	refuses(t, []string{"-notifier", "mail"}, `-notifier is "mail"`)
	refuses(t, []string{"events.ndjson"}, "-input FILE")
	refuses(t, []string{"-nonsense"}, "-nonsense")
}

// refuses runs the demo, which must end at once with exit status 2.
func refuses(t *testing.T, args []string, want string) {
	t.Helper()
	var stdout, stderr strings.Builder
	if status := run(t.Context(), args, &stdout, &stderr); status != command.ExitUsage {
		t.Errorf("%v: exit status %d, want %d", args, status, command.ExitUsage)
	}
	if stdout.Len() > 0 || !strings.Contains(stderr.String(), want) {
		t.Errorf("%v: printed %q and the error %q, want …%s…", args, stdout.String(), stderr.String(), want)
	}
}

func TestSingleEventIsNotSplit(t *testing.T) {
	t.Parallel()
	in := &input{events: make([]eventqueue.NewEvent, 1)}
	if first, rest := in.split(); len(first) != 1 || len(rest) != 0 {
		t.Errorf("one event is split into %d and %d", len(first), len(rest))
	}
}
