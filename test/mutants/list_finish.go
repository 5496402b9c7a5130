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
			change("WHEN how.delay <= $6::interval THEN", "WHEN $6::interval IS NOT NULL THEN"), protocol(left)},
		{"retry-delay-truncated", "I6", finishFile,
			change("end.Delay.Truncate(time.Microsecond) + time.Microsecond", "end.Delay.Truncate(time.Second)"), protocol(left)},
		{"failed-event-leaves-no-history", "I1 I9", finishFile, change("if !logs {", "if !logs || logs {"), protocol(left)},
	}
}

// fenceMutants take the fence, or a part of it, out of one statement or all.
func fenceMutants() []mutant {
	const stale, back = "TestNoEndIsWrittenWithTheClaimOfAnother", "TestNoEndIsWrittenWithAClaimThatWasGivenBack"
	const renew, renewal = "TestRenewingMovesLiveLocksOnly", "UPDATE events_v2 e SET locked_at = clock.now FROM clock WHERE ` + heldSQL + `"
	const all = "e.id = ANY ($1::bigint[])"
	return []mutant{
		{"fence-without-the-token", "I5", finishFile,
			[]edit{
				{"AND e.attempts = mine.attempts AND e.locked_at IS NOT NULL`\n", "AND e.locked_at IS NOT NULL`\n"},
				{"\n      AND ((e.id, e.attempts) IN (SELECT * FROM unnest($1::bigint[], $2::int[]))) IS TRUE", ""},
			}, protocol(stale)},
		{"fence-without-the-lock", "I5", finishFile,
			[]edit{
				{"AND e.attempts = mine.attempts AND e.locked_at IS NOT NULL`\n", "AND e.attempts = mine.attempts`\n"},
				{"(SELECT version FROM held)) AND e.locked_at IS NOT NULL\n", "(SELECT version FROM held))\n"},
			}, protocol(back)},
		{"place-instead-of-the-fence", "I5", finishFile,
			change("\n      AND ((e.id, e.attempts) IN (SELECT * FROM unnest($1::bigint[], $2::int[]))) IS TRUE", ""), protocol("TestAPlaceIsNoFence")},
		{"place-is-not-used", "I12", finishFile, change("coalesce(mine.place, ", "coalesce(NULL, "), protocol("TestAnEndFindsItsRowByItsPlace")},
		{"place-is-believed-twice", "I1 I13", "eventqueue/runs.go", change("f.end.Place, f.place = f.place, 0", "f.end.Place = f.place"), queue("TestARowThatWasMovedEnds")},
		{"completion-beside-the-fence", "I5", finishFile,
			change("DELETE FROM events_v2 e WHERE ` + heldSQL + ` RETURNING e.id", "DELETE FROM events_v2 e WHERE "+all+" RETURNING e.id"), protocol(stale)},
		{"failure-beside-the-fence", "I5", finishFile,
			change("DELETE FROM events_v2 e WHERE ` + heldSQL + ` RETURNING e.*", "DELETE FROM events_v2 e WHERE "+all+" RETURNING e.*"), protocol(stale)},
		{"retry-beside-the-fence", "I5", finishFile, change("WHERE ` + heldSQL + ` AND how.id = e.id", "WHERE how.id = e.id"), protocol(back)},
		{"renewal-beside-the-fence", "I4 I5", finishFile,
			change(renewal, "UPDATE events_v2 e SET locked_at = clock.now FROM clock WHERE "+all), protocol(renew)},
		{"renewal-writes-nothing", "I3 I4", finishFile,
			change(renewal, "UPDATE events_v2 e SET locked_at = e.locked_at FROM clock WHERE ` + heldSQL + `"), protocol(renew)},
		{"lost-claim-is-not-told", "I3", finishFile, change(" AS lost\nFROM", " AND false AS lost\nFROM"), protocol(renew)},
		{"busy-row-counts-as-lost", "I3", finishFile, change("SELECT mine.id, NOT EXISTS (", "SELECT mine.id, true OR NOT EXISTS ("),
			protocol("TestRenewingWaitsForNobody")},
		{"unwritten-end-counts-as-written", "I1 I5", finishFile, change("if !unwritten[id] {", "if !unwritten[id] || len(unwritten) > 0 {"),
			protocol(stale)},
	}
}
