package main

import (
	"fmt"
	"testing"
)

func TestClosedGateHoldsEvents(t *testing.T) {
	t.Parallel()
	g := newGate()
	if held, doFirst := g.enter("a", 1); held != nil || doFirst {
		t.Error("an open gate holds an event")
	}
	full := g.close(3)
	_, first := g.enter("b", 2)
	_, second := g.enter("b", 3)
	select {
	case <-full:
		t.Error("the gate is full after 2 of 3")
	default:
	}
	held, _ := g.enter("a", 4)
	<-full
	if first || !second {
		t.Errorf("done before the wait: %v and %v, want false and true", first, second)
	}
	if g.busiest() != "b" {
		t.Errorf("busiest: got %s, want b", g.busiest())
	}
	if ids := g.open("b"); fmt.Sprint(ids) != "[2 3]" {
		t.Errorf("held by b: got %v", ids)
	}
	<-held
	if held, _ := g.enter("a", 5); held != nil {
		t.Error("the gate still holds after it was opened")
	}
}
