package main

// pendingMutants are about the account of notifications.
func pendingMutants() []mutant {
	const pendingFile, pending = "eventqueue/pgstore/pending.go", "eventqueue/pgstore/due.go"
	const once, lost = "TestAPendingNotificationIsTakenOnce", "TestWhatSeemsLost"
	const reserve, wakes, listens = "eventqueue/pgstore/reserve.go", "TestAFailedPublishWakesOthers", "TestTheConnectionOfHeartbeatsListens"
	const due = "UPDATE events_v2 e SET notified_at = clock_timestamp()\nWHERE e.id"
	const fair = "TestNobodyWaitsBehindAnotherCanvas"
	const round, between, lines = "eventqueue/pgstore/lost.go", "TestARoundFindsWhatStandsBetweenOwnEvents", "TestARoundComesByEveryGroup"
	const sweep = "UPDATE events_v2 e SET notified_at = clock.now"
	return []mutant{
		{"nothing-becomes-pending", "I1 I2", pendingFile, change("SET notified_at = NULL\n", "SET notified_at = e.notified_at\n"), stored(once)},
		{"marking-pending-wakes-no-relay", "I13 I19", pendingFile, change("AS channel WHERE EXISTS (SELECT FROM marked)", "AS channel WHERE false"), stored(wakes)},
		{"marking-nothing-wakes-the-relay", "I12", pendingFile, change("AS channel WHERE EXISTS (SELECT FROM marked)", "AS channel"), stored(wakes)},
		{"renewal-waits-for-the-listener", "I3 I13", reserve, change("if r.interrupt != nil {\n\t\tr.interrupt()", "if r.interrupt != nil && r.users < 0 {\n\t\tr.interrupt()"), stored(listens)},
		{"pending-before-listening-is-missed", "I19", reserve, change("r.fresh = true", "r.fresh = false"), stored(listens)},
		{"published-is-still-pending", "I11", pending,
			change(due, "UPDATE events_v2 e SET notified_at = e.notified_at\nWHERE e.id"), stored(once)},
		{"relay-takes-far-off-events", "I11", pending,
			change("AND delay_until <= (SELECT clock_timestamp() + $1::interval)", "AND $1::interval IS NOT NULL"), stored(once)},
		{"notify-pays-twice", "I11 I14", pending, change("ANY ($1::bigint[]) AND notified_at IS NULL AND", "ANY ($1::bigint[]) AND"), stored(once)},
		{"relay-waits-for-others", "I13 I15", pending, change("LIMIT $2\n    FOR UPDATE SKIP LOCKED", "LIMIT $2\n    FOR UPDATE"),
			stored("TestRelaysWaitForNobody")},
		{"relay-goes-by-age-alone", "I20", pending, change("s.due.behind = full", "s.due.behind = full && false"), stored(fair)},
		{"one-canvas-gets-the-whole-page", "I20", pending, change("LIMIT (SELECT $3 / count(*) FROM due)", "LIMIT (SELECT $3 FROM due LIMIT 1)"), stored(fair)},
		{"relay-stays-with-the-first-canvases", "I20", pending, change("	s.due.canvas = next\n", "	_ = next\n"), stored(fair)},
		{"sweep-ignores-rules", "I11", pendingFile, change(`AND NOT `+"`"+` + mayrun.RuledSQL("page")`, `AND NOT false AND `+"`"+` + "$4::interval IS NOT NULL"`), stored(lost)},
		{"sweep-takes-the-running", "I3 I11", pendingFile, change(`mayrun.UnlockedSQL("locked_at", mayrun.ValidSinceSQL("now", "$4"))`, `"$4::interval IS NOT NULL"`), stored(lost)},
		{"lost-worker-is-waited-for-twice", "I13", pendingFile, change("locked_at > ` + mayrun.ValidSinceSQL(\"last_notified\", \"$4\") + `\n          OR ` + silentSQL", "` + silentSQL"), stored(lost)},
		{"sweeps-interval-does-not-grow", "I11", pendingFile, change("least(greatest($3::interval, last_notified - due), $5", "least($3::interval, $5"), stored(lost)},
		{"sweeps-interval-grows-for-ever", "I13", pendingFile, change("least(greatest($3::interval, last_notified - due), $5 *", "greatest($3::interval, last_notified - due, 0 * $5 *"), stored(lost)},
		{"row-of-any-year-stops-the-sweep", "I15", pendingFile,
			change("THEN least(greatest(e.notified_at, 'epoch'), '9999-01-01 00:00Z') END AS last_notified", "THEN e.notified_at END AS last_notified"),
			stored("TestRowsOfAnyYearCostThemselvesOnly")},
		{"round-ends-with-the-first-handlers", "I20", round, change("FROM scopes WHERE n = $1\n", "FROM scopes WHERE n < 0 * $1\n"),
			stored("TestARoundComesByEveryHandler")},
		{"round-takes-all-that-is-lost", "I12 I20", round, change("id LIMIT $10", "id LIMIT 1000 * $10"), stored("TestAPartOfARoundIsBounded")},
		{"round-takes-of-one-canvas-first", "I20", round, change("ORDER BY row_number() OVER (PARTITION BY canvas_id ORDER BY id), id", "ORDER BY id"), stored("TestAPartOfARoundIsBounded")},
		{"round-reads-no-newest-events", "I20", "eventqueue/pgstore/scopes.go", change("- 1 LIMIT 1", "- 1 LIMIT 0"), stored("TestARoundComesByEveryHandler")},
		{"round-misses-what-is-due-among-the-put-off", "I13 I20", round, change("delayedSQL = `e.delay_until", "delayedSQL = `false AND e.delay_until"), stored(between)},
		{"round-misses-the-runs-of-the-dead", "I13 I20", round, change("WHERE e.begun AND e.id > $1", "WHERE e.begun AND false AND e.id > $1"), stored(between)},
		{"round-reads-no-deeper", "I13", round, change("roundDeeper = 4000", "roundDeeper = 0"), stored("TestARoundFindsAllThatAWorkerHeld")},
		{"round-leaves-groups-out", "I13 I20", round, change("next.Stage = maintenance.RoundOfGroups", "next.Stage = maintenance.RoundOfRuns"), stored(lines)},
		{"round-ends-with-the-first-groups", "I13 I20", round, change("FROM visited WHERE n = $1)", "FROM visited WHERE n < 0)"), stored(lines)},
		{"round-notifies-every-new-group", "I11", round, change("mayrun.DueSQL(\"e.due\", \"now\") + ` AND ` + silentSQL + `)", "mayrun.DueSQL(\"e.due\", \"now\") + `)"), stored(lines)},
		{"deleted-event-stays-admitted-for-the-round", "I13", round, change("FROM members WHERE event_id NOT IN (SELECT id FROM page)", "FROM members WHERE false"), stored(lines)},
		{"sweep-takes-the-same-again", "I11", pendingFile, change(sweep, "UPDATE events_v2 e SET notified_at = e.notified_at"), stored(lost)},
		{"sweep-ends-after-a-page-of-rows", "I2 I13", pendingFile, change("CASE WHEN count(*) = $2 THEN max(id) END", "NULL::bigint"),
			stored("TestTheSweepReadsEveryRow")},
	}
}

// relayMutants are about the loop that pays and searches.
func relayMutants() []mutant {
	const relay, publish, sweep = "eventqueue/maintenance/relay.go", "eventqueue/maintenance/publish.go", "eventqueue/maintenance/sweep.go"
	const pays, again = "TestARelayPublishesAndSearches", "TestWhatARelayCannotPublishIsPendingAgain"
	const stops, flood = "TestARelaysStopKeepsItsTime", "TestAFloodOfWakeUps"
	return []mutant{
		{"rounds-wait-for-each-other", "I20", sweep, change("next != (RoundPlace{}) && next.Stage == stage;", "next != (RoundPlace{}) && stage >= 0;"),
			maintaining("TestLostGroupsDelayNoOtherEvent")},
		{"rounds-wait-for-the-rate", "I20", publish, change("if !r.limiter.AllowN(time.Now(), len(batch)) {", "if r.limiter.WaitN(ctx, len(batch)) != nil {"),
			maintaining("TestLostGroupsDelayNoOtherEvent")},
		{"rounds-ignore-the-rate", "I11 I12", publish, change("if !r.limiter.AllowN(time.Now(), len(batch)) {", "if r.limiter.Tokens() < -1e9 {"), maintaining("TestWhatIsLostKeepsToTheRate")},
		{"what-exceeds-the-rate-is-forgotten", "I1 I2", publish, change("refusal.Report(r.log, r.store.LeavePending(ctx, ids))", "refusal.Report(r.log, error(nil))"), maintaining("TestWhatExceedsTheRateIsPublishedNext")},
		{"what-is-left-pending-wakes-nobody", "I20", publish, change("	r.wake()\n	return nil\n", "	return nil\n"), maintaining("TestWhatExceedsTheRateIsPublishedNext")},
		{"relay-takes-more-than-it-can-publish-soon", "I20", relay, change("limit := r.portion()", "limit := eventqueue.MaxPublish"), maintaining("TestWhatExceedsTheRateIsPublishedNext")},
		{"relay-pays-nothing", "I1 I2", relay, change("due, err := r.takeDue(ctx)", "due, err := []eventqueue.Notification(nil), error(nil)"), protocol(pays)},
		{"relay-pays-one-page", "I13", relay, change("done.More = len(due) >= r.portion(); !done.More {", "done.More = len(due) >= r.portion(); len(due) >= 0 {"), protocol(pays)},
		{"relay-searches-nothing", "I2", relay, change("for more := true; more && err == nil;", "for more := false; more && err == nil;"), protocol(pays)},
		{"relay-searches-one-page", "I2 I13", sweep, change("	w.after = swept.Next\n", "	w.after = 0\n"), protocol(pays)},
		{"relay-goes-by-ids-alone", "I20", relay, change("r.loop(ctx, round.on, ", "r.loop(ctx, func(context.Context) (Relayed, error) { return Relayed{}, nil }, "),
			maintaining("TestLostGroupsDelayNoOtherEvent")},
		{"round-waits-for-ever", "I13", sweep, change("ctx, cancel := context.WithTimeout(ctx, statementTakes)\n\tdefer cancel()\n\tlost, next, err := r.store.TakeRound(", "ctx, cancel := context.WithCancel(ctx)\n\tdefer cancel()\n\tlost, next, err := r.store.TakeRound("), protocol("TestARelayWaitsForNoStatementForEver")},
		{"sweep-waits-for-ever", "I13", sweep, change("ctx, cancel := context.WithTimeout(ctx, statementTakes)\n\tdefer cancel()\n\tswept, err := r.store.Sweep(", "ctx, cancel := context.WithCancel(ctx)\n\tdefer cancel()\n\tswept, err := r.store.Sweep("), protocol("TestARelayWaitsForNoStatementForEver")},
		{"idle-walk-does-not-rest", "I12 I20", sweep, change("w.after != 0 && w.parked < parkedPages", "w.after != 0"), protocol("TestAnIdleWalkCostsTheSame")},
		{"walk-rests-before-what-may-be-lost", "I13", sweep, change("swept.Live < sweepPage/2", "swept.Live >= 0"), protocol("TestAnIdleWalkCostsTheSame")},
		{"round-over-many-does-not-rest", "I12", sweep, change("readFrom = time.Now().Add(min(", "readFrom = time.Now().Add(0 * min("), protocol("TestARoundOverManyRests")},
		{"relay-without-events-does-not-rest", "I12", sweep, change("w.empty = w.after == 0 && swept.Read == 0", "w.empty = false"),
			maintaining("TestARelayWithoutEventsSendsFewStatements")},
		{"relay-rests-beside-events", "I13 I20", sweep, change("w.empty = w.after == 0 && swept.Read == 0", "w.empty = w.after == 0"),
			maintaining("TestARelayWithoutEventsSendsFewStatements")},
		{"relay-forgets-the-rest", "I1 I2", publish, change("slices.Concat(batch, rest)", "batch"), protocol(again)},
		{"relay-stops-beside-a-notifier-that-hangs", "I13 I19", publish, change("outlive(ctx, publishAtStop)", "outlive(ctx, publishAtStop+time.Minute)"), maintaining(stops)},
		{"relay-stops-beside-a-database-that-hangs", "I13 I19", publish, change("outlive(ctx, publishAtStop+markAtStop)", "outlive(ctx, publishAtStop+time.Minute)"), maintaining(stops)},
		{"rest-of-a-stop-takes-its-time", "I13 I19", publish, change("outlive(ctx, markAtStop)\n\tdefer cancel()", "outlive(ctx, time.Minute)\n\tdefer cancel()"), maintaining(stops)},
		{"stop-gives-up-what-it-could-publish", "I13", publish, change("outlive(ctx, publishAtStop)", "outlive(ctx, 0)"), maintaining("TestARelayThatStopsPublishesWhatItHasTaken")},
		{"flood-drives-the-relay", "I12", relay, change("!p.found && !p.free.Allow()", "!p.found && !p.free.Allow() && false"), maintaining(flood)},
		{"flood-stills-the-relay", "I13", relay, change("emptyPassWait   = 100 * time.Millisecond", "emptyPassWait   = 5 * time.Second"), maintaining(flood)},
		{"wake-up-does-not-end-the-rest", "I13", sweep, change("{ r.emptyUntil.Store(0) }", "{}"), maintaining("TestAWakeUpEndsTheRest")},
		{"relay-without-a-rate", "I11 I12", publish, change("r.limiter.WaitN(ctx, len(batch))", "r.limiter.WaitN(ctx, 0)"), protocol("TestARelayKeepsItsRate")},
	}
}
