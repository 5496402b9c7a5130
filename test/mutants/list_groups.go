package main

// advanceMutants are about ordering groups: events of a key one at a time and in order, and
// concurrency limits.
func advanceMutants() []mutant {
	const sql, claim, store, mend, emit = advancing, "eventqueue/pgstore/claim.go", "eventqueue/pgstore/complete.go",
		"eventqueue/pgstore/advance.go", "eventqueue/pgstore/insertkeyed.go"
	const order, counts = "TestAGroupGoesByIds", "TestALimitCountsWhatBeginsUnderIt"
	return []mutant{
		{"row-from-the-future-loses-its-place", "I15", "eventqueue/pgstore/advance.go", change("AND (delay_until > now OR ` + mayrun", "AND (due > now OR ` + mayrun"), stored("TestWhatMayRunKeepsItsPlace")},
		{"last-of-a-group-is-admitted-first", "order", sql, change("ORDER BY g.event_id LIMIT greatest(free.room, 0)", "ORDER BY g.event_id DESC LIMIT greatest(free.room, 0)"),
			stored(order)},
		{"group-admits-one-too-many", "I15", sql, change("SELECT least(max_chosen, events_v2_max_running(at, changed.canvas_id, changed.group_key) - (", "SELECT least(max_chosen, events_v2_max_running(at, changed.canvas_id, changed.group_key) + 1 - ("),
			stored(counts)},
		{"group-is-not-locked", "I15", sql, change("hashtextextended(format('%s %s', changed.canvas_id, changed.group_key), 0)", "hashtextextended(format('%s %s', changed.canvas_id, pg_backend_pid()), 0)"),
			stored("TestAGroupThatIsHeldDelaysNoOther")},
		{"retry-lets-others-go-first", "order", sql, change("WHERE l.passes AND l.id = ANY (deferred)", "WHERE l.id = ANY (deferred)"), stored(order)},
		{"run-loses-its-place-in-its-groups", "I15", sql, change("left_ids) AND e.group_state = 2 AND (e.locked_at IS NULL OR e.locked_at <= expired)", "left_ids) AND e.group_state = 2 AND (e.locked_at IS NULL OR true)"), stored("TestALimitIsNotHeldByWhatCannotRun")},
		{"dead-run-stays-admitted", "I13", sql, change("left_ids) AND e.group_state = 2 AND (e.locked_at IS NULL OR e.locked_at <= expired)", "left_ids) AND e.group_state = 2 AND (e.locked_at IS NULL OR false)"), stored("TestALimitIsNotHeldByWhatCannotRun")},
		{"place-that-is-freed-loses-the-lost-run", "I9", sql, change("lost_run = e.lost_run OR e.locked_at IS NOT NULL AND e.begun AND coalesce(e.suspect, 0) = 1,\n        begin_first", "begin_first"),
			stored("TestAPlaceThatIsTakenBackLosesNoLostRun")},
		{"held-event-stays-admitted-when-another-arrives", "I13", sql, change("<> ALL (deferred) AND (e.locked_at IS NULL OR e.locked_at <= expired)\n          AND (e.delay_until > clock_timestamp() OR coalesce(", "<> ALL (deferred) AND (e.locked_at IS NULL OR e.locked_at <= expired)\n          AND (false AND coalesce("),
			stored("TestALimitIsNotHeldByWhatIsHeld")},
		{"held-event-stays-admitted-for-the-relay", "I13", mend, change("WHERE group_state = 2\n", "WHERE group_state = 2 AND false\n"), stored("TestALimitIsNotHeldByWhatIsHeld")},
		{"admitted-event-of-a-dead-worker-is-not-rechecked", "I13", "eventqueue/worker/decide.go", change("return f.Grouped && f.Facts.Lock == machine.LockHeld", "return false && f.Facts.Lock == machine.LockHeld"),
			protocol("TestWhenANotificationComesBack")},
		{"next-run-escapes-a-new-limit", "I15", sql, change("e.name, '')) IS NOT NULL\n        OR events_v2_max_running(3, e.canvas_id, 'canvas') IS NOT NULL);\n    UPDATE events_v2 e SET group_state", "e.name, '')) IS NOT NULL);\n    UPDATE events_v2 e SET group_state"), stored(counts)},
		{"walk-reads-all-groups-for-each", "I12 I20", mend, change("WHERE (g.canvas_id, g.group_key, g.admitted, g.event_id) > (groups.canvas_id, groups.group_key, false, 0)\n          AND (g.canvas_id, g.group_key, g.admitted) <= (groups.canvas_id, groups.group_key, false)\n        ORDER BY g.canvas_id, g.group_key, g.admitted, g.event_id`", "WHERE g.canvas_id = groups.canvas_id AND g.group_key = groups.group_key AND NOT g.admitted\n        ORDER BY g.event_id`"),
			stored("TestAWalkReadsTheFirstOfEachGroup")},
		{"deleted-events-stay-in-their-groups", "I13", mend, change("WHERE event_id NOT IN (SELECT id FROM page)", "WHERE false"), stored("TestTheRelayRepairsGroups")},
		{"locked-group-stops-the-relay", "I15", mend, change("if lockWaitExpired(err) {", "if err == nil && lockWaitExpired(err) {"),
			stored("TestAGroupThatIsHeldDelaysNoOther")},
		{"claim-of-an-event-that-waits", "order", "internal/mayrun/mayrun.go", change("` IN (0, 2)`", "` IN (0, 1, 2)`"), stored(order)},
		{"limit-stops-a-take-over", "I13", "internal/mayrun/mayrun.go", change("`e.group_state = 0 AND e.locked_at IS NULL AND (SELECT EXISTS", "`e.group_state = 0 AND (SELECT EXISTS"), stored(counts)},
		{"transaction-locks-a-group", "I15", store, change("within(ctx, in, queries)", "within(ctx, in, append(queries, advance(&advanced, afterCompletion(completions))))"), stored("TestATransactionHoldsNoGroup")},
		{"stopping-worker-goes-on-with-groups", "I13", "eventqueue/worker/advance.go", change("for ctx.Err() == nil && a.advanced.wait", "for a.advanced.wait"), protocol("TestAStoppingWorkerRunsNoAdvancedEvent")},
		{"stopping-worker-keeps-what-advanced", "I13", "eventqueue/worker/parts.go", change("	p.advancer.notifyRest()\n", ""), protocol("TestAStoppingWorkerRunsNoAdvancedEvent")},
		{"plan-of-the-advance-ages", "I12", sql, []edit{
			{"ended := ARRAY(SELECT l.id FROM unnest(left_ids) AS l (id) WHERE (SELECT true FROM events_v2 e WHERE e.id = l.id) IS NULL);",
				"ended := ARRAY(SELECT l.id FROM unnest(left_ids) AS l (id) WHERE NOT EXISTS (SELECT FROM events_v2 e WHERE e.id = l.id));"},
			{" SET enable_bitmapscan = off SET jit = off AS $$\n#variable_conflict use_column\nDECLARE\n    max_chosen", " SET jit = off AS $$\n#variable_conflict use_column\nDECLARE\n    max_chosen"}}, stored("TestAGroupCostsTheSameBehindABacklog")},
		{"due-event-of-a-key-waits-for-its-notification", "I2", sql, change("IF at = 1 THEN", "IF at = 0 THEN"), stored("TestSuite")},
		{"event-that-is-not-due-joins-its-key", "I2", sql, change("substr(changed.group_key, 5) AND e.delay_until <= clock_timestamp()", "substr(changed.group_key, 5)"), stored("TestSuite")},
		{"whole-group-is-notified", "I11", emit, change("heads[i] = alone || !seen[of]", "heads[i] = true"), working("TestTheNextOfAGroupNeedsNoNotification")},
	}
}
