package main

// historyMutants are about requeueing by hand and pruning.
func historyMutants() []mutant {
	const store, prune = "eventqueue/pgstore/requeue.go", "eventqueue/pgstore/history.go"
	const fenced, walk = "TestRequeueFencesWhoHeldAnExpiredLock", "TestPrunerLooksNoFurtherThanItMust"
	return []mutant{
		{"requeue-of-a-live-event", "I4", store,
			change("AND (e.locked_at IS NULL OR e.locked_at <= clock.now - $2::interval)", "AND $2::interval IS NOT NULL"), queue("TestRequeueRefusesALiveEvent")},
		{"requeue-leaves-the-lock", "I5", store, change("SET locked_at = NULL,", "SET locked_at = e.locked_at,"), queue(fenced)},
		{"requeue-gives-the-lost-run-back", "I9", store, change("e.retries + (e.locked_at IS NOT NULL)::int", "e.retries"), queue(fenced)},
		{"requeue-begins-the-tokens-anew", "I5", store, change("notified_at = NULL\n", "notified_at = NULL, attempts = 0\n"), queue(fenced)},
		{"prune-waits-for-a-retry", "I15", prune, change("FOR UPDATE OF l SKIP LOCKED", "FOR UPDATE OF l"), queue("TestPrunerLeavesWhatARetryMoves")},
		{"prune-of-every-status", "I1", prune, change("status::text = $1::text AND created_at <= bound.ended AS outdated", "created_at <= bound.ended AS outdated"),
			queue("TestCountDeletesNothing")},
		{"prune-forgets-what-it-kept", "I14", prune, change("min(id) FILTER (WHERE asked AND id NOT IN (SELECT id FROM gone))", "NULL::bigint"), queue(walk)},
		{"prune-walks-to-the-end", "I12", prune, change("FROM gone)), 0),\n    coalesce(max(id), 0), count(*) = $4 AND bool_or(aged)",
			"FROM gone)), 0),\n    coalesce(max(id), 0), count(*) = $4"), queue(walk)},
	}
}
