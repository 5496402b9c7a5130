package main

// shareMutants are about the share of every canvas.
func shareMutants() []mutant {
	const share, runs, store = "eventqueue/share.go", "eventqueue/runs.go", "eventqueue/pgstore/runnable.go"
	const served, may = "TestAFullWorkerServesOtherCanvases", "TestRunnableIsWhatMayBeClaimed"
	return []mutant{
		{"share-off", "I15", share, change("if !w.isFull() {", "if !w.isFull() || len(place.Name) < 99 {"), protocol(served)},
		{"share-of-the-busy-canvas", "I15", runs, change("n*len(count) >= r.count", "n*len(count) < 0"), protocol(served)},
		{"share-asks-while-there-is-room", "I12", runs, change("busy := max(r.count, r.begun) >= enough", "busy := enough > 0"),
			protocol("TestAWorkerThatIsNotFullAsksNothing")},
		{"share-keeps-its-slots", "I13 I15", "eventqueue/finish.go", change("\tw.spare.ended(spare)\n", ""), protocol(served)},
		{"share-of-the-paused", "I15", store, change("AND NOT EXISTS (", "AND (SELECT true) OR EXISTS ("), protocol(may)},
		{"share-of-the-early", "I15", store, change("WHERE line <> 1 AND delay_until <= now AND", "WHERE line <> 1 AND"), protocol(may)},
		{"share-of-the-running", "I15", store, change("locked_at <= now - $5::interval", "$5::interval IS NOT NULL"), protocol(may)},
		{"share-ends-with-the-first-page", "I15", store, change("WHERE n = $6", "WHERE n > $6"), protocol("TestRunnableReachesEveryCanvas")},
	}
}
