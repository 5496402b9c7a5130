package main

// replayMutants are about replays of the history.
func replayMutants() []mutant {
	const replays, emits = "eventqueue/operate/replay.go", "eventqueue/pgstore/replay.go"
	const once, repeats, rate = "TestAReplayThatDiesRepeatsNothing", "TestReplayRepeatsWhatEnded", "TestReplayKeepsToItsRate"
	const crons, inMemory = "cronchecker/postgres.go", "cronchecker/memcron/store.go"
	return []mutant{
		{"cron-skips-nothing-that-is-paused", "I7", "cronchecker/definition.go", change("case m.Paused:", "case m.Paused && m.Running && m.Alone:"), cron("TestASlotIsSkippedWhilePaused")},
		{"cron-skips-what-was-not-asked", "I10", crons, change("SELECT d.id, d.skip_if_paused AND ", "SELECT d.id, (d.skip_if_paused OR d.id > 0) AND "), []judge{{"./test/model", []string{"TestCronModelEqualsSQL"}}}},
		{"cron-waits-for-other-definitions", "I10", crons, change("q.module = e.module AND q.name = e.name", "q.module = e.module"), cron("TestASlotIsSkippedWhileAnEarlierOneRuns")},
		{"cron-emits-all-that-it-missed", "I10", "cronchecker/definition.go", change("m.Running = m.Alone", "m.Running = m.Alone && m.Paused"), cron("TestOfMissedSlotsOneRuns")},
		{"memory-skips-for-no-rule", "I7", inMemory, change("Paused: d.SkipIfPaused && ruled", "Paused: d.SkipIfPaused && ruled && queued"), []judge{{"./test/model", []string{"TestCronModelEqualsSQL"}}}},
		{"replay-without-its-lease", "I14", replays, change("WHERE id = $1 AND lease = $2 AND state = 'running'\nRETURNING changed", "WHERE id = $1 AND $2::uuid IS NOT NULL\nRETURNING changed"), controlling(once)},
		{"replay-commits-before-its-progress", "I14", emits, change("return report(tx, some)", "_ = report(tx, some); return nil"), controlling(once)},
		{"replay-carries-the-trace", "I8", emits, change("THEN l.attributes - '` + attributes.Traceparent + `'", "THEN l.attributes - '` + attributes.ReplayedFrom + `'"), controlling(repeats)},
		{"replay-loses-the-order", "I8", emits, change("coalesce(ordering_key, ''),\n", "coalesce(left(ordering_key, 0), ''),\n"), controlling(repeats)},
		{"replay-at-once", "I15", emits, change("begins + place * $4::interval, now", "begins + (place - place) * $4::interval, now"), controlling(rate)},
		{"replay-pieces-overlap", "I15", emits, change("greatest(now, $3::timestamptz) AS begins", "greatest(now, now - (now - $3::timestamptz) * 0) AS begins"), controlling(rate)},
		{"replay-without-a-history-says-nothing", "I19", replays, change("if err == nil && found == 0 {", "if err == nil && found < 0 {"), controlling("TestNothingIsRetained")},
		{"resume-begins-anew", "I14", replays, change("SET state = 'running', ended_at = NULL", "SET state = 'running', after_id = 0, ended_at = NULL"), controlling("TestStopAndResume")},
		{"await-works-on-others", "I16", "eventqueue/operate/operationsrun.go", change("AND ($3::uuid IS NULL OR id = $3)", "AND ($3::uuid IS NULL OR id IS NOT NULL)"), controlling("TestAwaitEndsAnOperation")},
		{"children-of-a-replay-repeat", "I8", "internal/attributes/attributes.go", change("delete(of, ReplayedFrom)", "_ = ReplayedFrom"), controlling("TestChildrenOfAReplayRepeatNothing")},
		{"replay-without-the-right-to-emit", "I16", "httpapi/bulk.go", change("more = append(more, access.Emit)", "more = append(more, access.Read)"), overHTTP("TestBulkIsRefused")},
		{"resume-without-the-right-to-emit", "I16", "httpapi/bulk.go", change("op.Change.Verb == operate.VerbReplay && !mayOn", "op.Change.Verb == operate.VerbRetry && !mayOn"), overHTTP("TestBulkIsRefused")},
		{"dashboard-replays-without-the-right-to-emit", "I16", "dashboard/bulk.go", change("(verb != operate.VerbReplay || viewerOf(r)", "(verb != operate.VerbRetry || viewerOf(r)"), []judge{{"./dashboard", []string{"TestChangesOfManyAreRefused"}}}},
	}
}
