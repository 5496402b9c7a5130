package memstore

import (
	"eventsv2/eventqueue"
	"eventsv2/eventqueue/operate"
)

// The state of a row in its ordering groups, as in the column group_state.
const (
	groupNone    = 0 // it is in no group, and needs none unless there is a limit
	groupWaiting = 1
	groupMayRun  = 2
	groupLater   = 3 // it joins its group when it is due and is claimed
)

// The stages that an event passes, one after the other.
const (
	stageKey     = 1
	stageHandler = 2
	stageCanvas  = 3
)

// group names an ordering group, as events_v2_group_key does.
type group struct {
	canvas eventqueue.CanvasID
	name   string
}

// groupOf is the group that a limit is for.
func groupOf(l operate.ConcurrencyLimit) group { return group{l.Canvas, l.Group()} }

// groupAt is the group that an event is in at a stage.
func (r *Row) groupAt(stage int) group {
	switch stage {
	case stageKey:
		return group{r.Canvas, operate.KeyGroup + r.OrderingKey}
	case stageHandler:
		return groupOf(operate.ConcurrencyLimit{Canvas: r.Canvas, Module: r.Module, Name: r.Name})
	default:
		return groupOf(operate.ConcurrencyLimit{Canvas: r.Canvas})
	}
}

// stages are the stages at which an event is in a group, with limits or without.
func (r *Row) stages() []int {
	if r.OrderingKey == "" {
		return []int{stageHandler, stageCanvas}
	}
	return []int{stageKey, stageHandler, stageCanvas}
}

// placeID names a row of event_groups.
type placeID struct {
	event eventqueue.EventID
	stage int
}

// place is the rest of it.
type place struct {
	group  group
	mayRun bool
}
