package journal_test

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"eventsv2/test/attack/chaos/journal"
)

func TestWhatIsWrittenIsRead(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "w1.journal")
	w, err := journal.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	start := journal.Start{Event: 7, Attempt: 3, At: time.Unix(5, 6), Sum: journal.Checksum([]byte("{}"))}
	end := journal.End{Event: 7, Attempt: -3, At: time.Unix(7, 8), Outcome: journal.Snoozed}
	still := journal.Still{From: time.Unix(9, 0), To: time.Unix(10, 1)}
	for _, err := range []error{w.Start(start), w.End(end), w.Still(still), w.Close()} {
		if err != nil {
			t.Fatal(err)
		}
	}
	var got []any
	reader := journal.Reader{
		Start: func(s journal.Start) { got = append(got, s) },
		End:   func(e journal.End) { got = append(got, e) },
		Still: func(s journal.Still) { got = append(got, s) },
	}
	if err := reader.Read(path); err != nil {
		t.Fatal(err)
	}
	if want := []any{start, end, still}; !reflect.DeepEqual(got, want) {
		t.Errorf("read %v, want %v", got, want)
	}
	if err := reader.Read(path + ".missing"); err != nil {
		t.Errorf("a missing journal: %v", err)
	}
	if err := os.WriteFile(path, []byte("S 1 2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := reader.Read(path); err == nil || !strings.Contains(err.Error(), "w1.journal:1") {
		t.Errorf("a broken line: %v", err)
	}
}
