package intake_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"eventsv2/internal/intake"
)

// TestOldestReadingMakesRoom: bodies that are being read are cut off, the oldest first; bodies that have been read are not.
func TestOldestReadingMakesRoom(t *testing.T) {
	t.Parallel()
	in := intake.New(30)
	var cut []string
	reserve := func(name string, bytes int64) *intake.Reservation {
		return in.Reserve("", bytes, func() { cut = append(cut, name) })
	}
	read, oldest, newer := reserve("read", 10), reserve("oldest", 10), reserve("newer", 10)
	if !read.StopReading() {
		t.Fatal("a body was cut off while there was room")
	}
	last := reserve("last", 10)
	if last == nil || len(cut) != 1 || cut[0] != "oldest" {
		t.Fatalf("%v were cut off", cut)
	}
	if oldest.StopReading() || !newer.StopReading() || !last.StopReading() {
		t.Error("not only the oldest was cut off")
	}
	if reserve("too much", 1) != nil {
		t.Error("there is room beyond the bound")
	}
	oldest.Free() // has given back its room before
	if reserve("too much", 1) != nil {
		t.Error("room is given back twice")
	}
	read.Free()
	if reserve("next", 10) == nil || len(cut) != 1 {
		t.Errorf("freed room is not used: %v were cut off", cut)
	}
}

// TestNoReaderIsCutOffInVain: where bodies that have been read take too much room, those that are being read are not cut off.
func TestNoReaderIsCutOffInVain(t *testing.T) {
	t.Parallel()
	in := intake.New(30)
	in.Reserve("", 25, nil).StopReading()
	reading := in.Reserve("", 5, func() { t.Error("a body is cut off, and it does not help") })
	if in.Reserve("", 10, nil) != nil {
		t.Error("there is room beyond the bound")
	}
	if !reading.StopReading() {
		t.Error("it is not being read any more")
	}
}

// TestLargestSenderMakesRoom: a sender's own bodies make room for more of them, and not those of a sender who takes less.
func TestLargestSenderMakesRoom(t *testing.T) {
	t.Parallel()
	in := intake.New(30)
	var cut []string
	reserve := func(sender, name string, bytes int64) *intake.Reservation {
		return in.Reserve(sender, bytes, func() { cut = append(cut, name) })
	}
	modest := reserve("modest", "modest", 8)
	for _, name := range []string{"1", "2", "3", "4"} {
		if reserve("greedy", name, 10) == nil {
			t.Fatalf("there is no room for %s", name)
		}
	}
	if reserve("greedy", "too large", 23) != nil {
		t.Error("a sender has room that another one takes")
	}
	second := reserve("modest", "second", 8)
	if want := []string{"1", "2", "3"}; !slices.Equal(cut, want) {
		t.Errorf("%v were cut off, want %v", cut, want)
	}
	if !modest.StopReading() || !second.StopReading() {
		t.Error("bodies of who takes less were cut off")
	}
}

// TestSizeCountsBodyAndHeader of a request, with the largest body where its length is unknown.
func TestSizeCountsBodyAndHeader(t *testing.T) {
	t.Parallel()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", nil)
	for length, want := range map[int64]int64{-1: 1000, 0: 0, 7: 7} {
		r.ContentLength = length
		if got := intake.SizeOf(r, 1000); got != intake.RequestBytes+want {
			t.Errorf("length %d: %d bytes", length, got)
		}
	}
	small := intake.SizeOf(r, 1000)
	r.Header.Set("X-Large", string(make([]byte, 5000)))
	if got := intake.SizeOf(r, 1000); got < small+5000 {
		t.Errorf("a header of 5,000 bytes takes %d", got-small)
	}
}
