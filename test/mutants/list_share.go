package main

// shareMutants are about the share of every canvas.
func shareMutants() []mutant {
	const share, runs, store = "eventqueue/worker/fairness.go", "eventqueue/worker/runs.go", "eventqueue/pgstore/runnable.go"
	const served, may = "TestAFullWorkerServesOtherCanvases", "TestRunnableIsWhatMayBeClaimed"
	return []mutant{
		{"share-off", "I15", share, change("if !f.isFull() {", "if !f.isFull() || len(after.Name) < 99 {"), protocol(served)},
		{"share-of-the-busy-canvas", "I15", runs, change("n*len(count) >= r.count", "n*len(count) < 0"), protocol(served)},
		{"share-asks-while-there-is-room", "I12", runs, change("busy := max(r.count-r.givenUp, r.begun) >= enough", "busy := enough > 0"),
			protocol("TestAWorkerThatIsNotFullAsksNothing")},
		{"share-keeps-its-slots", "I13 I15", "eventqueue/worker/release.go", change("\tr.reserved.vacate(reserved)\n", ""), protocol(served)},
		{"share-of-the-paused", "I15", store, change("AND NOT ` + mayrun.HandlerRuledSQL", "AND (SELECT true) OR ` + mayrun.HandlerRuledSQL"), stored(may)},
		{"share-of-the-early", "I15", store, change(`mayrun.DueSQL("delay_until", "now")`, `"true"`), stored(may)},
		{"share-of-the-running", "I15", store, change(`mayrun.UnlockedSQL("locked_at", mayrun.ValidSinceSQL("now"))`, `"true"`), stored(may)},
		{"share-ends-with-the-first-page", "I15", store, change("WHERE n = $5", "WHERE n > $5"), stored("TestRunnableReachesEveryCanvas")},
	}
}
