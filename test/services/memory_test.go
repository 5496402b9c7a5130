package services

import (
	"os"
	"path/filepath"
	"testing"
)

// TestDisposablePostgresIsKeptInMemory: a Postgres that need not survive, on a machine that has
// the room, unless TMPDIR is set.
func TestDisposablePostgresIsKeptInMemory(t *testing.T) {
	t.Parallel()
	nothing := func(string) string { return "" }
	elsewhere := func(string) string { return "/somewhere" }
	for name, c := range map[string]struct {
		settings settings
		may      bool
	}{
		"asked for":                  {settings{inMemory: true, getenv: nothing}, true},
		"not asked for":              {settings{getenv: nothing}, false},
		"durable":                    {settings{inMemory: true, durable: true, getenv: nothing}, false},
		"temporary files have place": {settings{inMemory: true, getenv: elsewhere}, false},
	} {
		want := ""
		if c.may {
			want = roomInMemory()
		}
		if got := c.settings.directory(); got != want {
			t.Errorf("%s: the directory is in %q, want %q", name, got, want)
		}
	}
}

func TestMemoryLeftIsRead(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "meminfo")
	for text, want := range map[string]uint64{
		"MemTotal:       24684092 kB\nMemFree:         8492536 kB\nMemAvailable:   20700784 kB\n": 20700784 << 10,
		"MemTotal: 5 kB\n": 0,
		"":                 0,
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := memoryLeft(file); got != want {
			t.Errorf("of %q it reads %d, want %d", text, got, want)
		}
	}
	if memoryLeft(filepath.Join(t.TempDir(), "none")) != 0 || spaceLeft(filepath.Join(t.TempDir(), "none")) != 0 || openToAll(file) {
		t.Error("there is room in what is not there")
	}
}
