package main

import (
	"testing"

	"eventsv2/test/walls"
)

// TestNoLargeCycles holds this module to the measure of the others.
func TestNoLargeCycles(t *testing.T) {
	t.Parallel()
	large, measured, err := walls.LargeCycles(t.Context(), ".")
	if err != nil || measured == 0 {
		t.Fatal(measured, err)
	}
	for _, cycle := range large {
		t.Error(cycle)
	}
}
