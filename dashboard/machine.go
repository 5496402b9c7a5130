package dashboard

import (
	"slices"

	"eventsv2/eventqueue/inspect"
	"eventsv2/eventqueue/machine"
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

// wayOf is the way of an event. One that was cancelled while it waited has taken none: that is a change by hand, and no
// arrow of the machine.
func wayOf(e inspect.Explanation) picture {
	if ended := e.Shown.Logged; ended != nil && ended.Status == inspect.LogCancelled {
		p := drawn(nil)
		p.Text = "Queue, where it was cancelled"
		return p
	}
	return way(e.Because().Label)
}

// way draws the machine with the shortest way to the arrow with a label.
func way(label machine.Label) picture { return drawn(pathTo(label)) }

// drawn draws the machine with the arrows that were taken.
func drawn(taken []machine.Arrow) picture {
	p := picture{Width: columnWidth}
	reached := map[machine.State]bool{machine.Queue: true}
	for _, a := range taken {
		reached[a.From], reached[a.To] = true, true
		p.Text += string(a.From) + " " + string(a.Label) + ", "
	}
	if len(taken) > 0 {
		p.Text += string(taken[len(taken)-1].To)
	}
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
