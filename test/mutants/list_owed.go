package main

// owedMutants are about the account of notifications.
func owedMutants() []mutant {
	const owed = "eventqueue/pgstore/owed.go"
	const once, lost = "TestADebtIsPaidOnce", "TestWhatSeemsLost"
	const due = "UPDATE events_v2 e SET notified_at = clock_timestamp()\nWHERE e.id"
	const sweep = "UPDATE events_v2 e SET notified_at = clock.now"
	return []mutant{
		{"nothing-becomes-owed", "I1 I2", owed, change("SET notified_at = NULL\n", "SET notified_at = e.notified_at\n"), protocol(once)},
		{"paid-debt-is-still-owed", "I11", owed,
			change(due, "UPDATE events_v2 e SET notified_at = e.notified_at\nWHERE e.id"), protocol(once)},
		{"relay-takes-far-off-events", "I11", owed,
			change("AND delay_until <= (SELECT clock_timestamp() + $1::interval)", "AND $1::interval IS NOT NULL"), protocol(once)},
		{"notify-pays-twice", "I11 I14", owed, change("ANY ($1::bigint[]) AND notified_at IS NULL AND", "ANY ($1::bigint[]) AND"), protocol(once)},
		{"relay-waits-for-others", "I13 I15", owed, change("LIMIT $2\n    FOR UPDATE SKIP LOCKED", "LIMIT $2\n    FOR UPDATE"),
			protocol("TestRelaysWaitForNobody")},
		{"sweep-ignores-rules", "I11", owed, change("WHERE r.canvas_id = page.canvas_id", "WHERE false AND r.canvas_id = page.canvas_id"), protocol(lost)},
		{"sweep-takes-the-running", "I3 I11", owed,
			[]edit{
				{"AND (locked_at IS NULL OR locked_at <= now - $4::interval)", "AND $4::interval IS NOT NULL"},
				{"enqueued_at, notified_at, locked_at + $4::interval)", "enqueued_at, notified_at)"},
			}, protocol(lost)},
		{"sweeps-interval-does-not-grow", "I11", owed, change("least(greatest($3::interval, notified_at - due), $5", "least($3::interval, $5"), protocol(lost)},
		{"sweeps-interval-grows-for-ever", "I13", owed, change("least(greatest($3::interval, notified_at - due), $5 *", "greatest($3::interval, notified_at - due, 0 * $5 *"), protocol(lost)},
		{"sweep-takes-the-same-again", "I11", owed, change(sweep, "UPDATE events_v2 e SET notified_at = e.notified_at"), protocol(lost)},
		{"sweep-ends-after-a-page-of-rows", "I2 I13", owed, change("CASE WHEN count(*) = $2 THEN max(id) END", "NULL::bigint"),
			protocol("TestTheSweepLooksAtEveryRow")},
	}
}

// relayMutants are about the loop that pays and searches.
func relayMutants() []mutant {
	const relay = "eventqueue/relay.go"
	const pays, again = "TestARelayPaysAndSearches", "TestWhatARelayCannotPublishIsOwedAgain"
	return []mutant{
		{"relay-pays-nothing", "I1 I2", relay, change("due, err := r.takeDue(ctx)", "due, err := []Notification(nil), error(nil)"), protocol(pays)},
		{"relay-pays-one-page", "I13", relay, change("done.More = len(due) == MaxPublish; !done.More {", "done.More = len(due) == MaxPublish; len(due) >= 0 {"), protocol(pays)},
		{"relay-searches-nothing", "I2", relay, change("for sweep {", "for sweep && after < 0 {"), protocol(pays)},
		{"relay-searches-one-page", "I2 I13", relay, change("after, sweep = next, next != 0", "after, sweep = next, false"), protocol(pays)},
		{"relay-forgets-the-rest", "I1 I2", relay, change("r.publisher.oweAll(context.WithoutCancel(ctx), notifications[len(batch):])\n", ""), protocol(again)},
		{"relay-without-a-rate", "I11 I12", relay, change("r.limiter.WaitN(ctx, len(batch))", "r.limiter.WaitN(ctx, 0)"), protocol("TestARelayKeepsItsRate")},
	}
}
