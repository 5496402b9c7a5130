package main

// claimMutants are about the one statement that looks and claims.
func claimMutants() []mutant {
	const claim = "eventqueue/pgstore/claim.go"
	const store = "eventqueue/pgstore/store.go"
	const only, clock = "TestAClaimTakesOnlyWhatMayRun", "TestTheWorkersClockDecidesNothing"
	return []mutant{
		{"claim-ignores-rules", "I7", claim, change("WHERE rule IS NULL AND known", "WHERE known"), protocol(only)},
		{"claim-ignores-who-is-known", "I9 I15", claim, change("WHERE rule IS NULL AND known", "WHERE rule IS NULL"), protocol(only)},
		{"claim-ignores-the-delay", "I6", claim, change("AND e.delay_until <= clock.now\n", "\n"), protocol(only)},
		{"claim-ignores-locks", "I4", claim, change("e.locked_at <= clock.now - $2::interval", "$2::interval IS NOT NULL"), protocol(only)},
		{"claim-heeds-rules-of-other-canvases", "I16", claim,
			change("WHERE r.canvas_id = e.canvas_id AND r.event_space", "WHERE r.event_space"), protocol(only)},
		{"claim-keeps-the-token", "I5", claim, change("attempts = e.attempts + 1,", "attempts = e.attempts,"),
			protocol("TestEveryClaimHasATokenOfItsOwn")},
		{"take-over-counts-as-nothing", "I9", claim, change("retries = e.retries + (e.locked_at IS NOT NULL)::int", "retries = e.retries"),
			protocol("TestTakingOverAnExpiredLockIsAFailedRun")},
		{"claim-by-the-transactions-clock", "I6", claim, change("SELECT clock_timestamp() AS now", "SELECT now() AS now"),
			protocol("TestAClaimGoesByTheClockOfItsMoment")},
		{"claim-by-the-workers-clock", "I4 I6", claim,
			[]edit{
				{"SELECT clock_timestamp() AS now", "SELECT $10::timestamptz AS now"},
				{"knownArgs(known)...)\n", "knownArgs(known)...)\n\targs = append(args, time.Now())\n"},
			}, protocol(clock)},
		{"delay-left-by-the-workers-clock", "I6 I11", claim,
			change("f.Facts.Delay = e.DelayUntil.Sub(now)", "f.Facts.Delay = time.Until(e.DelayUntil)"), protocol(clock)},
		{"lock-left-by-the-workers-clock", "I4 I11", claim,
			change("lockedAt.Add(lockTimeout).Sub(now)", "time.Until(lockedAt.Add(lockTimeout))"), protocol(clock)},
		{"claim-locks-no-rows", "I4", claim, change("    FOR UPDATE OF e SKIP LOCKED\n", ""), protocol("TestOfTwoClaimsAtOnceOneHolds")},
		{"claim-waits-for-others", "I12 I15", claim, change("FOR UPDATE OF e SKIP LOCKED", "FOR UPDATE OF e"),
			protocol("TestOfTwoClaimsAtOnceOneHolds")},
		{"claim-without-the-barrier", "I7", claim, change("WHERE false FOR KEY SHARE", "WHERE false"),
			protocol("TestPausingWaitsForTheClaimsUnderWay")},
		{"claim-sees-what-was-committed-before-it-waited", "I7", store, change("\"default_transaction_isolation\": \"read committed\",", ""),
			protocol("TestTheQueuesConnectionsReadWhatIsCommitted")},
	}
}
