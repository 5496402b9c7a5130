package eventstest

// SetMostRuns has Drain take fewer runs for one that has no end.
func (q *Queue) SetMostRuns(n int) { q.mostRuns = n }
