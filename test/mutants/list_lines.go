package main

// lineMutants are about lines: events of a key one at a time and in order, and
// limits of running events.
func lineMutants() []mutant {
	const sql, claim, store, mend, emit = "migrations/00013_turns_of_the_held.sql", "eventqueue/pgstore/claim.go", "eventqueue/pgstore/complete.go",
		"eventqueue/pgstore/advance.go", "eventqueue/pgstore/insertkeyed.go"
	const order, counts = "TestAGroupGoesByIds", "TestALimitCountsWhatBeginsUnderIt"
	return []mutant{
		{"last-of-a-line-comes-first", "order", sql, change("ORDER BY p.event_id LIMIT greatest(free.room, 0)", "ORDER BY p.event_id DESC LIMIT greatest(free.room, 0)"),
			protocol(order)},
		{"line-has-one-turn-too-many", "I15", sql, change("SELECT least(most, events_v2_max_running(at, l.canvas_id, l.line) - (", "SELECT least(most, events_v2_max_running(at, l.canvas_id, l.line) + 1 - ("),
			protocol(counts)},
		{"line-is-not-locked", "I15", sql, change("hashtextextended(format('events_v2 %s %s %s', at, l.canvas_id, l.line), 0)", "hashtextextended(format('events_v2 %s %s %s', at, l.canvas_id, pg_backend_pid()), 0)"),
			protocol("TestAGroupThatIsHeldDelaysNoOther")},
		{"retry-lets-others-go-first", "order", sql, change("WHERE l.passes AND l.id = ANY (put_off)", "WHERE l.id = ANY (put_off)"), protocol(order)},
		{"run-loses-its-turn", "I15", sql, change("left_ids) AND e.line = 2 AND (e.locked_at IS NULL OR e.locked_at <= expired)", "left_ids) AND e.line = 2 AND (e.locked_at IS NULL OR true)"), protocol("TestALimitIsNotHeldByWhatCannotRun")},
		{"dead-run-keeps-its-turn", "I13", sql, change("left_ids) AND e.line = 2 AND (e.locked_at IS NULL OR e.locked_at <= expired)", "left_ids) AND e.line = 2 AND (e.locked_at IS NULL OR false)"), protocol("TestALimitIsNotHeldByWhatCannotRun")},
		{"turn-that-is-taken-back-forgets-the-lost-run", "I9", "migrations/00024_turns_of_lost_runs.sql", change("lost_run = e.lost_run OR e.locked_at IS NOT NULL AND e.begun, begin_first", "begin_first"),
			protocol("TestATurnThatIsTakenBackForgetsNoLostRun")},
		{"held-event-keeps-its-turn-from-who-comes", "I13", sql, change("AND (e.delay_until > clock_timestamp() OR (SELECT true", "AND (false AND (SELECT true"),
			protocol("TestALimitIsNotHeldByWhatIsHeld")},
		{"held-event-keeps-its-turn-from-the-relay", "I13", mend, change("WHERE line = 2\n", "WHERE line = 2 AND false\n"), protocol("TestALimitIsNotHeldByWhatIsHeld")},
		{"dead-turn-is-not-looked-at-again", "I13", "eventqueue/worker/decide.go", change("return f.Grouped && f.Facts.Lock == machine.LockHeld", "return false && f.Facts.Lock == machine.LockHeld"),
			protocol("TestWhenANotificationComesBack")},
		{"next-run-escapes-a-new-limit", "I15", sql, change("        OR events_v2_max_running(3, e.canvas_id, 'canvas') IS NOT NULL);", ");"), protocol(counts)},
		{"walk-reads-all-groups-for-each", "I12 I20", mend, change("WHERE (p.canvas_id, p.line, p.turn, p.event_id) > (l.canvas_id, l.line, false, 0)\n          AND (p.canvas_id, p.line, p.turn) <= (l.canvas_id, l.line, false)\n        ORDER BY p.canvas_id, p.line, p.turn, p.event_id LIMIT 1", "WHERE p.canvas_id = l.canvas_id AND p.line = l.line AND NOT p.turn\n        ORDER BY p.event_id LIMIT 1"),
			protocol("TestAWalkReadsTheFirstOfEachGroup")},
		{"deleted-events-keep-their-places", "I13", mend, change("WHERE event_id NOT IN (SELECT id FROM page)", "WHERE false"), protocol("TestTheRelayRepairsGroups")},
		{"held-line-stops-the-relay", "I15", mend, change("if lockWaitExpired(err) {", "if err == nil && lockWaitExpired(err) {"),
			protocol("TestAGroupThatIsHeldDelaysNoOther")},
		{"claim-without-a-turn", "order", "eventqueue/pgstore/mayrun.go", change("` IN (0, 2)`", "` IN (0, 1, 2)`"), protocol(order)},
		{"limit-stops-a-take-over", "I13", "eventqueue/pgstore/mayrun.go", change("`e.line = 0 AND e.locked_at IS NULL AND (SELECT EXISTS", "`e.line = 0 AND (SELECT EXISTS"), protocol(counts)},
		{"transaction-holds-a-line", "I15", store, change("in == nil && slices.ContainsFunc(completions", "slices.ContainsFunc(completions"), protocol("TestATransactionHoldsNoGroup")},
		{"stopping-worker-goes-on-with-lines", "I13", "eventqueue/worker/advance.go", change("for ctx.Err() == nil && w.advanced.wait", "for w.advanced.wait"), protocol("TestAStoppingWorkerHandsNothingOver")},
		{"stopping-worker-keeps-turns", "I13", "eventqueue/worker/parts.go", change("	p.advancer.notifyRest()\n", ""), protocol("TestAStoppingWorkerHandsNothingOver")},
		{"plan-of-turns-ages", "I12", sql, []edit{
			{"WHERE (SELECT true FROM events_v2 e WHERE e.id = l.id) IS NULL);", "WHERE NOT EXISTS (SELECT FROM events_v2 e WHERE e.id = l.id));"},
			{" SET enable_bitmapscan = off", ""}}, protocol("TestAGroupCostsTheSameBehindABacklog")},
		{"whole-line-is-rung-for", "I11", emit, change("heads[i] = alone || !seen[of]", "heads[i] = true"), working("TestTheNextOfAGroupNeedsNoNotification")},
	}
}
