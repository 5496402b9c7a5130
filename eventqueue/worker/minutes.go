package worker

import (
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/minutes"
)

// runCounts collects the runs of a batch whose ends were written, for the minutes that the queue
// hands in.
type runCounts []minutes.CountedRun

// add counts a run that ended with a label. Events that were released, snoozed or put off by a limit
// are not counted, and neither are runs whose ends the fence has refused: the worker that has the
// event counts it.
func (c *runCounts) add(event *eventqueue.Event, label machine.Label, waited, took time.Duration) {
	run := minutes.CountedRun{Waited: waited, Took: took}
	switch label {
	case machine.ExecutesToCompletion:
		run.End = minutes.RunCompleted
	case machine.RetryTooMany, machine.FailedForGood:
		run.End = minutes.RunFailed
	case machine.RetryAllowed:
		run.End = minutes.RunRetried
	default:
		return
	}
	run.Scope = eventqueue.Scope{Canvas: event.Canvas, Module: event.Module, Name: event.Name}
	*c = append(*c, run)
}
