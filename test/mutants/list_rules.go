package main

// ruleMutants are about pausing, blocking and lifting.
func ruleMutants() []mutant {
	const store, rules = "eventqueue/pgstore/rules.go", "eventqueue/operate/rules.go"
	const expiry, readable = "eventqueue/operate/expiry.go", "migrations/00002_rules.sql"
	const anyYear, alone = "TestRulesOfAnyYearCostNothing", "TestARuleThatCannotBeLiftedIsLeftAlone"
	const waiting = "eventqueue/pgstore/waiting.go"
	const lift, waits, expired = "TestLiftingARuleTouchesNoOther", "TestWhatWaitsIsTakenOnce", "TestRulesAreLiftedAtTheirEnd"
	return []mutant{
		{"pause-does-not-wait-for-claims", "I7", store, change("IN EXCLUSIVE MODE", "IN ROW EXCLUSIVE MODE"),
			stored("TestPausingWaitsForTheClaimsUnderWay")},
		{"lift-takes-pause-and-block", "I7", store,
			change("`rule_type = $1::text::scheduling_rule_type AND canvas_id", "`$1::text IS NOT NULL AND canvas_id"), stored(lift)},
		{"lift-on-every-canvas", "I16", store,
			change("::scheduling_rule_type AND canvas_id = $2 AND", "::scheduling_rule_type AND $2::uuid IS NOT NULL AND"), stored(lift)},
		{"lift-of-every-handler", "I7", store, change("event_space = $3 AND handler_name = $4 AND modifier", "event_space = $3 AND $4::text IS NOT NULL AND modifier"), stored(lift)},
		{"two-lifts-at-once", "I13", store, change("IN SHARE ROW EXCLUSIVE MODE", "IN ROW SHARE MODE"),
			stored("TestOfTwoRulesLiftedAtOnceOneIsTheLast")},
		{"time-of-the-lift-before-its-commit", "I13", store,
			[]edit{
				{"\t\treturn f(tx)\n", "\t\tif err := tx.QueryRow(ctx, \"SELECT clock_timestamp()\").Scan(&at); err != nil {\n\t\t\treturn err\n\t\t}\n\t\treturn f(tx)\n"},
				{"\tif err == nil {\n\t\terr = s.pool.QueryRow(ctx, `SELECT clock_timestamp()`).Scan(&at)\n\t}\n\treturn at, err", "\treturn at, err"},
			},
			stored("TestTheTimeOfALiftIsAfterItsCommit")},
		{"waiting-event-is-notified-again", "I11 I14", waiting,
			change("AND (e.notified_at IS NULL OR e.notified_at < $6)", "AND $6::timestamptz IS NOT NULL"), stored(waits)},
		{"waiting-event-counts-as-notified", "I13", waiting, change("e.notified_at < $6", "e.notified_at > $6"), stored(waits)},
		{"lift-forgets-the-locked", "I13", waiting,
			change("          AND e.delay_until <= clock.now", "          AND e.locked_at IS NULL AND e.delay_until <= clock.now"), stored(waits)},
		{"lift-notifies-the-far-off", "I11", waiting,
			change("AND e.delay_until <= clock.now + $7::interval", "AND $7::interval IS NOT NULL"), stored(waits)},
		{"lift-notifies-one-page-of-rows", "I13", waiting, change("CASE WHEN count(*) = $5 THEN max(id) END AS next", "NULL::bigint AS next"), stored(waits)},
		{"unpause-with-a-limit", "I13", rules, change("if next == 0 {", "if next >= 0 {"), protocol("TestLiftingNotifiesAllThatWaits")},
		{"lift-that-got-no-further-is-not-made-good", "I13", rules, change("if !lifted.Last {", "if !lifted.Last || !lifted.Removed {"), protocol("TestLiftingAgain")},
		{"lift-again-notifies-again", "I14", rules, change("since = since.Add(-repeatLift)", "_ = repeatLift"), protocol("TestLiftingAgain")},
		{"lift-notifies-under-another-rule", "I11", rules, change("if !lifted.Last {", "if !lifted.Last && !lifted.Removed {"), protocol("TestLiftingAgain")},
		{"rule-that-has-ended-is-added", "I7", store, change("if passed {", "if false {"), stored("TestSuite")},
		{"rule-is-lifted-before-its-end", "I7", store, change("OR until <= clock_timestamp())`\n\n// slowly", "OR $7)`\n\n// slowly"), stored("TestSuite")},
		{"rule-expires-before-its-end", "I7", store, change("WHERE until <= clock_timestamp()", "WHERE until IS NOT NULL"), stored("TestSuite")},
		{"lift-at-the-end-notifies-twice", "I14", rules, change("if lift.Expired && !lifted.Removed {", "if false {"), protocol(expired)},
		{"lift-at-the-end-goes-by-no-end", "I7", "eventqueue/operate/expiry.go", change("RuleScope: rule.RuleScope, Expired: true}", "RuleScope: rule.RuleScope}"), protocol(expired)},
		{"bad-time-of-a-rule-keeps-the-others", "I15", store, change("least(greatest(released_at, '0001-01-01 00:00Z'), '9999-12-31 00:00Z')", "released_at"), stored(anyYear)},
		{"bad-end-of-a-rule-keeps-the-others", "I15", store, change("least(greatest(until, '0001-01-01 00:00Z'), '9999-12-31 00:00Z')", "until"), stored(anyYear)},
		{"bad-time-of-a-rule-hides-the-others", "I15", "eventqueue/inspect/rules.go", change("least(greatest(created_at, '0001-01-01 12:00'), '9999-12-30 12:00')", "created_at"),
			inspecting("TestRulesOfAnyYearAreListed")},
		{"bad-release-of-a-rule-hides-the-others", "I15", "eventqueue/inspect/rules.go", change("least(greatest(released_at, '0001-01-01 00:00Z'), '9999-12-31 00:00Z')", "released_at"),
			inspecting("TestRulesOfAnyYearAreListed")},
		{"bad-times-of-rules-are-taken", "I15", readable, change("created_at >= '0001-01-01' AND created_at < '10000-01-01'\n    AND (released_at", "(released_at"), stored(anyYear)},
		{"bad-releases-of-rules-are-taken", "I15", readable, change("released_at < '10000-01-01 00:00Z')) NOT VALID", "true)) NOT VALID"), stored(anyYear)},
		{"bad-times-of-rules-are-kept", "I15", readable, change("WHERE NOT (created_at >=", "WHERE false AND NOT (created_at >="), stored("TestBadRulesAreCorrected")},
		{"bad-releases-of-rules-are-kept", "I15", readable, change("WHERE NOT (released_at >=", "WHERE false AND NOT (released_at >="), stored("TestBadRulesAreCorrected")},
		{"rule-that-cannot-be-lifted-is-tried-each-second", "I15", expiry, change("if r.refused == nil {\n\t\treturn false", "if r.refused != nil {\n\t\treturn false"), protocol(alone)},
		{"rule-that-cannot-be-lifted-is-given-up", "I13", expiry, change("refusedWait = time.Minute", "refusedWait = time.Hour"), protocol(alone)},
		{"rule-that-cannot-be-lifted-keeps-the-others", "I15", "eventqueue/operate/expiry.go",
			change("errs = append(errs, err)", "if errs = append(errs, err); err != nil {\n\t\t\tbreak\n\t\t}"), protocol(expired)},
	}
}
