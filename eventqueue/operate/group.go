package operate

import (
	"strings"

	"eventsv2/eventqueue"
)

// How the SQL function events_v2_group_key spells ordering groups. EveryKeyGroup stands for
// the groups of all keys in limits; KeyGroup is followed by the key.
const (
	EveryKeyGroup = "keys"
	KeyGroup      = "key "

	canvasGroup   = "canvas"
	handlerGroup  = "handler "
	handlerBreaks = "\x1f" // between module and name
)

// Group is the name, in the database, of the ordering group that the limit is for.
func (l ConcurrencyLimit) Group() string {
	switch {
	case l.EveryKey:
		return EveryKeyGroup
	case l.Key != "":
		return KeyGroup + l.Key
	case l.Module != "":
		return handlerGroup + l.Module + handlerBreaks + l.Name
	default:
		return canvasGroup
	}
}

// LimitOfGroup is the limit for an ordering group of a canvas, by the name that Group
// returns.
func LimitOfGroup(canvas eventqueue.CanvasID, group string, most int) ConcurrencyLimit {
	limit := ConcurrencyLimit{Canvas: canvas, EveryKey: group == EveryKeyGroup, Max: most}
	if handler, is := strings.CutPrefix(group, handlerGroup); is {
		limit.Module, limit.Name, _ = strings.Cut(handler, handlerBreaks)
	}
	if key, is := strings.CutPrefix(group, KeyGroup); is {
		limit.Key = key
	}
	return limit
}
