package main

import (
	"net/http"
	"testing"

	"eventsv2/test/testenv"
)

// TestEventRefusedTwiceCountsOnce: its worker was killed in between.
func TestEventRefusedTwiceCountsOnce(t *testing.T) {
	t.Parallel()
	ctx := testenv.Context(t)
	target, err := startTarget(ctx, true)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if status := target.decide(7, []byte(`{`+refusalMark+`}`)); status != http.StatusUnprocessableEntity {
			t.Errorf("the status is %d", status)
		}
	}
	if err := target.server.Stop(ctx); err != nil {
		t.Error(err)
	}
	if n := target.tally().refused; n != 1 {
		t.Errorf("%d events were refused, want 1", n)
	}
}
