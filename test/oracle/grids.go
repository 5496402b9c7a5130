package oracle

import (
	"maps"
	"slices"

	"eventsv2/eventqueue/machine"
)

// checkGrid judges the runs of a grid by the calls of its actions and by the outputs that were stored.
func (j *judgement) checkGrid(l *life) {
	type call struct {
		action  string
		attempt int32
	}
	stored, called, done := map[string]*Record{}, map[call]bool{}, map[call]*Record{}
	for _, r := range l.records {
		if r.Kind != ActionBegun && r.Kind != ActionDone && r.Kind != ActionStored {
			continue
		}
		action := r.Actions[0]
		before, of := stored[action], call{action, r.Attempt}
		switch r.Kind {
		case ActionBegun:
			if called[of] {
				j.accuse(l, "grids", "action %s was called twice with token %d", action, r.Attempt)
			}
			called[of] = true
			// A run that has lost its claim may not know of it.
			if before != nil && l.claimedSince(before, r.Attempt) {
				j.accuse(l, "grids", "action %s was called again with token %d, and its output had been stored at %s", action, r.Attempt, before.At.UTC().Format(clock))
			}
			for _, from := range slices.Sorted(maps.Keys(r.Took)) {
				if origin := stored[from]; origin == nil || origin.Value != r.Took[from] {
					j.accuse(l, "grids", "action %s took %q as the output of %s, which was not stored", action, r.Took[from], from)
				}
			}
		case ActionDone:
			done[of] = r
		case ActionStored:
			if before != nil {
				j.accuse(l, "grids", "action %s has a second output, %q after %q", action, r.Value, before.Value)
			}
			stored[action] = r
		}
	}
	for _, h := range l.holds {
		run := l.starts[h.claim.Attempt]
		if run == nil || run.Actions == nil || h.end == nil {
			continue
		}
		for _, action := range run.Actions {
			if h.end.Label == machine.ExecutesToCompletion && stored[action] == nil {
				j.accuse(l, "grids", "the run with token %d was completed, and its action %s was not", h.claim.Attempt, action)
			}
			if r := done[call{action, h.claim.Attempt}]; r != nil && stored[action] == nil && !j.excused(l, &hold{claim: h.claim, lockedAt: r.At, next: h.end}) {
				j.accuse(l, "grids", "action %s put out %q with token %d, and that was not stored", action, r.Value, h.claim.Attempt)
			}
		}
	}
	if slices.Contains(j.Final.Outputs, l.id) && l.ended != nil && !isFailure(l.ended.Label) {
		j.accuse(l, "grids", "it was completed, and outputs of its actions are left")
	}
}

// claimedSince reports whether the claim of an attempt came after an output was stored.
func (l *life) claimedSince(stored *Record, attempt int32) bool {
	return slices.ContainsFunc(l.holds, func(h *hold) bool { return h.claim.Attempt == attempt && h.claim.At.After(stored.At) })
}
