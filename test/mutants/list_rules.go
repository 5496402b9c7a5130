package main

// ruleMutants are about pausing, blocking and lifting.
func ruleMutants() []mutant {
	const store, rules = "eventqueue/pgstore/rules.go", "eventqueue/control/rules.go"
	const lift, waits = "TestLiftingARuleTouchesNoOther", "TestWhatWaitsIsTakenOnce"
	return []mutant{
		{"pause-does-not-wait-for-claims", "I7", store, change("IN EXCLUSIVE MODE", "IN ROW EXCLUSIVE MODE"),
			stored("TestPausingWaitsForTheClaimsUnderWay")},
		{"lift-takes-pause-and-block", "I7", store,
			change("WHERE rule_type = $1::text::scheduling_rule_type AND canvas_id", "WHERE $1::text IS NOT NULL AND canvas_id"), stored(lift)},
		{"lift-on-every-canvas", "I16", store,
			change("::scheduling_rule_type AND canvas_id = $2 AND", "::scheduling_rule_type AND $2::uuid IS NOT NULL AND"), stored(lift)},
		{"lift-of-every-handler", "I7", store, change("event_space = $3 AND handler_name = $4`", "event_space = $3 AND $4::text IS NOT NULL`"), stored(lift)},
		{"two-lifts-at-once", "I13", store, change("IN SHARE ROW EXCLUSIVE MODE", "IN ROW SHARE MODE"),
			stored("TestOfTwoRulesLiftedAtOnceOneIsTheLast")},
		{"time-of-the-lift-before-its-commit", "I13", store,
			[]edit{
				{"tag, err := tx.Exec(ctx, liftRuleSQL", "if err := tx.QueryRow(ctx, \"SELECT clock_timestamp()\").Scan(&lifted.At); err != nil {\n\t\t\treturn err\n\t\t}\n\t\ttag, err := tx.Exec(ctx, liftRuleSQL"},
				{"err = s.pool.QueryRow(ctx, `SELECT clock_timestamp()`).Scan(&lifted.At)\n\treturn lifted, err", "return lifted, nil"},
			},
			stored("TestTheTimeOfALiftIsAfterItsCommit")},
		{"waiting-event-is-notified-again", "I11 I14", store,
			change("AND (e.notified_at IS NULL OR e.notified_at < $6)", "AND $6::timestamptz IS NOT NULL"), stored(waits)},
		{"waiting-event-counts-as-notified", "I13", store, change("e.notified_at < $6", "e.notified_at > $6"), stored(waits)},
		{"lift-forgets-the-locked", "I13", store,
			change("          AND e.delay_until <= clock.now", "          AND e.locked_at IS NULL AND e.delay_until <= clock.now"), stored(waits)},
		{"lift-notifies-the-far-off", "I11", store,
			change("AND e.delay_until <= clock.now + $7::interval", "AND $7::interval IS NOT NULL"), stored(waits)},
		{"lift-notifies-one-page-of-rows", "I13", store, change("CASE WHEN count(*) = $5 THEN max(id) END AS next", "NULL::bigint AS next"), stored(waits)},
		{"unpause-with-a-limit", "I13", rules, change("if next == 0 {", "if next >= 0 {"), protocol("TestLiftingNotifiesAllThatWaits")},
		{"lift-that-got-no-further-is-not-made-good", "I13", rules, change("if !lifted.Last {", "if !lifted.Last || !lifted.Removed {"), protocol("TestLiftingAgain")},
		{"lift-again-notifies-again", "I14", rules, change("since = since.Add(-repeatLift)", "_ = repeatLift"), protocol("TestLiftingAgain")},
		{"lift-notifies-under-another-rule", "I11", rules, change("if !lifted.Last {", "if !lifted.Last && !lifted.Removed {"), protocol("TestLiftingAgain")},
	}
}
