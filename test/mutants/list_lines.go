package main

// lineMutants are about lines: events of a key one at a time and in order, and
// limits of running events.
func lineMutants() []mutant {
	const sql, claim, store, mend, emit = "migrations/00009_lines.sql", "eventqueue/pgstore/claim.go", "eventqueue/pgstore/finish.go",
		"eventqueue/pgstore/turns.go", "eventqueue/pgstore/insertkeyed.go"
	const order, counts = "TestALineGoesByIds", "TestALimitCountsWhatBeginsUnderIt"
	return []mutant{
		{"last-of-a-line-comes-first", "order", sql, change("ORDER BY p.event_id LIMIT greatest(free.room, 0)", "ORDER BY p.event_id DESC LIMIT greatest(free.room, 0)"),
			protocol(order)},
		{"line-has-one-turn-too-many", "I15", sql, change("SELECT least(most, events_v2_max_running(at, l.canvas_id, l.line) - (", "SELECT least(most, events_v2_max_running(at, l.canvas_id, l.line) + 1 - ("),
			protocol(counts)},
		{"line-is-not-locked", "I15", sql, change("hashtextextended(format('events_v2 %s %s %s', at, l.canvas_id, l.line), 0)", "hashtextextended(format('events_v2 %s %s %s', at, l.canvas_id, pg_backend_pid()), 0)"),
			protocol("TestALineThatIsHeldDelaysNoOther")},
		{"retry-lets-others-go-first", "order", sql, change("WHERE l.passes AND l.id = ANY (put_off)", "WHERE l.id = ANY (put_off)"), protocol(order)},
		{"run-loses-its-turn", "I15", sql, change("OR e.locked_at <= expired)", "OR true)"), protocol("TestALimitIsNotHeldByWhatCannotRun")},
		{"dead-run-keeps-its-turn", "I13", sql, change("OR e.locked_at <= expired)", "OR false)"), protocol("TestALimitIsNotHeldByWhatCannotRun")},
		{"next-run-escapes-a-new-limit", "I15", sql, change("        OR events_v2_max_running(3, e.canvas_id, 'canvas') IS NOT NULL);", ");"), protocol(counts)},
		{"deleted-events-keep-their-places", "I13", mend, change("WHERE event_id NOT IN (SELECT id FROM page)", "WHERE false"), protocol("TestTheRelayMendsLines")},
		{"held-line-stops-the-relay", "I15", mend, change("if waitedInVain(err) {", "if err == nil && waitedInVain(err) {"),
			protocol("TestALineThatIsHeldDelaysNoOther")},
		{"claim-without-a-turn", "order", claim, change("AND e.line IN (0, 2)", "AND e.line IN (0, 1, 2)"), protocol(order)},
		{"limit-stops-a-take-over", "I13", claim, change("`e.line = 0 AND e.locked_at IS NULL AND (SELECT EXISTS", "`e.line = 0 AND (SELECT EXISTS"), protocol(counts)},
		{"transaction-holds-a-line", "I15", store, change("in == nil && slices.ContainsFunc(ends", "slices.ContainsFunc(ends"), protocol("TestATransactionHoldsNoLine")},
		{"stopping-worker-goes-on-with-lines", "I13", "eventqueue/turns.go", change("for ctx.Err() == nil && w.turns.wait", "for w.turns.wait"), protocol("TestAStoppingWorkerHandsNothingOver")},
		{"stopping-worker-keeps-turns", "I13", "eventqueue/worker.go", change("	w.ringRest(tell)\n", ""), protocol("TestAStoppingWorkerHandsNothingOver")},
		{"plan-of-turns-ages", "I12", sql, []edit{
			{"WHERE (SELECT true FROM events_v2 e WHERE e.id = l.id) IS NULL);", "WHERE NOT EXISTS (SELECT FROM events_v2 e WHERE e.id = l.id));"},
			{" SET enable_bitmapscan = off", ""}}, protocol("TestALineCostsTheSameBehindABacklog")},
		{"whole-line-is-rung-for", "I11", emit, change("heads[i] = alone || !seen[of]", "heads[i] = true"), queue("TestTheNextOfALineNeedsNoBell")},
	}
}
