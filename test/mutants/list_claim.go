package main

const (
	claimFile = "eventqueue/pgstore/claim.go"
	storeFile = "eventqueue/pgstore/store.go"
)

// claimMutants are about the one statement that looks and claims.
func claimMutants() []mutant {
	const only, clock = "TestAClaimTakesOnlyWhatMayRun", "TestTheWorkersClockDecidesNothing"
	const takeOver = "TestTakingOverAnExpiredLockIsAFailedRun"
	const rule = "AND EXISTS (\n          SELECT FROM scheduling_rules r\n          WHERE "
	const oldLock = "CASE WHEN e.attempts > 1 THEN (SELECT before.locked_at FROM events_v2 before WHERE before.id = e.id) END AS locked_at"
	return []mutant{
		{"claim-ignores-rules", "I7", claimFile, change(rule, rule+"false AND "), protocol(only)},
		{"claim-ignores-who-is-known", "I9 I15", claimFile, change("WHERE ` + knownSQL + `\n", "WHERE true\n"), protocol(only)},
		{"claim-ignores-the-delay", "I6", claimFile, change("`e.delay_until <= (SELECT now FROM clock)\n", "`true\n"), protocol(only)},
		{"claim-ignores-locks", "I4", claimFile,
			change("e.locked_at <= (SELECT now FROM clock) - $2::interval", "$2::interval IS NOT NULL"), protocol(only)},
		{"claim-heeds-rules-of-other-canvases", "I16", claimFile,
			change(rule+"r.canvas_id = e.canvas_id AND", rule), protocol(only)},
		{"claim-tells-rules-of-other-canvases", "I16", claimFile,
			change("FROM scheduling_rules r\n     WHERE r.canvas_id = e.canvas_id AND", "FROM scheduling_rules r\n     WHERE"), protocol(only)},
		{"claim-tells-of-no-rule", "I7", claimFile, change("max(r.rule_type)::text", "NULL::text"), protocol(only)},
		{"claim-keeps-the-token", "I5", claimFile, change("attempts = e.attempts + 1,", "attempts = e.attempts,"),
			protocol("TestEveryClaimHasATokenOfItsOwn")},
		{"take-over-counts-as-nothing", "I9", claimFile, change("retries = e.retries + (e.locked_at IS NOT NULL)::int", "retries = e.retries"),
			protocol(takeOver)},
		{"take-over-is-not-told", "I9", claimFile, change(oldLock, "NULL::timestamptz AS locked_at"), protocol(takeOver)},
		{"take-over-tells-of-the-new-lock", "I9", claimFile, change(oldLock, "e.locked_at"), protocol(takeOver)},
		{"claim-by-the-transactions-clock", "I6", claimFile, change("SELECT clock_timestamp() AS now", "SELECT now() AS now"),
			protocol("TestAClaimGoesByTheClockOfItsMoment")},
		{"claim-by-the-workers-clock", "I4 I6", claimFile,
			[]edit{
				{"SELECT clock_timestamp() AS now", "SELECT $10::timestamptz AS now"},
				{"append([]any{int64s(ids), lockTimeout}, knownArgs(known)...)", "append(append([]any{int64s(ids), lockTimeout}, knownArgs(known)...), time.Now())"},
			}, protocol(clock)},
		{"delay-left-by-the-workers-clock", "I6 I11", claimFile,
			change("f.Facts.Delay = r.delayUntil.Sub(r.now)", "f.Facts.Delay = time.Until(r.delayUntil)"), protocol(clock)},
		{"lock-left-by-the-workers-clock", "I4 I11", claimFile,
			change("r.lockedAt.Time.Add(lockTimeout).Sub(r.now)", "time.Until(r.lockedAt.Time.Add(lockTimeout))"), protocol(clock)},
		{"claim-without-the-barrier", "I7", claimFile, change("WHERE false FOR KEY SHARE", "WHERE false"),
			protocol("TestPausingWaitsForTheClaimsUnderWay")},
		{"claim-sees-what-was-committed-before-it-waited", "I7", storeFile, change("\"default_transaction_isolation\": \"read committed\",", ""),
			protocol("TestTheQueuesConnectionsReadWhatIsCommitted")},
		{"claim-without-room-on-its-page", "I12", "migrations/00006_room_for_claims.sql", change("fillfactor = 50", "fillfactor = 80"),
			protocol("TestClaimsOfFullPagesWriteNoIndex")},
	}
}

// patienceMutants are about rows that somebody else is writing: a statement of
// the store's own waits for them for a moment, then looks at them once more, or
// skips them in a second try; a transaction of the caller skips them at once.
func patienceMutants() []mutant {
	const patience = "eventqueue/pgstore/patience.go"
	const two, waited, busy = "TestOfTwoClaimsAtOnceOneHolds", "TestAClaimThatWaitedLooksOnceMore", "TestABusyRowHoldsUpNoOther"
	const over = "TestPatienceEndsWithItsStatement"
	const waiting = "waiting, []string{keepSQL, planSQL}, []string{putBackSQL})"
	return []mutant{
		// The place of a row version would tell as well that the row was written
		// since: in versions of Postgres that look at it once more.
		{"claim-believes-what-it-saw-before-it-waited", "I4", claimFile,
			[]edit{
				{"SELECT e.ctid AS version, e.canvas_id", "SELECT e.id AS version, e.canvas_id"},
				{"SELECT e.ctid FROM events_v2 e WHERE e.ctid = ANY (", "SELECT e.id FROM events_v2 e WHERE e.id = ANY ("},
				{"WHERE e.ctid = ANY (ARRAY(`", "WHERE e.id = ANY (ARRAY(`"},
				{"      AND ` + dueAndFreeSQL + `\n    RETURNING", "    RETURNING"},
			}, protocol(waited)},
		{"fence-believes-what-it-saw-before-it-waited", "I4 I5", finishFile,
			[]edit{
				{"SELECT e.ctid FROM events_v2 e\n        WHERE e.id = mine.id", "SELECT e.id FROM events_v2 e\n        WHERE e.id = mine.id"},
				{"coalesce(mine.place, ", "coalesce(NULL, "},
				{"e.ctid = ANY (ARRAY(SELECT version FROM held)) AND e.locked_at IS NOT NULL\n      AND ((e.id, e.attempts) IN (SELECT * FROM unnest($1::bigint[], $2::int[]))) IS TRUE",
					"e.id = ANY (ARRAY(SELECT version FROM held))"},
			}, protocol("TestAnEndThatWaitedLooksOnceMore")},
		{"claim-locks-no-rows", "I12 I15", claimFile, change("\n        FOR UPDATE SKIP LOCKED`", "`"), protocol(two)},
		{"claim-waits-for-others", "I12 I15", claimFile, change("FOR UPDATE SKIP LOCKED`", "FOR UPDATE`"), protocol(two)},
		{"fence-that-locks-no-rows", "I3 I15", finishFile, change(" FOR UPDATE SKIP LOCKED)", ")"), protocol(busy)},
		{"fence-that-waits-for-others", "I3 I15", finishFile, change(" FOR UPDATE SKIP LOCKED)", " FOR UPDATE)"), protocol(busy)},
		{"patience-without-end", "I3 I15", patience, change("'100ms'", "'0'"), protocol(two)},
		{"patience-outlives-its-statement", "I15", patience, change("'100ms'), true)", "'100ms'), false)"), protocol(over)},
		{"claim-only-waits", "I13 I15", patience, change("return s.run(ctx, skipping, queries...)", "return err"), protocol(two)},
		{"claim-in-the-callers-transaction-is-patient", "I15", claimFile,
			change("within(ctx, db, []query{claim(&found, ids, known, lockTimeout)})", "send(ctx, db, []query{claim(&found, ids, known, lockTimeout)}, "+waiting),
			protocol(over)},
		{"end-in-the-callers-transaction-is-patient", "I15", finishFile,
			change("within(ctx, in, queries)", "send(ctx, in, queries, "+waiting), protocol(over)},
		{"plan-of-a-small-table-is-kept", "I12", patience, change("SELECT set_config('enable_seqscan', 'off', true), ", "SELECT "),
			protocol("TestAClaimCostsTheSameInABacklog")},
		{"plan-of-a-small-table-is-kept-by-a-connection-of-open", "I12", patience, change("\"enable_seqscan\": \"off\", \"jit\"", "\"jit\""),
			protocol("TestAClaimCostsTheSameInABacklog")},
		{"claim-of-few-events-is-planned-each-time", "I12", claimFile, change("len(ids) <= fewEvents", "len(ids) == 0"),
			protocol("TestAClaimOfFewEventsIsPlannedOnce")},
		{"plan-of-a-claim-is-kept-by-all-statements", "I12", patience, change("'force_generic_plan', true)", "'force_generic_plan', false)"),
			protocol("TestAClaimOfFewEventsIsPlannedOnce")},
		{"any-pool-is-taken-for-one-of-open", "I12", storeFile, change("if have[key] != value {", "if false && have[key] != value {"),
			protocol("TestAClaimCostsTheSameInABacklog")},
		{"settings-stay-in-the-callers-transaction", "I12", patience, change("[]string{putBackSQL})", "nil)"),
			protocol("TestTheCallersTransactionKeepsItsSettings")},
	}
}
