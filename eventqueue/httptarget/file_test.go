package httptarget

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"eventsv2/eventqueue"
)

const goodFile = `# Who gets what.
handlers:
  - module: WORKER
    name: push
    modifier: _
    canvas: A713F8E6-1e3c-4f7f-9d5c-2f1b6a3e8d10
    url: https://me:s3cret@example.com/push?token=s3cret
    timeout: 30s
    max_retries: 0
    order_hold: 0s
    backoff: {base: 10s, max: 10m}
  - {module: WORKER, name: push, modifier: "_", url: "http://localhost:8080"}
  - module: "Grüße 😀"
    name: '100%'
    modifier: |-
      a "b"
    url: http://[::1]:80/
    max_retries: 2147483647
    backoff: &slow
      base: 1h
      max: 1h
  - module: CRON
    name: nightly
    modifier: "5"
    url: http://10.0.0.1
    backoff: *slow
    order_hold: 90s
  - {event: RECORD.FILE.ADD, name: mail, url: http://a, answer: cloudevents}
events: [RECORD.FILE.ADD.TWICE]
`

func TestParseReadsEverything(t *testing.T) {
	t.Parallel()
	file, err := Parse("handlers.yaml", []byte(goodFile))
	if err != nil {
		t.Fatal(err)
	}
	canvas, err := eventqueue.ParseCanvasID("a713f8e6-1e3c-4f7f-9d5c-2f1b6a3e8d10")
	if err != nil {
		t.Fatal(err)
	}
	none, most := 0, 1<<31-1
	never, short := time.Duration(0), 90*time.Second
	want := []Entry{
		{
			Line: 3, Key: eventqueue.HandlerKey{Module: "WORKER", Name: "push", Modifier: "_"}, Canvas: canvas,
			Timeout: 30 * time.Second, MaxRetries: &none, BackoffBase: 10 * time.Second, BackoffMax: 10 * time.Minute,
			OrderHold: &never,
		},
		{Line: 12, Key: eventqueue.HandlerKey{Module: "WORKER", Name: "push", Modifier: "_"}},
		{
			Line: 13, Key: eventqueue.HandlerKey{Module: "Grüße 😀", Name: "100%", Modifier: `a "b"`},
			MaxRetries: &most, BackoffBase: time.Hour, BackoffMax: time.Hour,
		},
		{
			Line: 22, Key: eventqueue.HandlerKey{Module: "CRON", Name: "nightly", Modifier: "5"},
			BackoffBase: time.Hour, BackoffMax: time.Hour, OrderHold: &short,
		},
		{Line: 28, Key: eventqueue.HandlerKey{Module: "RECORD", Name: "mail", Modifier: "RECORD.FILE.ADD"}, Event: "RECORD.FILE.ADD", Answers: EmitAnswers},
	}
	targets := []string{"https://example.com/push?…", "http://localhost:8080", "http://[::1]:80/", "http://10.0.0.1", "http://a"}
	if file.Name != "handlers.yaml" || len(file.Entries) != len(want) {
		t.Fatalf("got %+v", file)
	}
	for i, got := range file.Entries {
		if got.Target() != targets[i] {
			t.Errorf("entry %d leads to %s, want %s", i, got.Target(), targets[i])
		}
		got.target = address{}
		if !reflect.DeepEqual(got, want[i]) {
			t.Errorf("entry %d is %+v, want %+v", i, got, want[i])
		}
	}
	if text := fmt.Sprintf("%v %+v", file, file.Entries); strings.Contains(text, "s3cret") {
		t.Errorf("printing the file shows a secret: %s", text)
	}
}

func TestEntrySetsItsPolicy(t *testing.T) {
	t.Parallel()
	if p := (Entry{}).Policy(); p.Timeout != 0 || p.MaxRetries != nil || p.Backoff != nil || p.OrderHold != nil || p.BreakerAfter != DefaultBreakerAfter {
		t.Errorf("an entry without options does not leave the defaults to eventqueue: %+v", p)
	}
	retries, hold := 5, time.Duration(0)
	p := Entry{Timeout: time.Second, MaxRetries: &retries, BackoffBase: 10 * time.Second, BackoffMax: 10 * time.Second, OrderHold: &hold, BreakerAfter: new(0)}.Policy()
	if p.Timeout != time.Second || p.BreakerAfter != 0 || *p.MaxRetries != 5 || p.OrderHold == nil || *p.OrderHold != 0 {
		t.Errorf("got %+v", p)
	}
	if wait := p.Backoff(3); wait < 8*time.Second || wait > 12*time.Second {
		t.Errorf("the third wait is %s, want 10s with a fifth of jitter", wait)
	}
}

func TestLoadReadsTheFileOrNamesIt(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "handlers.yaml")
	if _, err := Load(path); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), path) {
		t.Errorf("a file that is not there: %v", err)
	}
	if err := os.WriteFile(path, []byte(goodFile), 0o600); err != nil {
		t.Fatal(err)
	}
	if file, err := Load(path); err != nil || len(file.Entries) != 5 || file.Name != path {
		t.Errorf("got %+v, %v", file, err)
	}
	if err := os.WriteFile(path, []byte("handlers: 5\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var problem *Problem
	if _, err := Load(path); !errors.As(err, &problem) || problem.File != path || problem.Line != 1 {
		t.Errorf("got %v", err)
	}
}

func TestRegisterAddsEachEntry(t *testing.T) {
	t.Parallel()
	file, err := Parse("handlers.yaml", []byte(goodFile))
	if err != nil {
		t.Fatal(err)
	}
	handlers := eventqueue.NewHandlers()
	if err := file.Register(handlers, Shared{}); err != nil {
		t.Fatal(err)
	}
	err = file.Register(handlers, Shared{})
	if err == nil {
		t.Fatal("every handler is registered twice, and nobody says so")
	}
	lines := strings.Split(err.Error(), "\n")
	for i, line := range []int{3, 12, 13, 22, 28} {
		if prefix := fmt.Sprintf("handlers.yaml:%d: handler ", line); !strings.HasPrefix(lines[i], prefix) {
			t.Errorf("%q does not begin with %q", lines[i], prefix)
		}
	}
}

// entriesOf drops the lines, which depend on how the file is written.
func entriesOf(file *File) []Entry {
	entries := append([]Entry(nil), file.Entries...)
	for i := range entries {
		entries[i].Line = 0
	}
	return entries
}

// rewrite writes entries as a handlers file in the plainest form.
func rewrite(t *testing.T, entries []Entry) []byte {
	t.Helper()
	list := make([]map[string]any, len(entries))
	for i, e := range entries {
		list[i] = map[string]any{
			keyModule: e.Key.Module, keyName: e.Key.Name, keyModifier: e.Key.Modifier, keyURL: e.target.url.String(),
		}
		if e.Event != "" {
			list[i] = map[string]any{keyEvent: e.Event, keyName: e.Key.Name, keyURL: e.target.url.String()}
		}
		if e.Answers != IgnoreAnswers {
			list[i][keyAnswer] = string(e.Answers)
		}
		if e.Canvas != (eventqueue.CanvasID{}) {
			list[i][keyCanvas] = e.Canvas.String()
		}
		if e.Timeout != 0 {
			list[i][keyTimeout] = e.Timeout.String()
		}
		if e.MaxRetries != nil {
			list[i][keyMaxRetries] = *e.MaxRetries
		}
		if e.OrderHold != nil {
			list[i][keyOrderHold] = e.OrderHold.String()
		}
		if e.BackoffMax != 0 {
			list[i][keyBackoff] = map[string]string{keyBase: e.BackoffBase.String(), keyMax: e.BackoffMax.String()}
		}
	}
	text, err := yaml.Marshal(map[string]any{keyHandlers: list})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// FuzzParse: no input makes it panic, every problem has its line within the file,
// problems are in order, and what is accepted means the same when it is written
// differently.
func FuzzParse(f *testing.F) {
	f.Add(goodFile)
	f.Add(hook("name: n, secrets: [S]"))
	for _, c := range badFiles {
		if len(c.text) <= MaxFileBytes { // mutating the giant teaches nothing
			f.Add(c.text)
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		file, err := Parse("f", []byte(text))
		if err != nil {
			checkProblems(t, text, err)
			return
		}
		if len(file.Entries) == 0 {
			if len(file.Webhooks)+len(file.Subscriptions) == 0 {
				t.Fatal("accepted with nothing in it")
			}
			return // there is nothing to rewrite
		}
		again, err := Parse("f", rewrite(t, file.Entries))
		if err != nil {
			t.Fatalf("accepted once, but not when rewritten: %v", err)
		}
		for i, e := range entriesOf(file) {
			other := entriesOf(again)[i]
			if e.target.url.String() != other.target.url.String() {
				t.Fatalf("entry %d: target %s became %s", i, e.target.url, other.target.url)
			}
			e.target, other.target = address{}, address{}
			if !reflect.DeepEqual(e, other) {
				t.Fatalf("entry %d: %+v became %+v", i, e, other)
			}
		}
	})
}

func checkProblems(t *testing.T, text string, err error) {
	t.Helper()
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		t.Fatalf("not a list of problems: %v", err)
	}
	last := 1
	for _, one := range joined.Unwrap() {
		var problem *Problem
		if !errors.As(one, &problem) {
			t.Fatalf("not a problem: %v", one)
		}
		// Other line breaks than \n count, too.
		breaks := strings.Count(text, "\n") + strings.Count(text, "\r") +
			strings.Count(text, "\u0085") + strings.Count(text, "\u2028") + strings.Count(text, "\u2029")
		if problem.Line < last || problem.Line > breaks+1 {
			t.Fatalf("line %d comes after %d in a file of %d: %v", problem.Line, last, breaks+1, err)
		}
		last = problem.Line
	}
}
