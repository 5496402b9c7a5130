package oracle

import (
	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
)

// checkChains counts the children of the events that have some: those of one that was
// completed are there once each, and those of any other are not.
func (j *judgement) checkChains() {
	children := map[eventqueue.EventID]map[eventqueue.HandlerKey]int{}
	for _, id := range j.order {
		l := j.lives[id]
		if l.emitted == nil || l.emitted.Parent == 0 {
			continue
		}
		of := children[l.emitted.Parent]
		if of == nil {
			of = map[eventqueue.HandlerKey]int{}
			children[l.emitted.Parent] = of
		}
		of[l.emitted.Handler]++
		if parent := j.lives[l.emitted.Parent]; parent == nil || parent.emitted == nil {
			j.accuse(l, "chains", "its parent, event %s, was never emitted", l.emitted.Parent)
		}
	}
	for _, id := range j.order {
		l := j.lives[id]
		if l.emitted == nil {
			continue
		}
		want := 0
		if l.ended != nil && l.ended.Label == machine.ExecutesToCompletion {
			want = 1
		}
		for _, key := range l.emitted.Children {
			if got := children[id][key]; got != want {
				j.accuse(l, "chains", "it has %d children for %s: there must be %d", got, key, want)
			}
			delete(children[id], key)
		}
		for key, n := range children[id] {
			j.accuse(l, "chains", "it has %d children for %s, which it must not have", n, key)
		}
	}
}
