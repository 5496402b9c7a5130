package main

// notifierMutants are about Pub/Sub.
func notifierMutants() []mutant {
	const receive, message, line = "pubsubnotify/receive.go", "pubsubnotify/message.go", "pubsubnotify/connection.go"
	const seldom = "TestASlowServerIsDialledSeldom"
	const formats = "TestOwnMessagesAreReadLikeOthers"
	return []mutant{
		{"paused-events-need-workers", "I7", baseline, change("NOT ruled AND e.delay_until", "e.delay_until"), inspecting("TestRunnableLeavesOutWhatIsHeldBack")},
		{"delayed-events-need-workers", "I6", baseline, change("NOT ruled AND e.delay_until <= now_at", "NOT ruled"), inspecting("TestRunnableCountsWhatCouldRun")},
		{"running-events-need-no-worker", "I13", baseline, change("total := total + running + runnable", "total := total + runnable"), inspecting("TestRunnableCountsWhatCouldRun")},
		{"unknown-handlers-need-workers", "I13", baseline, change("AND (known IS NULL OR known ? concat_ws(U&'\\001f', at_module, at_name, e.modifier)", "AND (true OR known ? concat_ws(U&'\\001f', at_module, at_name, e.modifier)"), inspecting("TestRunnableKnowsHandlers")},
		{"handlers-of-one-canvas-are-unknown", "I13", baseline, change("OR known ? concat_ws(U&'\\001f', at_canvas, at_module, at_name, e.modifier)", ""), inspecting("TestRunnableKnowsHandlers")},
		{"every-event-of-a-key-needs-workers", "I13", baseline, change("ELSE least(count(*), coalesce(events_v2_room(1, at_canvas, '', '', j.ordering_key), count(*))) END", "ELSE count(*) END"), inspecting("TestRunnableKnowsGroupsAndLimits")},
		{"concurrency-limits-are-not-counted", "I13", baseline, change("joining := least(joining, handler_room, canvas_room)", "joining := least(joining, canvas_room)"), inspecting("TestRunnableKnowsGroupsAndLimits")},
		{"limit-of-a-canvas-is-for-each-handler", "I13", baseline, change("canvas_room := canvas_room - joining;", ""), inspecting("TestRunnableKnowsGroupsAndLimits")},
		{"rate-limits-are-not-counted", "I13", baseline, change("least(free + joining, handler_rate, canvas_rate)", "least(free + joining, canvas_rate)"), inspecting("TestRunnableKnowsGroupsAndLimits")},
		{"released-events-need-no-worker", "I13", baseline, change("AND r.modifier IN ('', e.modifier) AND (r.released_to IS NULL OR e.id > r.released_to))\n                  OR EXISTS", "AND r.modifier IN ('', e.modifier))\n                  OR EXISTS"), inspecting("TestRunnableLeavesOutWhatIsHeldBack")},
		{"handlers-are-forgotten-while-no-worker-runs", "I13", "eventqueue/pgstore/workers.go", change("handlersKnownFor = 30 * 24 * time.Hour", "handlersKnownFor = 24 * time.Hour"), stored("TestWorkersThatEndedAreDeleted")},
		{"handlers-are-known-for-ever", "I13", "eventqueue/pgstore/workers.go", change("clock_timestamp() - greatest($1::interval, $2::interval) OR EXISTS (", "clock_timestamp() - greatest($1::interval, $2::interval) AND EXISTS ("), stored("TestWorkersThatEndedAreDeleted")},
		{"undecodable-message-comes-again-and-again", "I11", receive, change("bad = append(bad, message.GetAckId())", "_ = bad"),
			pubsub("TestAnUndecodableMessageHarmsNoOther")},
		{"undecodable-message-fails-its-batch", "I2 I15", receive, change("bad = append(bad, message.GetAckId())\n\t\t\tcontinue", "n.dropUndecodable(ctx, []string{message.GetAckId()})\n\t\t\treturn nil"),
			pubsub("TestNothingDecodableIsNothing")},
		{"requeue-truncated-on-the-wire", "I6 I11", receive, change("int32((d + time.Second - 1) / time.Second)", "int32(d / time.Second)"),
			pubsub("TestDelaysAreRoundedUp")},
		{"new-subscription-is-deleted", "I19", "pubsubnotify/resources.go", change("r.subscription, r.orphaned = found.subscription, found.orphaned", "_ = found"), pubsub("TestWhatAnotherWorkerHasReplacedStays")},
		{"last-pull-is-given-back-for-ever", "I19", receive, change("context.WithTimeout(context.WithoutCancel(ctx), lastPullTakes)", "context.WithCancel(context.WithoutCancel(ctx))"), pubsub("TestTheLastPullKeepsItsTime")},
		{"silent-connection-is-kept", "I19", line, change("if l.closed || l.now != silent ||", "if l.closed || l.now == silent ||"), pubsub(seldom)},
		{"slow-server-is-dialled-for-each-answer", "I11", line, change(" || time.Since(l.dialed) < redialGap", ""), pubsub(seldom)},
		{"connection-is-replaced-once-more-for-each-call", "I11", line, change("l.closed || l.now != silent ||", "l.closed ||"), pubsub(seldom)},
		{"replaced-connections-pile-up", "I11", line, change("_ = c.conn.Close() // its", "_ = c.conn // its"), pubsub(seldom)},
		{"own-format-overflows", "I2", message, change("const maxOwnDigits = 18", "const maxOwnDigits = 20"), pubsub(formats)},
		{"own-format-takes-what-is-no-id", "I2", message, change(" || id[0] == '0'", ""), pubsub(formats)},
	}
}

// pgnotifyMutants are about the notifier on Postgres.
func pgnotifyMutants() []mutant {
	const (
		notifier = "eventqueue/pgnotify/notifier.go"
		listen   = "eventqueue/pgnotify/listen.go"
		publish  = "eventqueue/pgnotify/publish.go"
		pull     = "eventqueue/pgnotify/pull.go"
		marks    = "eventqueue/pgnotify/marks.go"
	)
	return []mutant{
		{"flood-of-notices-is-polled-for", "I12", "eventqueue/pgnotify/backpressure.go", change("if found == 0 && !b.free.AllowN(now, 1) {", "if false && found == 0 && !b.free.AllowN(now, 1) {"),
			pgnotifier("TestEmptyPollsAreBounded")},
		{"pgnotify-publish-wakes-nobody", "I2", publish, change("SELECT events_v2_notify($4, '')`", "SELECT $4::text`"),
			pgnotifier("TestEachPublishNotifies")},
		{"pgnotify-misses-what-was-before-listen", "I2", listen, change("\tl.wake()\n\tif err := listening.Prove(", "\tif err := listening.Prove("),
			pgnotifier("TestTheListenerWakesPullsOnceItListens")},
		{"pgnotify-failed-take-signals-no-more", "I2", pull, change("n.wakeup.signal()\n\t\treturn fmt.Errorf(\"take", "return fmt.Errorf(\"take"),
			pgnotifier("TestAFailedPollIsRepeated")},
		{"pgnotify-never-polls-from-the-beginning", "I2", marks, change(" || now.Sub(m.wholeAt) >= wholeEvery", ""), pgnotifier("TestMarks")},
		{"pgnotify-waits-for-what-is-locked", "I2 I13", pull, change("\n    FOR UPDATE SKIP LOCKED", "\n    FOR UPDATE"),
			pgnotifier("TestWhatIsLockedIsPassedOver")},
		{"pgnotify-keeps-what-was-taken-ahead", "I2", pull, change("n.leases.returnReady() // this process may pull no more\n", ""),
			pgnotifier("TestWhatWasTakenAheadGoesBack")},
		{"pgnotify-close-loses-its-leases", "I2", notifier, change("slices.Concat(n.unreturned, n.leases.takeAll())", "slices.Concat(n.unreturned)"),
			pgnotifier("TestCloseGivesEverythingBack")},
	}
}

// fallbackMutants are about the database standing in for a bell that is down.
func fallbackMutants() []mutant {
	const health, poll = "eventqueue/fallback/health.go", "eventqueue/fallback/poll.go"
	const hot, topic, wake = "TestANotifierThatAnswersAtOnceMakesNoHotLoop", "TestANotifierThatHasLostItsTopicIsFoundOut", "TestWhoCouldNotPublishHasTheDatabaseAsked"
	const suspicion, mute = "eventqueue/fallback/suspicion.go", "TestANotifierThatDeliversNothingIsFoundOut"
	pollingTests := protocol("TestTheDatabaseStandsInForTheNotifier")
	return []mutant{
		{"advanced-events-are-published-into-silence", "I19", poll, change("return down && r.enqueue(ctx, notifications) == nil", "return false && down"),
			standIn("TestAdvancedEventsAreNotPublishedWhereNothingCanBePulled")},
		{"fallback-round-waits-for-ever", "I13 I19", poll, change("ctx, cancel := context.WithTimeout(ctx, statementTakes)\n\tdefer cancel()\n\tlost, next, err := r.search.TakeRound(", "ctx, cancel := context.WithCancel(ctx)\n\tdefer cancel()\n\tlost, next, err := r.search.TakeRound("), protocol("TestAWorkerWaitsForNoStatementForEver")},
		{"fallback-sweep-waits-for-ever", "I13 I19", poll, change("asking, cancel := context.WithTimeout(ctx, statementTakes)\n\tdefer cancel()\n\tlost, next, err := r.search.TakeLost(", "asking, cancel := context.WithCancel(ctx)\n\tdefer cancel()\n\tlost, next, err := r.search.TakeLost("), protocol("TestAWorkerWaitsForNoStatementForEver")},
		{"pull-spins", "I12", poll, change("return max(wait, time.Millisecond)", "return wait"), standIn("TestAPullThatHasNothingToDoWaits")},
		{"fallback-off", "I2 I13", health, change("r.down, r.failing, r.why = true, now, err", "r.down, r.failing, r.why = false, now, err"), pollingTests},
		{"fallback-at-the-first-hiccup", "I12", health, change("now.Sub(r.failing) >= r.config.After", "now.Sub(r.failing) >= 0"), pollingTests},
		{"fallback-never-steps-back", "I12", health, change("r.down, r.why = false, nil", "r.down, r.why = true, nil"), pollingTests},
		{"fallback-misses-what-is-lost", "I2", poll, change("return found || len(lost) > 0, r.enqueue(ctx, lost)", "_ = lost\n\treturn found, nil"), pollingTests},
		{"empty-notifier-is-never-checked", "I19", health, change("check = !now.Before(r.checkAt); check {", "check = r.checkAt.After(now) && now.IsZero(); check {"), protocol(topic)},
		{"check-that-fails-is-not-believed", "I19", health, change("} else {\n\t\tr.fallBack(now, err)", "} else {\n\t\tr.askAt = now"), protocol(topic)},
		{"empty-notifier-is-asked-in-a-hot-loop", "I11", health, change("r.askAt = now.Add(emptyWait)", "_ = emptyWait"), protocol(hot)},
		{"failing-notifier-is-asked-in-a-hot-loop", "I11", health, change("\tr.askAt = now.Add(min(r.config.ProbeEvery, r.config.After/4))\n", ""), protocol(hot)},
		{"who-could-not-publish-is-not-heard", "I19", poll, change("r.until = now.Add(r.config.PollFor)\n\tr.signal()", "r.signal()"), protocol(wake)},
		{"who-could-not-publish-is-heard-for-ever", "I12", poll, change("r.down || now.Before(r.until)", "r.down || !r.until.IsZero()"), protocol(wake)},
		{"each-who-could-not-publish-has-the-database-asked", "I12", poll, change("soon.Before(earliest) {", "soon.Before(earliest) && earliest.IsZero() {"), protocol(wake)},
		{"stand-in-takes-a-page-a-second", "I13", poll, change("		r.pollAt = now\n", ""), protocol(wake)},
		{"stand-in-searches-for-what-it-has", "I11", poll, change("now.Before(r.sweepAt) || r.local.Len() > eventqueue.MaxPublish", "now.Before(r.sweepAt)"), protocol("TestWhatIsInHandIsNotSearchedFor")},
		{"stand-in-holds-without-bound", "I11", poll, change("!now.Before(r.pollAt) && r.local.Len() <= maxHeld", "!now.Before(r.pollAt)"), protocol("TestWhatIsPutOffHasABound")},
		{"stand-in-waits-for-a-statement-for-ever", "I13 I19", poll, change("due, err = r.store.TakeDue(ctx, 0", "due, err = r.store.TakeDue(context.WithoutCancel(ctx), 0"),
			protocol("TestADatabaseThatHangsDoesNotHideTheNotifier")},
		{"query-that-failed-goes-before-the-notifier", "I13 I19", poll, change("if err != nil { // after a long wait", "if err != nil && r.pulling < 0 { // after a long wait"),
			protocol("TestADatabaseThatHangsDoesNotHideTheNotifier")},
		{"relay-reports-nothing-that-is-lost", "I13 I19", "eventqueue/maintenance/publish.go", change("!ok || len(lost) == 0 {", "!ok || len(lost) >= 0 {"), protocol(mute)},
		{"relay-reports-when-nothing-is-lost", "I12", "eventqueue/maintenance/publish.go", change("!ok || len(lost) == 0 {", "!ok {"), protocol(mute)},
		{"search-stops-though-it-finds", "I13 I19", suspicion, change("r.newest, r.searchUntil = newest, r.searchEnd(now)", "r.newest = newest"), protocol(mute)},
		{"search-for-what-nobody-knows-has-no-end", "I12", suspicion, change("newest == r.newest || ", ""), protocol("TestASearchForWhatIsLostEnds")},
		{"search-begins-beside-a-notifier-that-delivers", "I12", suspicion, change("now.Sub(r.heard) < deafAfter", "now.Before(r.heard)"), protocol("TestASearchForWhatIsLostEnds", "TestASearchEndsWhenTheNotifierDelivers")},
		{"search-goes-on-beside-a-notifier-that-delivers", "I12", health, change("r.heard, r.searchUntil = now, time.Time{}", "r.heard = now"), protocol("TestASearchEndsWhenTheNotifierDelivers")},
		{"worker-does-not-hear-of-what-is-lost", "I13 I19", "eventqueue/pgstore/reserve.go", change("return true, payload == lostPayload, nil", "return true, payload == \"\" && users < 0, nil"), []judge{{"./eventqueue/pgstore", []string{"TestWorkersHearOfWhatIsLost"}}}},
		{"stand-in-goes-by-ids-alone", "I20", poll, change("found, round, err = r.goRound(ctx, round)", "_ = r.goRound"), protocol("TestADatabaseThatStandsInServesEveryCanvas")},
		{"declined-event-stays-with-its-finder", "I13 I19", "eventqueue/worker/acknowledge.go", change("if d, ok := as.receiver.(decliner); ok {", "if d, ok := as.receiver.(decliner); ok && after < 0 {"),
			protocol("TestWhatAWorkerFindsAndDoesNotKnowIsLeftToOthers")},
		{"declined-event-comes-back-to-its-finder", "I13 I19", "eventqueue/fallback/local.go", change("others = append(others, d)", "own = append(own, d)"),
			standIn("TestWhatIsDeclinedForLongIsLeftToOthers")},
		{"notifier-that-answers-no-pull-is-well", "I19", health, change("if silent {", "if silent && began.IsZero() {"), standIn("TestANotifierThatAnswersNoPullIsDown")},
		{"notifier-that-answers-no-pull-is-down-late", "I19", health, change("r.failing = now.Add(-took)", "r.failing = now"), standIn("TestANotifierThatAnswersNoPullIsDown")},
		{"errand-begins-behind-the-wait", "I19", "eventqueue/fallback/tasks.go", change("if e.closed {", "if e.closed && e.under < 0 {"), standIn("TestNothingGoesOnBehindAttend")},
	}
}

// cronMutants are about slots.
func cronMutants() []mutant {
	const due, postgres = "cronchecker/due.go", "cronchecker/postgres.go"
	return []mutant{
		{"cron-slot-is-emitted-again", "I10", postgres, change(" && slot.At.After(last[slot.Cron])", ""), cron("TestEmitChecksAgain")},
		{"cron-slot-is-not-recorded", "I10", postgres, change("return record(ctx, p.schema.On(tx), ours, skips, ids)", "_ = ids\n\t\treturn nil"), cron("TestCheckAgain")},
		{"cron-checkers-do-not-exclude-each-other", "I10", postgres, change("\nFOR NO KEY UPDATE SKIP LOCKED", ""), cron("TestCheckLeavesWhatAnotherHolds")},
		{"cron-slot-before-its-start", "I10", postgres, change("locked && slot.At.After(start) &&", "locked && !start.IsZero() &&"), cron("TestEmitChecksAgain")},
		{"cron-latest-is-all", "I10", due, change("if d.Missed == MissedAll {", "if d.Missed != MissedNone {"), cron("TestDue")},
		{"cron-emits-however-late", "I10", due, change("d.Missed == MissedNone && now.Sub(latest) > late", "d.Missed == MissedNone && now.Before(latest)"), cron("TestDue")},
		{"cron-preview-repeats-what-is-due-once", "I10", "cronchecker/preview.go", change("if s.calendar.floating {\n\t\t\tdue", "if s.text != \"\" {\n\t\t\tdue"), cron("TestPreviewSaysWhatClockChangesDo")},
		{"cron-preview-forgets-what-is-left-out", "I10", "cronchecker/preview.go", change("for p.end <= slot {", "for p.end == slot {"), cron("TestPreviewSaysWhatClockChangesDo")},
	}
}
