package main

const (
	claimFile   = "eventqueue/pgstore/claim.go"
	suspectFile = "eventqueue/pgstore/suspect.go"
	suspects    = "eventqueue/worker/suspects.go"
	askFile     = "eventqueue/worker/claim.go"
)

// claimMutants are about the one statement that looks and claims.
func claimMutants() []mutant {
	const only, clock = "TestAClaimTakesOnlyWhatMayRun", "TestTheWorkersClockDecidesNothing"
	const takeOver = "TestTakingOverAnExpiredLockIsAFailedRun"
	const rule = `mayrun.RuledSQL("e")`
	const oldLock = "CASE WHEN e.attempts > 1 THEN (SELECT before.locked_at FROM events_v2 before WHERE before.id = e.id) END AS locked_at"
	return []mutant{
		{"claim-ignores-rules", "I7", claimFile, change(rule, rule+" + \" AND false\""), stored(only)},
		{"claim-ignores-who-is-known", "I9 I15", claimFile, change("WHERE ` + handlerKnownSQL + `\n", "WHERE true\n"), stored(only)},
		{"claim-ignores-the-delay", "I6", claimFile, change(`mayrun.DueSQL("e.delay_until", "(SELECT now FROM clock)")`, `"true"`), stored(only)},
		{"claim-ignores-locks", "I4", claimFile,
			change(`mayrun.UnlockedSQL("e.locked_at", "(SELECT now - valid_for FROM clock)")`, `"true"`), stored(only)},
		{"claim-heeds-rules-of-other-canvases", "I16", "internal/mayrun/mayrun.go",
			change("WHERE r.canvas_id = ` + row + `.canvas_id AND r.event_space", "WHERE r.event_space"), stored(only)},
		{"claim-heeds-prefixes-of-other-canvases", "I16", "internal/mayrun/mayrun.go",
			change("r.prefix AND r.canvas_id = ` + row + `.canvas_id AND", "r.prefix AND"), stored("TestSuite")},
		{"claim-returns-no-rule", "I7", claimFile, change("` + mayrun.RuleSQL(\"e\") + `,", "NULL::text,"), stored(only)},
		{"claim-keeps-the-token", "I5", claimFile, change("attempts = e.attempts + 1,", "attempts = e.attempts,"),
			stored("TestEveryClaimHasATokenOfItsOwn")},
		{"take-over-counts-as-nothing", "I9", suspectFile, change("retries = e.retries + ` + diedAloneSQL + `::int", "retries = e.retries"),
			stored(takeOver)},
		{"take-over-of-no-run-counts", "I18", suspectFile, change("(e.locked_at IS NOT NULL AND e.begun AND coalesce", "(e.locked_at IS NOT NULL AND coalesce"),
			stored("TestSuite")},
		{"loss-beside-others-uses-an-attempt", "I15", suspectFile, change("coalesce(e.suspect, 0) = 1)", "coalesce(e.suspect, 0) > 0)"), stored("TestSuite")},
		{"loss-of-a-first-run-uses-an-attempt", "I15", suspectFile, change("coalesce(e.suspect, 0) = 1)", "coalesce(e.suspect, 1) = 1)"), stored("TestSuite")},
		{"suspects-keep-their-company", "I9", suspectFile, change("greatest(e.suspect / 2, 1)", "e.suspect"), stored("TestSuite")},
		{"suspect-that-waits-has-begun", "I18", finishFile, change("begun = e.begun OR e.suspect IS NULL", "begun = true"), stored("TestSuite")},
		{"suspects-run-all-together", "I15", suspects, change("case !full && len(together) < min(company, x.company):", "case !full:"), protocol("TestSuspectsRunWithNoMoreThanEachAllows")},
		{"suspects-join-one-that-is-to-be-alone", "I15", suspects, change("together, company = append(together, x), min(company, x.company)\n\t}", "together = append(together, x)\n\t}"),
			protocol("TestSuspectWaitsForOneThatRunsAlone")},
		{"suspects-take-all-slots", "I15", suspects, change("case len(rest) < s.most:", "case true:"), protocol("TestNoMoreThanHalfOfTheSlotsWaitForSuspects")},
		{"requests-of-a-dead-target-are-charged", "I15", "eventqueue/worker/completion.go", change("if verdict == machine.Exception && isLost(err) {", "if verdict == machine.Exception && isLost(err) && false {"), protocol("TestRunThatAnotherProcessHasLostMakesASuspect")},
		{"put-off-suspect-is-innocent", "I15", finishFile, change("WHEN NOT (how.failed OR how.snoozed) THEN e.suspect END", "WHEN how.delay IS NULL THEN e.suspect END"), stored("TestSuite")},
		{"suspect-joins-one-that-is-recorded-as-alone", "I15", suspects, change("len(done)+len(lost) < len(fewer)", "len(done)+len(lost) > len(fewer)"), protocol("TestSuspectWaitsWhileACompanionCannotBeRecorded")},
		{"suspects-wait-for-ever", "I13", suspects, change("x.ctx.endCause() != nil || time.Since(x.claimed) >= s.config.LockTimeout", "x.ctx.endCause() != nil"), protocol("TestSuspectsThatWaitKeepTheirClaimsForALockTimeout")},
		{"claim-inherits-the-run-before", "I18", claimFile, change("nullif($9::bigint, 0) + e.attempts + 1, begun = false,", "nullif($9::bigint, 0) + e.attempts + 1,"), stored("TestARunIsOneClaims")},
		{"lost-run-is-forgotten", "I9", claimFile, change("lost_run = e.lost_run OR ` + diedAloneSQL", "lost_run = ` + diedAloneSQL"),
			stored("TestAClaimThatIsGivenBackLosesNoLostRun")},
		{"unrecorded-run-begins", "I18", "eventqueue/worker/decide.go", change("case dec.executor.isSuspect(l.result):", "case false:"),
			protocol("TestARunThatHasToBeRecordedBeginsAfterThat")},
		{"claim-that-commits-late-is-forgotten", "I13 I18", "eventqueue/worker/unanswered.go", change("u.tries < len(lateCommits)", "u.tries < 0"),
			protocol("TestAClaimThatCommitsAfterItWasGivenBackIsGivenBackAgain")},
		{"claim-that-never-commits-is-checked-for-ever", "I11", "eventqueue/worker/unanswered.go", change("u.tries++", "u.tries = 1"),
			protocol("TestAClaimThatCommitsAfterItWasGivenBackIsGivenBackAgain")},
		{"unanswered-claim-is-forgotten", "I13 I18", askFile, change("if err != nil && sqlstate.MayHaveCommitted(err) {", "if false {"),
			protocol("TestAClaimWithoutAnAnswerIsGivenBack")},
		{"take-over-is-not-reported", "I9", claimFile, change(oldLock, "NULL::timestamptz AS locked_at"), stored(takeOver)},
		{"take-over-reports-the-new-lock", "I9", claimFile, change(oldLock, "e.locked_at"), stored(takeOver)},
		{"claim-by-the-transactions-clock", "I6", claimFile, change("SELECT clock_timestamp() AS now", "SELECT now() AS now"),
			stored("TestAClaimGoesByTheClockOfItsMoment")},
		{"claim-by-the-workers-clock", "I4 I6", claimFile,
			[]edit{
				{"SELECT clock_timestamp() AS now", "SELECT $10::timestamptz AS now"},
				{"append(append([]any{int64s(ids)}, handlerArgs(handlers)...), int64(id))", "append(append(append([]any{int64s(ids)}, handlerArgs(handlers)...), int64(id)), time.Now())"},
			}, stored(clock)},
		{"delay-left-by-the-workers-clock", "I6 I11", claimFile,
			change("f.Facts.Delay = r.delayUntil.Sub(r.now)", "f.Facts.Delay = time.Until(r.delayUntil)"), stored(clock)},
		{"lock-left-by-the-workers-clock", "I4 I11", claimFile,
			change("r.lockedAt.Time.Add(*r.validFor).Sub(r.now)", "time.Until(r.lockedAt.Time.Add(*r.validFor))"), stored(clock)},
		{"claim-without-the-barrier", "I7", claimFile, change("WHERE false FOR KEY SHARE", "WHERE false"),
			stored("TestPausingWaitsForTheClaimsUnderWay")},
		{"claim-sees-what-was-committed-before-it-waited", "I7", "eventqueue/pgsession/session.go", change("\"default_transaction_isolation\": \"read committed\",", ""),
			stored("TestTheQueuesConnectionsReadWhatIsCommitted")},
		{"counts-without-a-bound", "I15", baseline, change("attempts <= 1000000000 AND retries <= 1000000000", "true"),
			stored("TestCountsThatNoClaimCanRaiseAreRefused")},
		{"claim-without-room-on-its-page", "I12", baseline, change("fillfactor = 45", "fillfactor = 50"),
			stored("TestClaimsOfFullPagesWriteNoIndex")},
	}
}

// lockWaitMutants are about rows that somebody else is writing: a statement of
// the store's own waits for them for a moment, then looks at them once more, or
// skips them in a second try; a transaction of the caller skips them at once.
func lockWaitMutants() []mutant {
	const patience = "eventqueue/pgstore/lockwait.go"
	const two, waited, busy = "TestOfTwoClaimsAtOnceOneHolds", "TestAClaimThatWaitedChecksAgain", "TestABusyRowHoldsUpNoOther"
	const over = "TestALockWaitEndsWithItsStatement"
	const waiting = "waiting, []string{saveSettingsSQL, planSQL}, []string{restoreSettingsSQL})"
	return []mutant{
		// The place of a row version would tell as well that the row was written
		// since: in versions of Postgres that look at it once more.
		{"claim-believes-what-it-saw-before-it-waited", "I4", claimFile,
			[]edit{
				{"SELECT e.ctid AS version, e.id, e.canvas_id", "SELECT e.id AS version, e.id, e.canvas_id"},
				{"SELECT e.ctid FROM events_v2 e WHERE e.ctid = ANY (", "SELECT e.id FROM events_v2 e WHERE e.id = ANY ("},
				{"WHERE e.ctid = ANY (ARRAY(`", "WHERE e.id = ANY (ARRAY(`"},
				{"      AND ` + dueAndFreeSQL + `\n    RETURNING", "    RETURNING"},
			}, stored(waited)},
		{"fence-believes-what-it-saw-before-it-waited", "I4 I5", finishFile,
			[]edit{
				{"SELECT e.ctid FROM events_v2 e\n        WHERE e.id = mine.id", "SELECT e.id FROM events_v2 e\n        WHERE e.id = mine.id"},
				{"coalesce(mine.place, ", "coalesce(NULL, "},
				{"e.ctid = ANY (ARRAY(SELECT version FROM held)) AND e.locked_at IS NOT NULL\n      AND ((e.id, e.attempts, coalesce(e.claim_id - e.attempts, 0)) IN (SELECT * FROM unnest($1::bigint[], $2::int[], $3::bigint[]))) IS TRUE",
					"e.id = ANY (ARRAY(SELECT version FROM held))"},
			}, stored("TestACompletionThatWaitedChecksAgain")},
		{"claim-locks-no-rows", "I12 I15", claimFile, change("\n        FOR UPDATE SKIP LOCKED`", "`"), stored(two)},
		{"claim-waits-for-others", "I12 I15", claimFile, change("FOR UPDATE SKIP LOCKED`", "FOR UPDATE`"), stored(two)},
		{"fence-that-locks-no-rows", "I3 I15", finishFile, change(" FOR UPDATE SKIP LOCKED)", ")"), stored(busy)},
		{"fence-that-waits-for-others", "I3 I15", finishFile, change(" FOR UPDATE SKIP LOCKED)", " FOR UPDATE)"), stored(busy)},
		{"lock-wait-without-end", "I3 I15", patience, change("'100ms'", "'0'"), stored(two)},
		{"lock-wait-outlives-its-statement", "I15", patience, change("'100ms'), true)", "'100ms'), false)"), stored(over)},
		{"claim-only-waits", "I13 I15", patience, change("return run(skipping)", "return run(waiting)"), stored(two)},
		{"claim-in-the-callers-transaction-is-patient", "I15", claimFile,
			change("within(ctx, pgsession.DefaultSchema.On(db), []query{claim(&found, ids, handlers, id)})",
				"send(ctx, pgsession.DefaultSchema.On(db), []query{claim(&found, ids, handlers, id)}, "+waiting),
			stored(over)},
		{"end-in-the-callers-transaction-is-patient", "I15", finishFile,
			change("within(ctx, in, queries)", "send(ctx, in, queries, "+waiting), stored(over)},
		{"plan-of-a-small-table-is-kept", "I12", patience, change("SELECT set_config('enable_seqscan', 'off', true), ", "SELECT "),
			stored("TestAClaimCostsTheSameInABacklog")},
		{"plan-of-a-small-table-is-kept-by-a-connection-of-open", "I12", patience, change("\"enable_seqscan\": \"off\", \"jit\"", "\"jit\""),
			stored("TestAClaimCostsTheSameInABacklog")},
		{"claim-of-few-events-is-planned-each-time", "I12", claimFile, change("len(ids) <= fewEvents", "len(ids) == 0"),
			stored("TestAClaimOfFewEventsIsPlannedOnce")},
		{"plan-of-a-claim-is-kept-by-all-statements", "I12", patience, change("'force_generic_plan', true)", "'force_generic_plan', false)"),
			stored("TestAClaimOfFewEventsIsPlannedOnce")},
		{"any-pool-is-taken-for-one-of-open", "I12", patience, change("if !ready {", "if !ready && false {"),
			stored("TestAClaimCostsTheSameInABacklog")},
		{"settings-stay-in-the-callers-transaction", "I12", patience, change("[]string{restoreSettingsSQL})", "nil)"),
			stored("TestTheCallersTransactionKeepsItsSettings")},
	}
}
