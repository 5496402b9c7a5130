package main

// uniqueMutants are about keys that are emitted once.
func uniqueMutants() []mutant {
	const store, forget, group, end = "eventqueue/pgstore/insertkeyed.go", "eventqueue/pgstore/unique.go", "eventqueue/groupcommit.go", "eventqueue/worker/completion.go"
	return []mutant{
		{"key-is-forgotten-at-the-end", "I8", store, change("coalesce(e.queued, u.reserved, false) AS holds", "coalesce(e.queued, false) AS holds"),
			stored("TestAKeyHoldsForItsTime")},
		{"key-holds-for-ever", "I13", store, change("u.event_id = k.event_id AND u.expires_at > (SELECT now FROM clock)", "u.event_id = k.event_id"),
			stored("TestAKeyHoldsForItsTime")},
		{"key-is-not-waited-for", "I3", store, change("DO UPDATE SET event_id = unique_keys.event_id WHERE false", "DO NOTHING"),
			stored("TestAnExpiredKeyIsTakenOverOnce")},
		{"key-in-a-transaction-of-old-snapshots", "I8", store, change("WHERE (SELECT events_v2_needs_read_committed('an emit with a unique key'))\n", ""),
			sessions("TestUniqueKeysNeedReadCommitted")},
		{"keys-are-taken-in-any-order", "I15", store, change("cmp.Compare(a.Key, b.Key))", "cmp.Compare(a.Key, a.Key))"),
			stored("TestABatchTakesItsKeysInOrder")},
		{"key-that-holds-is-removed", "I3", forget, change("AND e.queued IS NULL AND u.reserved IS NULL", "AND e.queued IS NULL"),
			stored("TestKeysThatHoldNoLongerAreRemoved")},
		{"keyed-emits-have-no-share", "I13 I15", store, change("return s.share.waitForKeys(ctx, keys, func() error { return s.run(ctx, skipping, queries...) })", "return s.run(ctx, skipping, queries...)"),
			stored("TestWaitersForLocksLeaveConnections")},
		{"units-of-work-take-the-pool", "I13 I15", "eventqueue/pgstore/share.go", change("make(chan struct{}, conns-spared)", "make(chan struct{}, conns)"), stored("TestWaitersForLocksLeaveConnections")},
		{"one-key-takes-the-share", "I15", "eventqueue/pgstore/share.go", change("range keys {", "range keys[:0] {"), stored("TestOneKeyHoldsUpNoOther")},
		{"emit-with-a-key-holds-up-others", "I15", group, change(" || slices.ContainsFunc(events, NewEvent.unique)", ""),
			stored("TestAnEmitWithAKeyHoldsUpNoOther")},
		{"worker-forgets-that-it-has-a-key", "I3", end, change("f.completion.Claim, f.completion.Unique, f.completion.Grouped = x.claim(), x.unique, x.grouped", "f.completion.Claim, f.completion.Grouped = x.claim(), x.grouped"),
			queue("TestAWorkerKeepsTheEndOfAKey")},
	}
}
