package main

const finishFile = "eventqueue/pgstore/finish.go"

// finishMutants are about what an end leaves behind.
func finishMutants() []mutant {
	const left = "TestWhatAnEndLeavesBehind"
	return []mutant{
		{"older-run-goes-on", "I5", "eventqueue/runs.go", change("older.superseded = true", "older.superseded = false"),
			protocol("TestAWorkerKnowsItsNewestClaimOnly")},
		{"ends-are-tried-again-too-late", "I3", "eventqueue/finish.go", change("wait.next = min(wait.next, maxFinishWait)", ""),
			protocol("TestAStopWritesTheEndsWhenTheDatabaseIsBack")},
		{"failure-is-not-counted", "I9", finishFile, change("retries = e.retries + how.failed::int", "retries = e.retries"), protocol(left)},
		{"snooze-counts-as-a-failure", "I9", finishFile, change("end.Label == machine.RetryAllowed", "end.Label != machine.Released"), protocol(left)},
		{"release-counts-as-a-failure", "I9", finishFile, change("end.Label == machine.RetryAllowed", "end.Label != machine.Snoozed"), protocol(left)},
		{"release-forgets-the-lock", "I13", finishFile, change("SET locked_at = NULL,", "SET locked_at = e.locked_at,"), protocol(left)},
		{"far-off-retry-counts-as-notified", "I2 I13", finishFile,
			change("WHEN how.delay <= $5::interval THEN", "WHEN $5::interval IS NOT NULL THEN"), protocol(left)},
		{"retry-delay-truncated", "I6", finishFile,
			change("end.Delay.Truncate(time.Microsecond) + time.Microsecond", "end.Delay.Truncate(time.Second)"), protocol(left)},
		{"failed-event-leaves-no-history", "I1 I9", finishFile, change("if !logs {", "if !logs || logs {"), protocol(left)},
	}
}

// fenceMutants take the fence, or a part of it, out of one statement or all.
func fenceMutants() []mutant {
	const stale, back = "TestNoEndIsWrittenWithTheClaimOfAnother", "TestNoEndIsWrittenWithAClaimThatWasGivenBack"
	const renew, overtake = "TestRenewingMovesLiveLocksOnly", "TestAnEndDoesNotOvertakeAClaim"
	const fence = "USING (id, attempts)\n    WHERE e.locked_at IS NOT NULL"
	return []mutant{
		{"fence-without-the-token", "I5", finishFile, change(fence, "USING (id)\n    WHERE e.locked_at IS NOT NULL"), protocol(stale)},
		{"fence-without-the-lock", "I5", finishFile, change(fence, "USING (id, attempts)\n    WHERE true"), protocol(back)},
		{"fence-that-a-claim-overtakes", "I4 I5", finishFile, change("    FOR UPDATE OF e SKIP LOCKED\n", ""), protocol(overtake)},
		{"fence-that-waits-for-others", "I3 I15", finishFile, change("FOR UPDATE OF e SKIP LOCKED", "FOR UPDATE OF e"), protocol(overtake)},
		{"completion-beside-the-fence", "I5", finishFile,
			change("DELETE FROM events_v2 e USING held WHERE e.id = held.id RETURNING", "DELETE FROM events_v2 e WHERE e.id = ANY ($1::bigint[]) RETURNING"), protocol(stale)},
		{"failure-beside-the-fence", "I5", finishFile,
			[]edit{
				{"USING held, unnest(", "USING unnest("},
				{"WHERE e.id = held.id AND how.id = e.id\n    RETURNING e.*", "WHERE how.id = e.id\n    RETURNING e.*"},
			}, protocol(stale)},
		{"retry-beside-the-fence", "I5", finishFile,
			[]edit{
				{"FROM clock, held, unnest(", "FROM clock, unnest("},
				{"WHERE e.id = held.id AND how.id = e.id\n    RETURNING e.id", "WHERE how.id = e.id\n    RETURNING e.id"},
			}, protocol(back)},
		{"renewal-beside-the-fence", "I4 I5", finishFile,
			change("FROM clock, held\n    WHERE e.id = held.id\n", "FROM clock\n    WHERE e.id = ANY ($1::bigint[])\n"), protocol(renew)},
		{"renewal-writes-nothing", "I3 I4", finishFile, change("SET locked_at = clock.now\n", "SET locked_at = e.locked_at\n"), protocol(renew)},
		{"lost-claim-is-not-told", "I3", finishFile, change(" AS lost\nFROM", " AND false AS lost\nFROM"), protocol(renew)},
		{"busy-row-counts-as-lost", "I3", finishFile, change("ended.id IS NULL AND NOT EXISTS (", "ended.id IS NULL OR NOT EXISTS ("),
			protocol("TestRenewingWaitsForNobody")},
	}
}
