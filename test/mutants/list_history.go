package main

// historyMutants are about requeueing by hand and pruning.
func historyMutants() []mutant {
	const store, prune = "eventqueue/pgstore/requeue.go", "eventqueue/pgstore/history.go"
	const fenced, walk = "TestRequeueFencesWhoHeldAnExpiredLock", "TestPrunerReadsNoFurtherThanItMust"
	return []mutant{
		{"requeue-of-a-live-event", "I4", store,
			change(`mayrun.UnlockedSQL("e.locked_at", "clock.now - clock.valid_for")`, `"true"`), controlling("TestRequeueRefusesALiveEvent")},
		{"requeue-leaves-the-lock", "I5", store, change("SET locked_at = NULL,", "SET locked_at = e.locked_at,"), controlling(fenced)},
		{"requeue-charges-for-no-run", "I18", suspectFile, change("(e.locked_at IS NOT NULL AND e.begun AND coalesce", "(e.locked_at IS NOT NULL AND coalesce"), controlling("TestRequeueChargesForRunsOnly")},
		{"requeue-gives-the-lost-run-back", "I9", store, change("lost_run = false, ` + takeoverSQL + `,`", "lost_run = false,`"), controlling(fenced)},
		{"requeue-begins-the-tokens-anew", "I5", store, change("notified_at = NULL\n", "notified_at = NULL, attempts = 0\n"), controlling(fenced)},
		{"retry-notifies-nobody", "I13", "eventqueue/operate/retry.go", change(`notifyFreed(ctx, c.queue, DoneIDs(results), "retried")`, "_ = results"), controlling("TestRetryMovesAndNotifies")},
		{"retry-all-of-a-canvas", "I16", "eventqueue/pgstore/select.go", change("($6::text = '' OR e.name = $6)", "($6::text = '' OR e.name <> '')"), controlling("TestRetryByFilterIsOfOneHandler")},
		{"prune-waits-for-a-retry", "I15", prune, change("FOR UPDATE OF l SKIP LOCKED", "FOR UPDATE OF l"), maintaining("TestPrunerLeavesWhatARetryMoves")},
		{"prune-of-every-status", "I1", prune, change("status::text = $1::text AND created_at <= bound.ended AS outdated", "created_at <= bound.ended AS outdated"),
			maintaining("TestCountDeletesNothing")},
		{"prune-forgets-what-it-kept", "I14", prune, change("min(id) FILTER (WHERE asked AND id NOT IN (SELECT id FROM gone))", "NULL::bigint"), maintaining(walk)},
		{"prune-walks-to-the-end", "I12", prune, change("FROM gone)), 0),\n    coalesce(max(id), 0), count(*) = $4 AND bool_or(aged)",
			"FROM gone)), 0),\n    coalesce(max(id), 0), count(*) = $4"), maintaining(walk)},
	}
}
