package emit

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/test/attack/chaos/check"
	"eventsv2/test/attack/chaos/task"
)

// drawEvent draws an event: most are quick and end well.
func (f form) drawEvent(random *rand.Rand, canvases []eventqueue.CanvasID, tag string) eventqueue.NewEvent {
	t := task.Task{Tag: tag, Do: task.Succeed, WorkMillis: random.IntN(30), Filler: strings.Repeat("ä€", random.IntN(40))}
	name := "quick"
	if random.IntN(3) == 0 {
		name = "busy"
	}
	switch n := random.IntN(1000); {
	case n < 50:
		t.Do, t.Times = task.Fail, 1+random.IntN(2)
	case n < 70:
		t.Do, t.Times = task.Panic, 1
	case n < 80:
		t.Do = task.Permanent
	case n < 83: // never succeeds
		t.Do, t.Times = task.Fail, 1000
	case n < 110:
		t.Do, t.Times = task.Snooze, 1
	case n < 115:
		name, t.Do, t.Times = "stubborn", task.Hang, 1
	case n < 118:
		name, t.Do, t.Times = "stubborn", task.Deaf, 1
	case n < 133: // a worker that is stopped should have some of these
		name, t.WorkMillis = "slow", int(check.LockTimeout.Milliseconds())*(100+random.IntN(100))/100
	case n < 200:
		t.Do = task.Complete
	case n < 210:
		t.Do, t.Times = task.Undo, 1
	}
	f.adapt(random, &t)
	canvas := f.features(random, &t, canvases)
	if t.Odd > 0 && check.OddRows()[t.Odd-1].Fate == check.FateStays {
		canvas = canvases[CanvasCount]
	}
	event := eventqueue.NewEvent{
		Canvas: canvas, Module: task.Module, Name: name, Modifier: "_", Value: t.Value(),
		OrderingKey: t.OrderingKey, UniqueKey: t.UniqueKey, UniqueFor: time.Duration(t.UniqueSeconds) * time.Second,
	}
	switch n := random.IntN(1000); {
	case n < 60:
		event.Delay = time.Duration(random.Int64N(int64(6 * time.Second)))
	case n < 70: // beyond what a notification can wait for
		event.Delay = farOff + time.Duration(random.Int64N(int64(time.Hour)))
	case n < 80:
		event.DelayUntil = time.Now().Add(time.Duration(random.Int64N(int64(3 * time.Second))))
	}
	return event
}

// adapt has a task ask for no more than its form can do.
func (f form) adapt(random *rand.Rand, t *task.Task) {
	if f.odd {
		t.Odd = 1 + random.IntN(len(check.OddRows()))
	}
	if !f.typed {
		return
	}
	// A typed event has handlers of its own, and its completion is in a transaction anyway.
	t.WorkMillis %= 30
	switch t.Do {
	case task.Hang, task.Deaf, task.Complete, task.Undo:
		t.Do, t.Times = task.Succeed, 0
	default:
	}
}

// CanvasCount is how many canvases there are, and one for the rows by hand that nobody can run, which nobody
// may change.
const CanvasCount = 8

// The features that some events use, each on canvases of its own. So the events that have
// to be checked together are few, and one history of the oracle holds them all.
const (
	orderingCanvases  = 2 // the first ones
	orderingKeys      = 20
	orderingShare     = 5 // one event in so many has an ordering key
	LimitedCanvas     = orderingCanvases
	uniqueCanvas      = LimitedCanvas + 1
	ExactCanvas       = uniqueCanvas + 1 // of rate limits
	ApproximateCanvas = ExactCanvas + 1
	uniqueKeys        = 10
	uniqueSeconds     = 3 // how long the key of every other event holds after its end
)

// features gives an event of a form the keys that it is to have, and the canvas on which
// they are checked.
func (f form) features(random *rand.Rand, t *task.Task, canvases []eventqueue.CanvasID) eventqueue.CanvasID {
	switch {
	case f.unique:
		t.UniqueKey, t.UniqueSeconds = fmt.Sprintf("unique-%d", random.IntN(uniqueKeys)), uniqueSeconds*random.IntN(2)
		if t.Do == task.Complete || t.Do == task.Undo {
			t.Do, t.Times = task.Succeed, 0 // how long such a transaction takes to commit is not on record
		}
		return canvases[uniqueCanvas]
	case !f.keyless && random.IntN(orderingShare) == 0:
		t.OrderingKey = fmt.Sprintf("key-%d", random.IntN(orderingKeys))
		return canvases[random.IntN(orderingCanvases)]
	default:
		return canvases[random.IntN(CanvasCount)]
	}
}

// farOff is a delay beyond what a notification can wait for.
const farOff = 700 * time.Second
