package dashboard

import (
	"fmt"
	"slices"
	"strings"

	"eventsv2/eventqueue/inspect"
	"eventsv2/eventqueue/machine"
	"eventsv2/internal/printing"
)

// picture is the state machine as a column of states. Arrows to the next state run down the
// column, and all others leave to the right, with the name of the state that they lead to.
type picture struct {
	Width, Height int
	Boxes         []box
	Arrows        []arrow
	// Text is the way in words, for who cannot see the picture.
	Text string
}

type box struct {
	Name    string
	Y       int
	Reached bool
}

type arrow struct {
	Label, To    string
	Down         bool
	Y, End, Text int
	Taken        bool
}

// The sizes of the picture.
const (
	boxHeight   = 26
	stepHeight  = 20
	columnWidth = 370
)

// column lists the states as they stand below each other.
func column() []machine.State {
	return []machine.State{machine.Queue, machine.EventLoad, machine.PauseCheck, machine.DelayCheck, machine.LockCheck,
		machine.LockClaim, machine.Process, machine.RetryCheck, machine.Delete, machine.End}
}

// wayOf is the way of an event: of its last run, and of those that were tried again. One that was cancelled shows
// none: while it waits, that is a change by hand, and no arrow of the machine, and the history does not say whether it ran.
func wayOf(e inspect.Explanation) picture {
	ended := e.Shown.Logged
	if ended != nil && ended.Status == inspect.LogCancelled {
		p := drawn(nil, false)
		p.Text = "Queue, until it was cancelled"
		return p
	}
	last := pathTo(e.Because().Label)
	if ended != nil {
		last = append(last, machine.Arrow{From: machine.Delete, Label: machine.Deleted, To: machine.End})
	}
	text := inWords(last)
	if n := retriesOf(e.Shown); n > 0 {
		again := pathTo(machine.RetryAllowed)
		text = fmt.Sprintf("%s: %s; then %s", printing.Plural(n, "time"), inWords(again), text)
		last = append(again, last...)
	}
	p := drawn(last, ended != nil)
	p.Text = text
	return p
}

// retriesOf is how often an event was tried again after a run had failed.
func retriesOf(s inspect.Shown) int {
	switch {
	case s.Logged != nil:
		return s.Logged.Retries
	case s.Queued != nil:
		return s.Queued.Retries
	default:
		return 0
	}
}

// inWords is a way for those who cannot see the picture.
func inWords(way []machine.Arrow) string {
	var b strings.Builder
	for _, a := range way {
		b.WriteString(string(a.From) + " " + string(a.Label) + ", ")
	}
	if len(way) > 0 {
		b.WriteString(string(way[len(way)-1].To))
	}
	return b.String()
}

// drawn draws the machine with the arrows that were taken. An arrow may lead to End for a notification whose event waits
// on: End is reached by events that have ended.
func drawn(taken []machine.Arrow, ended bool) picture {
	p := picture{Width: columnWidth}
	reached := map[machine.State]bool{machine.Queue: true}
	for _, a := range taken {
		reached[a.From], reached[a.To] = true, true
	}
	reached[machine.End] = ended
	y, states := 4, column()
	for i, state := range states {
		p.Boxes = append(p.Boxes, box{Name: string(state), Y: y, Reached: reached[state]})
		below, side := y+boxHeight, y
		var down []int
		for _, a := range machine.Arrows() {
			if a.From != state {
				continue
			}
			next := arrow{Label: string(a.Label), To: string(a.To), Taken: slices.ContainsFunc(taken, func(t machine.Arrow) bool { return t.From == a.From && t.Label == a.Label })}
			if len(down) == 0 && i+1 < len(states) && a.To == states[i+1] {
				next.Down = true
				down = append(down, len(p.Arrows))
			} else {
				next.Y, next.Text = side+boxHeight/2, side+boxHeight/2+4
				side += stepHeight
			}
			p.Arrows = append(p.Arrows, next)
		}
		y = max(below+stepHeight+10, side+stepHeight+6) // room for the label below the last arrow to the right
		for _, k := range down {
			p.Arrows[k].Y, p.Arrows[k].End, p.Arrows[k].Text = below, y, y-8
		}
	}
	p.Height = y - 10
	return p
}

// pathTo is the shortest way from the queue that ends with an arrow of the label.
func pathTo(label machine.Label) []machine.Arrow {
	arrows := machine.Arrows()
	ways := [][]machine.Arrow{nil}
	seen := map[machine.State]bool{machine.Queue: true}
	for len(ways) > 0 {
		path := ways[0]
		ways = ways[1:]
		at := machine.Queue
		if len(path) > 0 {
			at = path[len(path)-1].To
		}
		for _, a := range arrows {
			if a.From != at {
				continue
			}
			longer := append(slices.Clone(path), a)
			if a.Label == label {
				return longer
			}
			if !seen[a.To] {
				seen[a.To] = true
				ways = append(ways, longer)
			}
		}
	}
	return nil
}
