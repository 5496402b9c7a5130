package main

import (
	"cmp"
	"slices"
	"time"
)

// runs are all runs of a label's events, by their beginning.
func (r *rig) runs(label string) (all []visit) {
	for _, e := range r.of(label) {
		all = append(all, r.target.of(e.id)...)
	}
	slices.SortFunc(all, func(a, b visit) int { return a.began.Compare(b.began) })
	return all
}

// inOrder looks at the runs of each ordering key: none begins before the ones that
// were emitted before it have ended.
func (r *rig) inOrder(label string) { r.inOrderOf(label, every) }

// every run counts.
func every(visit) bool { return true }

// inOrderOf is inOrder of some of the runs.
func (r *rig) inOrderOf(label string, counts func(visit) bool) {
	lines := map[string][]*entry{}
	for _, e := range r.of(label) {
		lines[e.key] = append(lines[e.key], e)
	}
	for key, line := range lines {
		slices.SortFunc(line, func(a, b *entry) int { return cmp.Compare(a.id, b.id) })
		for i := 1; i < len(line); i++ {
			before, after := r.visitsOf(line[i-1], counts), r.visitsOf(line[i], counts)
			if len(before) == 0 || len(after) == 0 {
				continue // which awaitDone has said
			}
			if last := before[len(before)-1]; after[0].began.Before(last.ended) {
				r.failf("in line %s event %s began at %s, before event %s had ended at %s", key, line[i].id,
					after[0].began.Format(clockFormat), line[i-1].id, last.ended.Format(clockFormat))
				return
			}
		}
	}
}

// visitsOf are those runs of an event that count.
func (r *rig) visitsOf(e *entry, counts func(visit) bool) []visit {
	return slices.DeleteFunc(r.target.of(e.id), func(v visit) bool { return !counts(v) })
}

// atMost looks at how many runs of a label went on at once.
func (r *rig) atMost(label string, limit int) { r.atMostOf(label, limit, every) }

// atMostOf is atMost of some of the runs.
func (r *rig) atMostOf(label string, limit int, counts func(visit) bool) {
	runs := slices.DeleteFunc(r.runs(label), func(v visit) bool { return !counts(v) })
	most := 0
	for _, v := range runs {
		at := 0
		for _, other := range runs {
			// A run whose worker died goes on for the target until it notices.
			if !other.began.After(v.began) && other.ended.After(v.began) && (other.status != 0 || other == v) {
				at++
			}
		}
		most = max(most, at)
	}
	r.figure("%s_at_once=%d", label, most)
	if most > limit {
		r.failf("%d runs of events %s at once, and the limit is %d", most, label, limit)
	}
}

// untilWindow is how long it takes to the end of the n-th window of a rate limit per minute, this one
// counted. What is granted to a run that is lost stays counted, in this window and in the next,
// and what is granted begins any time within the window: a scenario that begins with a minute waits
// longer than one that begins at its end.
func untilWindow(n int) time.Duration {
	return time.Until(time.Now().Truncate(time.Minute).Add(time.Duration(n) * time.Minute))
}

// perMinute looks at how many runs of a label have begun by the end of each minute since
// the first event was emitted: what is granted in one may begin later, but never before. Over is
// what an approximate limit may be exceeded by, once: later windows have so much less.
func (r *rig) perMinute(label string, limit, over int) {
	runs := r.runs(label)
	if len(runs) == 0 {
		return // which awaitDone has said
	}
	// A run may begin in the minute after the one in which it was granted, also the first.
	first := r.of(label)[0].due.Unix() / 60
	for i, v := range runs {
		if windows := int(v.began.Unix()/60-first) + 1; i+1 > windows*limit+over {
			r.failf("%d runs of events %s had begun in the %d. minute, and the limit is %d per minute", i+1, label, windows, limit)
			return
		}
	}
}
