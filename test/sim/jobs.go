package sim

import (
	"eventsv2/cronchecker"
	"eventsv2/eventqueue"
)

// jobs are the names of the handlers; the events of poison kill their workers.
var jobs = [...]string{"a", "b", "c", "d"}

const poison = "poison"

// crons are the names of the definitions, by policy.
var crons = [...]cronchecker.Missed{cronchecker.MissedAll, cronchecker.MissedLatest, cronchecker.MissedNone}

func (w *world) keys() []eventqueue.HandlerKey {
	var keys []eventqueue.HandlerKey
	for _, name := range jobs {
		keys = append(keys, eventqueue.HandlerKey{Module: "WORKER", Name: name, Modifier: "_"})
	}
	keys = append(keys, eventqueue.HandlerKey{Module: "WORKER", Name: poison, Modifier: "_"})
	for _, policy := range crons {
		keys = append(keys, eventqueue.HandlerKey{Module: cronchecker.Module, Name: string(policy), Modifier: cronchecker.Modifier})
	}
	return keys
}

// heldJobs are the handlers that stay paused after the attack.
var heldJobs = jobs[:2]

// foreign is the name of a handler that nobody has.
const foreign = "foreign"

// typedModule is that of the typed events.
const typedModule = "RECORD"
