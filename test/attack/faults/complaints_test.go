package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestLastErrorsOfEachLogAreShown(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"app.log":    "{\"level\":\"info\"}\n{\"level\":\"error\",\"n\":1}\n{\"level\":\"error\",\"n\":2}\n{\"level\":\"error\",\"n\":3}\npanic",
		"worker.log": "{\"severity\":\"ERROR\"}\n{\"severity\":\"INFO\",\"error\":\"error\"}\n",
		"cron.log":   "goroutine 1\npanic: no\n",
		"other.yaml": "panic: no log\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{`app.log: {"level":"error","n":2}`, `app.log: {"level":"error","n":3}`, "cron.log: panic: no", `worker.log: {"severity":"ERROR"}`}
	if got := complaints(dir); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
