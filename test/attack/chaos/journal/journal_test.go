package journal_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"eventsv2/test/attack/chaos/journal"
	"eventsv2/test/attack/record"
)

func TestJournalReadsItsWrites(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "w1.journal")
	w, err := journal.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	want := []journal.Line{
		{Kind: journal.Start, Event: 7, Attempt: 3, At: time.Unix(5, 6).UTC(), Sum: record.Checksum([]byte("{}"))},
		{Kind: journal.End, Event: 7, Attempt: -3, At: time.Unix(7, 8).UTC(), Outcome: journal.Snoozed},
		{Kind: journal.Standstill, At: time.Unix(9, 0).UTC(), Until: time.Unix(10, 1).UTC()},
	}
	for _, line := range want {
		if err := w.Write(line); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	var got []journal.Line
	collect := func(line journal.Line) { got = append(got, line) }
	if err := journal.Read(path, collect); err != nil || !slices.Equal(got, want) {
		t.Errorf("read %v, want %v: %v", got, want, err)
	}
	if err := journal.Read(path+".missing", collect); err != nil {
		t.Errorf("a missing journal: %v", err)
	}
	if err := os.WriteFile(path, []byte(`{"kind":"start","event":`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := journal.Read(path, collect); err == nil || !strings.Contains(err.Error(), "w1.journal:1") {
		t.Errorf("a broken line: %v", err)
	}
}
