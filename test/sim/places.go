package sim

import "eventsv2/eventqueue/worker"

// A row that was written since it was claimed may be at the same place again, where Postgres has pruned the page
// meanwhile. When it does depends on what transactions of other databases run, so that a seed would have two
// traces. So only places that must still be right are used; what a wrong one costs is tested in package pgstore.

// rememberWrites notes how often the rows that a process has claimed have been written.
func (p *process) rememberWrites(found []worker.ClaimResult) {
	for _, f := range found {
		if f.Facts.Claimed {
			p.claimed[f.Event.ID] = p.w.row(f.Event.ID).Writes
		}
	}
}

// forgetPlaces has rows that were written since their claims found by their ids.
func (p *process) forgetPlaces(ends []worker.Completion) {
	for i, end := range ends {
		if p.claimed[end.Event] != p.w.tables.writesBefore(end.Event) {
			ends[i].RowID = 0
		}
	}
}
