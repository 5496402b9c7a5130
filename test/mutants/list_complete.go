package main

const (
	finishFile   = "eventqueue/pgstore/complete.go"
	attemptsFile = "eventqueue/pgstore/attempts.go"
	workersFile  = "eventqueue/pgstore/workers.go"
)

// completeMutants are about what an end leaves behind.
func completeMutants() []mutant {
	const left = "TestWhatAnEndLeavesBehind"
	return []mutant{
		{"end-leaves-its-run-behind", "I18", finishFile, change("SET locked_at = NULL, begun = false, lost_run", "SET locked_at = NULL, lost_run"), stored("TestARunIsOneClaims")},
		{"older-run-goes-on", "I5", "eventqueue/worker/runs.go", change("older.superseded = true", "older.superseded = false"),
			protocol("TestAWorkerKnowsItsNewestClaimOnly")},
		{"ends-are-tried-again-too-late", "I3", "eventqueue/worker/complete.go", change("wait.Next = min(wait.Next, maxCompleteWait)", ""),
			protocol("TestAStopWritesTheEndsWhenTheDatabaseIsBack")},
		{"ends-do-not-wait-for-each-other", "I12", "eventqueue/worker/complete.go", change("(!more || !c.completions.wait(linger.C, nil))", "(!more || before > 0)"), working("TestWhatAWorkerCosts")},
		{"idle-heartbeat-asks", "I12", "internal/refusal/halve.go", change("if len(items) == 0 {\n\t\t\tcontinue", "if items == nil {\n\t\t\tcontinue"), working("TestWhatAWorkerCosts")},
		{"failure-is-not-counted", "I9", finishFile, change("retries = e.retries + how.failed::int", "retries = e.retries"), stored(left)},
		{"snooze-counts-as-a-failure", "I9", finishFile, change("completion.Label == machine.RetryAllowed", "completion.Label != machine.Released"), stored(left)},
		{"release-counts-as-a-failure", "I9", finishFile, change("completion.Label == machine.RetryAllowed", "completion.Label != machine.Snoozed"), stored(left)},
		{"snoozes-are-not-counted", "I9", finishFile, change("least(e.snoozes + 1, 32767)", "e.snoozes"), stored("TestSnoozesAreCounted")},
		{"snoozes-are-counted-for-ever", "I9", finishFile, change("WHEN how.failed THEN 0 ELSE e.snoozes", "ELSE e.snoozes"), stored("TestSnoozesAreCounted")},
		{"snoozes-without-a-bound", "I9 I13", "eventqueue/worker/completion.go", change("x.run.Snoozes >= *x.policy.MaxSnoozes", "x.run.Snoozes > 1<<20"), protocol("TestWhatFollowsFromARun")},
		{"snoozes-make-a-hot-loop", "I11", "eventqueue/handler.go", change("p.MinSnooze*time.Duration(min(n+1, snoozeGrows))", "0"), protocol("TestSnoozesGrow")},
		{"release-forgets-the-lock", "I13", finishFile, change("SET locked_at = NULL,", "SET locked_at = e.locked_at,"), stored(left)},
		{"far-off-retry-counts-as-notified", "I2 I13", finishFile,
			change("WHEN how.delay <= $7::interval THEN", "WHEN $7::interval IS NOT NULL THEN"), stored(left)},
		{"retry-delay-truncated", "I6", finishFile,
			change("completion.Delay.Truncate(time.Microsecond) + time.Microsecond", "completion.Delay.Truncate(time.Second)"), stored(left)},
		{"what-succeeds-is-recorded-as-failed", "I12", "eventqueue/worker/store.go", change("	default:\n		return false\n	}\n}\n\n// Store is", "	default:\n		return true\n	}\n}\n\n// Store is"), stored("TestFailedAttemptsAreRecorded")},
		{"attempts-grow-for-ever", "I12", attemptsFile, change("worker.MaxAttempts-1)", "1<<20)"), stored("TestTheNewestAttemptsStay")},
		{"attempts-of-queued-events-go", "I9", attemptsFile, change("e.queued IS NULL AND l.logged IS NULL", "l.logged IS NULL"), stored("TestSuite")},
		{"attempts-of-failed-events-go", "I9", attemptsFile, change("e.queued IS NULL AND l.logged IS NULL", "e.queued IS NULL"), stored("TestAttemptsSurviveARetryByHand")},
		{"attempt-that-a-crash-repeats-is-refused", "I13", attemptsFile,
			change("ON CONFLICT (event_id, attempt) DO UPDATE SET canvas_id = excluded.canvas_id, started_at = excluded.started_at,\n        duration = excluded.duration, worker = excluded.worker, error = excluded.error\n", ""),
			stored("TestAnAttemptThatACrashRepeatsIsReplaced")},
		{"refused-record-costs-the-retry", "I13", "eventqueue/worker/complete.go", change("len(batch) == 1 && batch[0].completion.Records():", "len(batch) == 0:"),
			working("TestAnAttemptThatCannotBeRecordedIsMadeAgain")},
		{"worker-is-not-shown-after-a-reconnect", "I17", workersFile, change("batch.Queue(showWorkerSQL, self.Number)", "if self.Number%2 == 0 {\n\t\tbatch.Queue(showWorkerSQL, self.Number)\n\t}"), stored("TestAWorkerIsLiveWhileItIsConnected")},
		{"stop-is-not-recorded", "I17", "eventqueue/pgstore/reserve.go", change("	if shown {\n", "	if shown && r.self.Number == 0 {\n"), stored("TestAWorkerIsLiveWhileItIsConnected")},
		{"what-is-shown-stops-the-heartbeat", "I4", "eventqueue/pgstore/reserve.go", change("			if conn.IsClosed() {\n				return err\n			}\n", "			if conn != nil {\n				return err\n			}\n"), stored("TestAWorkerThatCannotBeShownRenewsItsClaims")},
		{"live-workers-are-deleted", "I17", workersFile, change("clock_timestamp() - $1::interval AND number NOT IN (SELECT number FROM connected)", "clock_timestamp() - $1::interval"), stored("TestWorkersThatEndedAreDeleted")},
		{"dead-workers-stay-for-ever", "I17", workersFile, change("SET missed_at = clock_timestamp()\n    WHERE", "SET missed_at = missed_at\n    WHERE"), stored("TestWorkersThatEndedAreDeleted")},
		{"failed-event-leaves-no-history", "I1 I9", finishFile, change("if !logs {", "if !logs || logs {"), stored(left)},
	}
}

// fenceMutants take the fence, or a part of it, out of one statement or all.
func fenceMutants() []mutant {
	const stale, back = "TestNoEndIsWrittenWithTheClaimOfAnother", "TestNoEndIsWrittenWithAClaimThatWasGivenBack"
	const renew, renewal = "TestRenewingMovesLiveLocksOnly", "UPDATE events_v2 e SET locked_at = clock.now, begun = e.begun OR e.suspect IS NULL, lost_run = e.lost_run AND e.suspect IS NOT NULL FROM clock\n    WHERE ` + heldSQL + `"
	const all = "e.id = ANY ($1::bigint[])"
	return []mutant{
		{"fence-without-the-token", "I5", finishFile,
			[]edit{
				{"AND e.attempts = mine.attempts AND coalesce(e.claim_id - e.attempts, 0) = mine.claim_id AND e.locked_at IS NOT NULL`\n", "AND e.locked_at IS NOT NULL`\n"},
				{"\n      AND ((e.id, e.attempts, coalesce(e.claim_id - e.attempts, 0)) IN (SELECT * FROM unnest($1::bigint[], $2::int[], $3::bigint[]))) IS TRUE", ""},
			}, stored(stale)},
		{"fence-without-the-lock", "I5", finishFile,
			[]edit{
				{"AND e.attempts = mine.attempts AND coalesce(e.claim_id - e.attempts, 0) = mine.claim_id AND e.locked_at IS NOT NULL`\n", "AND e.attempts = mine.attempts`\n"},
				{"(SELECT version FROM held)) AND e.locked_at IS NOT NULL\n", "(SELECT version FROM held))\n"},
			}, stored(back)},
		{"place-instead-of-the-fence", "I5", finishFile,
			change("\n      AND ((e.id, e.attempts, coalesce(e.claim_id - e.attempts, 0)) IN (SELECT * FROM unnest($1::bigint[], $2::int[], $3::bigint[]))) IS TRUE", ""), stored("TestAPlaceIsNoFence")},
		{"place-is-not-used", "I12", finishFile, change("coalesce(mine.place, ", "coalesce(NULL, "), stored("TestAnEndFindsItsRowByItsPlace")},
		{"place-is-believed-twice", "I1 I13", "eventqueue/worker/runs.go", change("f.completion.RowID, f.rowID = f.rowID, 0", "f.completion.RowID = f.rowID"), working("TestARowThatWasMovedEnds")},
		{"fence-without-the-claims-number", "I5", finishFile,
			[]edit{
				{"AND coalesce(e.claim_id - e.attempts, 0) = mine.claim_id AND e.locked_at IS NOT NULL`\n", "AND e.locked_at IS NOT NULL`\n"},
				{"((e.id, e.attempts, coalesce(e.claim_id - e.attempts, 0)) IN (SELECT * FROM unnest($1::bigint[], $2::int[], $3::bigint[])))", "((e.id, e.attempts) IN (SELECT * FROM unnest($1::bigint[], $2::int[])))"},
			}, stored("TestATokenThatACrashRepeatsIsNoFence")},
		{"any-claim-is-given-back", "I4 I5", "eventqueue/pgstore/giveback.go",
			[]edit{{"AND e.claim_id - e.attempts = $2 AND e.locked_at IS NOT NULL\n        FOR", "AND $2::bigint IS NOT NULL AND e.locked_at IS NOT NULL\n        FOR"}, {"\n  AND e.claim_id - e.attempts = $2 AND e.locked_at IS NOT NULL\n", "\n  AND e.locked_at IS NOT NULL\n"}},
			stored("TestATokenThatACrashRepeatsIsNoFence")},
		{"claim-of-an-older-program-is-given-back", "I4", "eventqueue/pgstore/giveback.go",
			[]edit{{"AND e.claim_id - e.attempts = $2 AND e.locked_at IS NOT NULL\n        FOR", "AND e.claim_id BETWEEN $2 AND $2 + e.attempts AND e.locked_at IS NOT NULL\n        FOR"}, {"\n  AND e.claim_id - e.attempts = $2 AND e.locked_at IS NOT NULL\n", "\n  AND e.locked_at IS NOT NULL\n"}},
			stored("TestAClaimOfAnOlderProgramIsNotGivenBack")},
		{"completion-beside-the-fence", "I5", finishFile,
			change("DELETE FROM events_v2 e WHERE ` + heldSQL + ` RETURNING e.id", "DELETE FROM events_v2 e WHERE "+all+" RETURNING e.id"), stored(stale)},
		{"failure-beside-the-fence", "I5", finishFile,
			change("DELETE FROM events_v2 e WHERE ` + heldSQL + ` RETURNING e.*", "DELETE FROM events_v2 e WHERE "+all+" RETURNING e.*"), stored(stale)},
		{"retry-beside-the-fence", "I5", finishFile, change("WHERE ` + heldSQL + ` AND how.id = e.id", "WHERE how.id = e.id"), stored(back)},
		{"renewal-beside-the-fence", "I4 I5", finishFile,
			change(renewal, "UPDATE events_v2 e SET locked_at = clock.now, begun = e.begun OR e.suspect IS NULL, lost_run = e.lost_run AND e.suspect IS NOT NULL FROM clock\n    WHERE "+all), stored(renew)},
		{"renewal-writes-nothing", "I3 I4", finishFile,
			change(renewal, "UPDATE events_v2 e SET locked_at = e.locked_at, begun = e.begun OR e.suspect IS NULL, lost_run = e.lost_run AND e.suspect IS NOT NULL FROM clock\n    WHERE ` + heldSQL + `"), stored(renew)},
		{"lost-claim-is-not-reported", "I3", finishFile, change(" AS lost\nFROM", " AND false AS lost\nFROM"), stored(renew)},
		{"busy-row-counts-as-lost", "I3", finishFile, change("SELECT mine.id, NOT EXISTS (", "SELECT mine.id, true OR NOT EXISTS ("),
			stored("TestRenewingWaitsForNobody")},
		{"unwritten-end-counts-as-written", "I1 I5", finishFile, change("if !unwritten[id] {", "if !unwritten[id] || len(unwritten) > 0 {"),
			stored(stale)},
	}
}
