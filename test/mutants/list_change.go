package main

// changeMutants are about cancelling, deleting and editing events that wait.
func changeMutants() []mutant {
	const remove, selects, control = "eventqueue/pgstore/remove.go", "eventqueue/pgstore/select.go", "eventqueue/control/change.go"
	const edits = "eventqueue/pgstore/edit.go"
	const requeues = "eventqueue/pgstore/requeue.go"
	const early, refusedWith = "TestAnEditIsNeverEarly", "TestWhatARunningEventIsRefusedWith"
	return []mutant{
		{"cancel-of-a-live-event", "I4", remove,
			change(`mayrun.UnlockedSQL("e.locked_at", "clock.now - clock.valid_for")`, `"true"`), controlling("TestChangesLeaveARunAlone")},
		{"cancel-judges-by-an-old-lock", "I5", remove,
			change(`mayrun.UnlockedSQL("e.locked_at", "clock.now - clock.valid_for")`, `"e.locked_at IS NULL"`), controlling("TestACancelFencesWhoHeldAnExpiredLock")},
		{"cancel-loses-the-event", "I1", remove, change("WHERE $2::boolean", "WHERE $2::boolean IS NULL"), controlling("TestACancelFencesWhoHeldAnExpiredLock")},
		{"retry-begins-the-tokens-of-the-cancelled-anew", "I5", remove, change("'CANCELLED', retries, attempts, enqueued_at", "'CANCELLED', retries, 0, enqueued_at"), controlling("TestACancelFencesWhoHeldAnExpiredLock")},
		{"cancel-advances-no-group", "I13", remove, change("AND NOT EXISTS (SELECT FROM events_v2 e WHERE e.id = g.event_id)", "AND EXISTS (SELECT FROM events_v2 e WHERE e.id = g.event_id)"), controlling("TestACancelAdvancesItsGroup")},
		{"cancel-notifies-nobody", "I13", control, change("c.queue.NotifyEvents(ctx, advanced)", "_ = advanced"), controlling("TestACancelNotifiesTheNextOfItsGroup")},
		{"an-empty-filter-selects-all", "I16", "eventqueue/control/filter.go", change(`f.OlderThan == 0 && f.NewerThan == 0:`, `f.OlderThan < 0:`), controlling("TestAnEmptyFilterIsRefused")},
		{"filter-of-every-canvas", "I16", selects, change("($4::uuid IS NULL OR e.canvas_id = $4)", "($4::uuid IS NULL OR e.canvas_id IS NOT NULL)"), controlling("TestAFilterSelectsByAllOfItsFields")},
		{"filter-by-any-attempt", "I16", selects, change("ORDER BY a.attempt DESC LIMIT 1)", "ORDER BY a.attempt LIMIT 1)"), controlling("TestAFilterSelectsByAllOfItsFields")},
		{"filter-ends-after-a-page", "I14", "eventqueue/control/changeall.go", change("if next == 0 {", "if next >= 0 {"), controlling("TestAFilterGoesThroughManyPages")},
		{"an-interrupted-cancel-counts-too-few", "I14", "eventqueue/control/changeall.go", change("context.WithTimeout(context.WithoutCancel(ctx), batchTimeout)", "context.WithTimeout(ctx, batchTimeout)"), controlling("TestAnInterruptedFilterCountsExactly")},
		{"edit-of-a-live-event", "I4", edits, change(`mayrun.UnlockedSQL("e.locked_at",`, `mayrun.UnlockedSQL("NULL::timestamptz",`), controlling("TestAnEditLeavesARunAlone")},
		{"edit-leaves-an-expired-lock", "I5", edits, change("` + clearLockSQL + `\n", "SET\n"), controlling("TestAnEditFencesWhoHeldAnExpiredLock")},
		{"edit-is-due-early", "I6", edits, change("time.Duration(roundUpMicroseconds(*edit.Delay)) * time.Microsecond", "edit.Delay.Truncate(time.Microsecond)"), stored(early)},
		{"edit-until-a-time-is-due-early", "I6", edits, change("storableTime(edit.DelayUntil)", "edit.DelayUntil"), stored(early)},
		{"running-event-is-said-to-be-free-soon", "I14", remove, change("free.locked_at + clock.valid_for - clock.now", "free.locked_at + interval '1 minute' - clock.now"), stored(refusedWith)},
		{"requeued-event-is-said-to-be-free-soon", "I14", requeues, change("free.locked_at + clock.valid_for - clock.now", "free.locked_at + interval '1 minute' - clock.now"), stored(refusedWith)},
		{"lock-of-any-year-spoils-the-answer", "I15", remove, change("interval '876000 hours'", "interval '2000000000 hours'"), stored(refusedWith)},
		{"edit-notifies-nobody", "I13", "eventqueue/control/edit.go", change(`notifyFreed(ctx, c.queue, changed, "edited")`, "_ = changed"), controlling("TestAnEditChangesWhatItNamesAndNothingElse")},
		{"edit-checks-nothing", "I8", "eventqueue/control/edit.go", change("errors.As(err, &invalid) {", "errors.As(err, &invalid) && limits.MaxDelay < 0 {"), controlling("TestABadEditWritesNothing")},
		{"cancelled-events-are-never-pruned", "I12", "eventqueue/maintenance/history.go", change("p.pruneStatus(ctx, LogCancelled, p.config.FailedFor)", "p.pruneStatus(ctx, LogCancelled, 0)"),
			maintaining("TestPrunerDeletesCancelledEventsLikeFailedOnes")},
		{"edit-in-two-halves", "I8", edits, change("attributes = CASE WHEN $3::text IS NULL THEN", "attributes = CASE WHEN $3::text IS NOT NULL THEN"), controlling("TestARunSeesAllOfAnEditOrNothing")},
		{"edit-of-a-run-that-has-begun", "I8", edits, change(`mayrun.UnlockedSQL("e.locked_at",`, `mayrun.UnlockedSQL("nullif(e.locked_at, e.locked_at)",`), controlling("TestARunSeesAllOfAnEditOrNothing")},
		{"cancel-of-a-run-that-has-begun", "I4", remove, change(`mayrun.UnlockedSQL("e.locked_at", "clock.now - clock.valid_for")`, `"e.attempts >= 0"`), controlling("TestEachEventIsCancelledOrCompletes")},
		{"cancel-without-its-reason", "I11", remove, change("nullif($3, ''), nullif($4, '')", "NULL, nullif($4, left($3, 0))"), controlling("TestACancelSaysWhyAndByWhom")},
		{"cancels-are-not-counted", "I11", control, change("minutes.Of(c.queue).CountCancelled(changedScopes(results))", "_ = minutes.Of(c.queue)"), controlling("TestACancelSaysWhyAndByWhom")},
		{"failure-for-good-looks-like-any-other", "I19", "eventqueue/pgstore/complete.go", change("completions[i].Label == machine.FailedForGood {", "completions[i].Label == machine.Deleted {"), []judge{{"./eventqueue/inspect", []string{"TestShowFollowsAnEvent"}}}},
		{"retry-of-what-nobody-has-seen", "I8", "eventqueue/pgstore/retry.go", change("AND NOT failed.outdated", "AND (NOT failed.outdated OR l.id > 0)"), []judge{{"./dashboard", []string{"TestNobodyRetriesWhatTheyHaveNotSeen"}}}},
		{"memory-retries-what-nobody-has-seen", "I8", "eventqueue/memstore/retry.go", change("case ended && outdated(edit, logged.Value, logged.Attributes):", "case ended && edit.Of != nil && logged.Value == \"\":"), []judge{{"./eventqueue/memstore", []string{"TestSuite"}}}},
		{"changes-of-all-share-a-limit", "I15", "dashboard/forms.go", change("d.changes.Take(viewerOf(r).key())", `d.changes.Take("")`), []judge{{"./dashboard", []string{"TestChangesAreLimitedByIdentity"}}}},
		{"count-of-events-that-one-may-not-change", "I16", "dashboard/bulk.go", change("if !viewerOf(r).mayOn(verb, filter.Canvas) {", "if !viewerOf(r).mayOn(access.Read, filter.Canvas) && verb != \"\" {"), []judge{{"./dashboard", []string{"TestChangesOfManyAreRefused"}}}},
		{"memory-counts-what-is-paused-as-due", "I13", "eventqueue/memstore/waiting.go", change("due, held = nil, pending", "held = pending"), []judge{{"./eventqueue/memstore", []string{"TestSuite", "TestARelayInMemorySaysWhatDoesNotRun"}}}},
		{"memory-finds-what-runs-as-due", "I13", "eventqueue/memstore/waiting.go", change("if s.db.mayRun(&r.Row, now) && !s.db", "if s.db.mayRun(&r.Row, now.Add(time.Hour)) && !s.db"), []judge{{"./eventqueue/memstore", []string{"TestSuite"}}}},
		{"memory-says-that-what-ends-does-not-run", "I13", "eventqueue/memstore/waiting.go", change("return ended[u.Scope] || ", "return "), []judge{{"./eventqueue/memstore", []string{"TestARelayInMemorySaysWhatDoesNotRun"}}}},
		{"memory-cancels-what-runs", "I4", "eventqueue/memstore/change.go", change("if tx.store.db.unlocked(&row, now) {", "if true {"), []judge{{"./eventqueue/memstore", []string{"TestSuite"}}}},
		{"memory-cancel-leaves-the-group", "I13", "eventqueue/memstore/change.go", change("if len(gone) > 0 {", "if len(gone) > 1 {"), []judge{{"./eventqueue/memstore", []string{"TestSuite"}}}},
		{"memory-retry-forgets-the-tokens", "I5", "eventqueue/memstore/retry.go", change("Attempts: logged.Attempts, ", ""), []judge{{"./eventqueue/memstore", []string{"TestSuite"}}}},
		{"a-state-of-the-history-is-a-filter", "I16", "eventqueue/control/filter.go", change("can be retried\", f.State)\n\t}\n\treturn f.validate(false)", "can be retried\", f.State)\n\t}\n\treturn f.validate(f.State != \"\")"), controlling("TestAnEmptyFilterOfTheHistoryIsRefused")},
		{"filter-of-every-state", "I16", selects, change("($12::text = '' OR $12 =", "($12::text IS NOT NULL OR $12 ="), controlling("TestAFilterSelectsByState")},
		{"filter-of-the-cancelled-with-the-failed", "I16", selects, change("e.status::text = upper($12::text)", "(e.status::text <> 'COMPLETED' OR $12::text IS NULL)"), controlling("TestAFilterOfTheHistory")},
		{"filter-deletes-what-has-completed", "I1", selects, change("state = control.StateFailed", `state = "completed"`), controlling("TestAFilterOfTheHistory")},
		{"a-refused-row-costs-its-call", "I15", "eventqueue/pgstore/around.go", change("results = append(results, refused(r.Item, r.Err))", "return nil, r.Err"), controlling("TestARefusedRowCostsItselfOnly")},
		{"a-refused-row-is-not-named", "I15", "eventqueue/pgstore/around.go", change("results = append(results, refused(r.Item, r.Err))", "_ = refused(r.Item, r.Err)"), controlling("TestARefusedRowCostsItselfOnly")},
		{"requeue-by-filter-notifies-nobody", "I13", "eventqueue/control/requeue.go", change(`notifyFreed(ctx, r.queue, free, "requeued")`, "_ = free"), controlling("TestEditAndRequeueByFilter")},
		{"cancel-frees-a-reserved-key", "I14", remove, change("WHERE unique_seconds > 0", "WHERE unique_seconds < 0"), controlling("TestACancelReleasesAUniqueKey")},
	}
}
