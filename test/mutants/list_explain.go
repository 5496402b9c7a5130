package main

// explainMutants have an event explained by something else than what a worker would meet first.
func explainMutants() []mutant {
	const (
		explain = "eventqueue/inspect/explain.go"
		texts   = "eventqueue/inspect/explaintexts.go"
		table   = "TestEveryCauseAndEachTwoAreExplained"
		limits  = "eventqueue/inspect/explainlimits.go"
		room    = "TestOnlyLimitsWithoutRoomAreNamed"
		holder  = "TestOnlyAWorkerThatMayLiveRunsAnEvent"
	)
	return []mutant{
		{"explained-as-free-before-it-joins", "I13", "eventqueue/inspect/show.go", change("IN (1, 3) OR ` + mayrun.NeedsGroupSQL + `)", "IN (1, 3))"), stored("TestExplainAgreesWithClaimsOnLimits")},
		{"explained-behind-the-delayed", "I13", "eventqueue/inspect/show.go", change("WHERE stage = 1 OR x.id IS NULL", "WHERE stage > 0 OR x.id IS NULL"), stored("TestExplainAgreesWithClaimsOnLimits")},
		{"explained-behind-those-after-it", "I13", "eventqueue/inspect/show.go", change("AND NOT g.admitted AND g.event_id < e.id", "AND NOT g.admitted AND g.event_id <> e.id"), stored("TestExplainAgreesWithClaimsOnOrder")},
		{"explained-without-who-writes-its-row", "I13", explain, change("l.transactionid = e.xmax", "l.transactionid <> e.xmax"), stored("TestExplainAgreesWithClaimsOnLockedRows")},
		{"explained-block-hides-the-pause", "I7", explain, change("if rule.Type == machine.PauseRule {", "if rule.Type == machine.NoRule {"), inspecting(table)},
		{"explained-without-its-group", "I13", explain, change("Waits: f.shown.Group != nil}", "Waits: false}"), inspecting(table)},
		{"explained-by-an-expired-lock", "I4", explain, change("if m.LockRemaining > 0 {", "if m.LockRemaining != 0 {"), inspecting("TestNotificationsAreExplained")},
		{"explained-by-dead-workers", "I13", explain, change("case w.State != WorkerLive && knows:", "case w.State == WorkerLive && !knows:"), inspecting("TestWorkersAreCounted")},
		{"explained-as-run-by-the-dead", "I4", explain, change("w.State != WorkerLive\n}", "w.State == WorkerStopped\n}"), inspecting(holder)},
		{"explained-as-run-under-an-expired-lock", "I4", explain, change("f.lockExpires().After(e.AsOf) && ", ""), inspecting(holder)},
		{"explained-without-the-holders-handler", "I13", explain, change("f.knowing > 0 || f.runs()", "f.knowing > 0"), inspecting(holder)},
		{"a-dead-holder-promises-a-relay", "I13", texts, change("if !f.relayRuns {\n\t\tremedy", "if f.relayRuns {\n\t\tremedy"), inspecting(holder)},
		{"explained-by-limits-with-room", "limit", limits, change("l.MinuteUsed >= int64(l.PerMinute)", "l.MinuteUsed >= 0"), inspecting(room)},
		{"explained-without-the-limit-of-the-day", "limit", limits, change("l.DayUsed >= int64(l.PerDay)", "l.DayUsed > int64(l.PerDay)"), inspecting(room)},
		{"a-remedy-removes-the-limit-of-the-day", "limit", limits, change("if l.PerDay > 0 {\n\t\tcommand", "if dayFull(l) {\n\t\tcommand"), inspecting(room)},
		{"a-remedy-for-another-handler", "limit", limits, change("if !l.WholeCanvas() {\n\t\tcommand", "if l.WholeCanvas() {\n\t\tcommand"), inspecting(room)},
		{"explained-without-its-failure", "I9", texts, change("newest.Attempt == e.Attempts:", "newest.Attempt > e.Attempts:"), inspecting("TestEveryOtherLabelIsExplained")},
		{"explained-without-the-relay", "I13", texts, change("case e.NotifiedAt == nil && !f.relayRuns:", "case e.NotifiedAt == nil && f.relayRuns:"), inspecting("TestNotificationsAreExplained")},
		{"cancelled-is-explained-as-a-failure", "I1", texts, change("return Reason{Cancelled, ", "return Reason{machine.FailedForGood, "), inspecting("TestACancellationIsExplained")},
		{"cancelled-by-nobody", "I1", texts, change(`if l.Actor != "" {`, "if false {"), inspecting("TestACancellationIsExplained")},
		{"reads-are-compiled", "I12", "eventqueue/inspect/reader.go", change("reading.NoJIT = true", "reading.NoJIT = false"), inspecting("TestReadsAreNotCompiled")},
	}
}
