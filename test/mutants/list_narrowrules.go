package main

// narrowRuleMutants are about rules of a modifier or a prefix, and those that are lifted at a rate.
func narrowRuleMutants() []mutant {
	const conditions, rules, release, waiting = "internal/mayrun/mayrun.go", "eventqueue/pgstore/rules.go", "eventqueue/pgstore/release.go", "eventqueue/pgstore/waiting.go"
	const suite, agree, rate = "TestSuite", "TestStatementsAgreeOnWhatMayRun", "TestARuleIsLiftedAtItsRate"
	const audited = "TestTheEndOfARampIsAudited"
	const modifier, released = "r.modifier IN ('', ` + row + `.modifier) AND", "AND (r.released_to IS NULL OR ` + row + `.id > r.released_to)"
	return []mutant{
		{"rule-of-a-modifier-holds-all", "I7", conditions, change(modifier, ""), stored(suite)},
		{"rule-of-a-modifier-holds-nothing", "I7", conditions, change(modifier, "r.modifier = '' AND"), stored(suite)},
		{"prefix-is-a-pattern", "I7", conditions, change("starts_with(` + row + `.name, r.handler_name)", "` + row + `.name LIKE r.handler_name || '%'"), stored(suite)},
		{"prefix-holds-other-modules", "I7", conditions, change(".canvas_id AND r.event_space = ` + row + `.module\n            AND starts", ".canvas_id\n            AND starts"), stored(suite)},
		{"narrow-rule-hides-its-handler", "I13", conditions, change("wholeSQL = `r.modifier = '' AND r.released_to", "wholeSQL = `r.released_to"), stored(suite)},
		{"worker-looks-at-what-a-narrow-rule-holds", "I11", "eventqueue/pgstore/runnable.go", change(" AND NOT ` + mayrun.NarrowlyRuledSQL(\"e\") + `", ""), stored(agree)},
		{"ramp-holds-nothing", "I7", conditions, change(released, "AND r.released_to IS NULL"), stored(suite)},
		{"ramp-lets-nothing-run", "I13", conditions, change(released, ""), stored(suite)},
		{"ramp-outlives-a-pause", "I7", rules, change("WHERE scheduling_rules.rate IS NOT NULL`", "WHERE false`"), stored(suite)},
		{"ramp-keeps-the-end", "I7", rules, change("SET rate = $8, until = NULL,", "SET rate = $8,"), stored("TestARampHasNoEnd")},
		{"held-queue-is-claimed", "I7", conditions, change("AND (` + WholeQueueRuledSQL + ` OR EXISTS (SELECT FROM ` + ofPrefixSQL(row) + ` AND ` + ofEventSQL(row) + `)))`", "AND EXISTS (SELECT FROM ` + ofPrefixSQL(row) + ` AND ` + ofEventSQL(row) + `))`"), stored(suite)},
		{"ramp-waits-for-what-another-rule-holds", "I13", release, change(" AND NOT ` + mayrun.RuledSQL(\"e\") + `", ""), stored(suite)},
		{"ramp-waits-for-what-is-not-due", "I13", release, change(" AND ` + mayrun.DueSQL(\"e.delay_until\", \"clock.now\") + `", ""), stored(suite)},
		{"ramp-makes-up-for-an-hour", "I11", release, change("greatest(released_at, clock_timestamp() - $7::interval)", "least(released_at, clock_timestamp() - $7::interval)"),
			stored("TestARampMakesUpForNoMoreThanTwoSeconds")},
		{"ramp-waits-for-a-time-that-never-comes", "I15", release, change("CASE WHEN released_at > clock_timestamp() + $7::interval", "CASE WHEN false"), stored("TestRulesOfAnyYearCostNothing")},
		{"ramp-keeps-a-time-that-is-refused", "I15", release, change(", released_at = clock_timestamp() WHERE id = $1`", " WHERE id = $1`"), stored("TestAReleaseReplacesATimeThatIsRefused")},
		{"ramp-ends-unaudited", "audit", release, change("return s.changeIn(ctx, tx, row,", "return (&Store{pool: s.pool}).changeIn(ctx, tx, row,"), stored(audited)},
		{"ramp-ends-in-the-name-of-cron", "audit", release, change("		s = s.As(by)\n", ""), stored(audited)},
		{"ramp-ends-in-the-name-of-an-earlier-one", "audit", release, change("  AND after->0->>'created_at' = (SELECT to_jsonb(created_at) #>> '{}' FROM scheduling_rules WHERE id = $4)", "  AND $4 > 0"), stored(audited)},
		{"audit-of-a-ramp-has-what-was-never-committed", "audit", release, change("released_to = $2, released_at = $3 WHERE", "released_at = $3 WHERE $2::bigint IS NOT NULL AND"), stored(audited)},
		{"ramp-is-left-alone", "I13", "eventqueue/operate/expiry.go", change("wait = releaseInterval", "wait = ExpiryInterval"), protocol(rate)},
		{"ramp-notifies-too-much", "I11", "eventqueue/operate/rules.go", change("After: released.After, UpTo: released.UpTo}", "After: released.After}"), protocol(rate)},
		{"narrow-rule-counts-as-all", "I13", rules, change(" AND r.modifier IN ('', $4)", ""), stored(suite)},
		{"lift-notifies-what-another-rule-holds", "I11", waiting, change("NOT ((SELECT EXISTS (SELECT FROM scheduling_rules)) AND", "NOT (false AND"), stored(suite)},
		{"lift-notifies-other-modifiers", "I11", waiting, change("($8 = '' OR e.modifier = $8)", "$8::text IS NOT NULL"), stored(suite)},
		{"ramp-notifies-beyond-its-step", "I11", waiting, change("AND id > $4 AND id <= $9", "AND id > $4 AND $9::bigint > 0"), stored(suite)},
		{"lift-notifies-one-handler-of-a-prefix", "I13", "eventqueue/operate/rules.go", change("if scope.Prefix {", "if false {"), protocol("TestAllHandlersOfAPrefixAreNotified")},
		{"turn-is-taken-for-a-rule-of-others", "I13", advancing, change("coalesce(\n              (SELECT true FROM scheduling_rules r\n               WHERE r.canvas_id = e.canvas_id AND r.event_space = e.module AND r.handler_name = e.name\n                 AND r.modifier IN ('', e.modifier) AND", "coalesce(\n              (SELECT true FROM scheduling_rules r\n               WHERE r.canvas_id = e.canvas_id AND r.event_space = e.module AND r.handler_name = e.name\n                 AND"), stored("TestARuleOfOthersTakesNoTurn")},
		{"turn-of-a-prefix-is-kept", "I13", advancing, change("AND r.prefix\n", "AND NOT r.prefix\n"), stored("TestALimitIsNotHeldByWhatIsHeld")},
	}
}
