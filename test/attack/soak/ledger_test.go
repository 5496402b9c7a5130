package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"eventsv2/cronchecker"
)

func TestBalance(t *testing.T) {
	t.Parallel()
	l := newLedger()
	first := l.issue(100)
	if next := l.issue(100); first != 0 || next != 100 {
		t.Fatalf("serial numbers begin at %d and %d, want 0 and 100", first, next)
	}
	l.emitted(0, 100, nil)
	l.emitted(100, 100, errors.New("no answer"))
	for n := range int64(100) {
		if n == 64 {
			continue // lost
		}
		if err := l.done(module, valueOf(n)); err != nil {
			t.Fatal(err)
		}
	}
	for _, n := range []int64{3, 150} { // one again, one whose outcome was unknown
		if err := l.done(module, valueOf(n)); err != nil {
			t.Fatal(err)
		}
	}
	a := l.balance(nil)
	if a.accepted != 100 || a.losses != 1 || a.again != 1 || a.unsure != 1 || a.refused != 1 || !strings.Contains(a.lost[0], " 64 ") {
		t.Errorf("got %+v", a)
	}
}

func TestLostSlots(t *testing.T) {
	t.Parallel()
	l := newLedger()
	minute := func(n int) time.Time { return time.Date(2026, 11, 21, 5, n, 0, 0, time.UTC) }
	for _, n := range []int{1, 2, 2} {
		if err := l.done(cronchecker.Module, fmt.Appendf(nil, `{"cron_id":1,"slot":%q}`, minute(n).Format(time.RFC3339))); err != nil {
			t.Fatal(err)
		}
	}
	if a := l.balance([]time.Time{minute(1), minute(2)}); a.losses != 0 || a.again != 1 || a.ticks != 2 {
		t.Errorf("got %+v", a)
	}
	slots := []time.Time{minute(1), minute(2), minute(3)}
	if a := l.balance(slots); a.losses != 1 || l.allTicked(slots) || !l.allTicked(slots[:2]) {
		t.Errorf("got %+v", a)
	}
}

func TestAForgedValueIsALoss(t *testing.T) {
	t.Parallel()
	good := string(valueOf(77))
	for _, value := range []string{"", "null", "{}", strings.Replace(good, "7ö", "7o", 1), good + " ", string(valueOf(100)), `{"serial":-1}`} {
		l := newLedger()
		l.issue(100)
		if err := l.done(module, []byte(value)); err == nil {
			t.Errorf("%q was taken", value)
		}
		if a := l.balance(nil); a.losses != 1 {
			t.Errorf("%q: %+v", value, a)
		}
	}
	l := newLedger()
	if err := l.done(cronchecker.Module, []byte("x")); err == nil || l.balance(nil).losses != 1 {
		t.Error("a cron event that nobody can read was taken")
	}
}

func TestManyLossesAreCountedAndSomeNamed(t *testing.T) {
	t.Parallel()
	l := newLedger()
	l.emitted(l.issue(1000), 1000, nil)
	if a := l.balance(nil); a.losses != 1000 || len(a.lost) != maxNamed {
		t.Errorf("%d losses, of which %d are named", a.losses, len(a.lost))
	}
}

func TestTheListenerReadsReports(t *testing.T) {
	t.Parallel()
	l := newLedger()
	l.emitted(l.issue(3), 3, nil)
	heard := &listener{ledger: l}
	if got := heard.last(); got.Goroutines != 0 {
		t.Error("it has heard something before it listened")
	}
	var text strings.Builder
	r := &reporter{out: json.NewEncoder(&text)}
	lines := []report{{Module: cronchecker.Module, Value: []byte(`{"slot":"2026-11-21T05:00:00Z"}`)}, {Goroutines: 31, Heap: 4096}}
	for serial := range int64(3) {
		lines = append(lines, report{Module: module, Value: valueOf(serial)})
	}
	for _, line := range lines {
		if err := r.write(line); err != nil {
			t.Fatal(err)
		}
	}
	heard.listen(strings.NewReader(text.String() + "no report\n"))
	if got := heard.last(); got.Goroutines != 31 || got.Heap != 4096 {
		t.Errorf("got %+v", got)
	}
	if a := l.balance(nil); a.losses != 0 || a.accepted != 3 || a.ticks != 1 {
		t.Errorf("got %+v", a)
	}
}
