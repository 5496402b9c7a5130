package main

// limitMutants are about rate limits.
func limitMutants() []mutant {
	const take, store, claim = "eventqueue/pgstore/ratetake.go", "eventqueue/pgstore/ratelimits.go", "eventqueue/pgstore/claim.go"
	const views, stage, window = "eventqueue/worker/rateviews.go", "eventqueue/worker/ratestage.go", "eventqueue/ratelimit/window.go"
	const approximate = "TestAnApproximateLimitDoesNotWait"
	return []mutant{
		{"limit-counts-are-not-locked", "limit", take, []edit{
			{"FOR NO KEY UPDATE` + takeRateRestSQL,\n\tskips", "` + takeRateRestSQL,\n\tskips"},
		}, stored("TestATakeThatWaitedCountsOnTopOfWhatItWaitedFor")},
		{"limit-counts-are-locked-in-any-order", "I15", take, []edit{
			{"lockWaitSQL + `\n    ORDER BY c.canvas_id, c.module, c.name\n", "lockWaitSQL + `\n    ORDER BY random()\n"},
		}, stored("TestTakesOfTheSameLimitsDoNotDeadlock")},
		{"limit-of-the-canvas-is-not-asked", "limit", take, change("greatest(least(fits, room - coalesce(sum(fits) OVER before, 0)), 0), fits)", "fits, room)"),
			stored("TestARefusalIsCountedByNeitherLimit")},
		{"limit-counts-what-the-canvas-refuses", "limit", take, change("sum(g.granted), 0)::bigint AS granted", "sum(g.fits), 0)::bigint AS granted"),
			stored("TestARefusalIsCountedByNeitherLimit")},
		{"limit-is-not-seen-by-the-claim", "limit", claim, change("l.module IN ('', e.module) AND l.name IN ('', e.name)) ELSE 0 END AS marks", "l.module = e.module AND l.name = e.name) ELSE 0 END AS marks"),
			stored("TestTheClaimReportsWhatIsLimited")},
		{"limit-is-not-seen-to-be-exact", "limit", stage, change("if !group.exact {", "if true {"), working("TestALimitThatBecomesExact")},
		{"limit-records-runs-of-what-it-puts-off", "I18", "eventqueue/worker/runs.go", change("!x.superseded && !x.unrun && pick(x)", "!x.superseded && pick(x)"),
			working("TestWhatIsPutOffHasNotBegun")},
		{"limit-is-asked-after-the-begin-is-recorded", "I18", "eventqueue/worker/decide.go", change("case dec.rates.asksLimit(l.result):", "case dec.rates.asksLimit(l.result) && !dec.executor.isSuspect(l.result):"),
			working("TestWhatIsPutOffHasNotBegun")},
		{"limited-run-begins-unrecorded", "I18", stage, change("if s.executor.isSuspect(l.result) {", "if s.executor.isSuspect(l.result) && suspected != nil {"),
			working("TestWhatIsPutOffHasNotBegun")},
		{"limit-releases-what-others-delay", "I6", store, change("e.limited_attempt = ` + limitedAttemptSQL + ` AND", "true AND"),
			stored("TestOnlyWhatALimitHasPutOffIsReleased")},
		{"limit-release-forgets-who-is-claimed", "I11", store, change("held.id AND held.claimed", "held.id AND held.claimed AND false"),
			working("TestALimitThatIsRemovedWhileItsAnswerIsUnderWay")},
		{"limit-release-skips-who-is-put-off-just-now", "I11", store, change("FOR UPDATE OF e\"+takeLimitedWriteSQL", "FOR UPDATE OF e SKIP LOCKED\"+takeLimitedWriteSQL"),
			stored("TestAReleaseWaitsForWhatIsPutOffJustNow")},
		{"limit-forgets-an-overshoot", "limit", "internal/mayrun/rates.go", change("greatest(c.minute_count - minutes * coalesce(l.per_minute, c.minute_count), 0) END AS minute_used", "0 END AS minute_used"),
			stored("TestAnOvershootIsCarriedOn")},
		{"limit-lets-run-without-telling", "limit", views, change("n = max(min(n, r.credit-v.unreported, int(v.room)), 0)", "n = max(min(n, int(v.room)), 0)"), working(approximate)},
		{"limit-loses-counts-at-the-stop", "limit", views, change("\t\treturn there\n", "\t\treturn there && false\n"), working("TestCountsAreReportedAtTheStop")},
		{"limit-reports-what-a-claim-asks-about", "limit", views, change("	case closed:\n		return there\n", "	case there || closed:\n		return there\n"), working("TestAClaimPaysForOneStatement")},
		{"limit-puts-all-off-to-the-next-window", "I11", window, change("own.Wait(own.Waiting + int64(before))", "own.Wait(int64(before - before))"), working("TestABacklogIsClaimedOncePerWindow")},
		{"limit-puts-off-to-the-first-instant", "I12", window, change("all[i] = wait + jitter(spread)", "all[i] = wait + 0*jitter(spread)"), working("TestABacklogIsClaimedOncePerWindow")},
		{"limit-puts-off-what-has-lost-its-last-run", "I9", stage, change("return !s.executor.exhausted(f)", "return true"),
			working("TestAnEventThatHasLostItsLastRun")},
	}
}
