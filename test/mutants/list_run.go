package main

// runMutants are about running a handler and judging how it ended.
func runMutants() []mutant {
	const process, complete, handler = "eventqueue/worker/execute.go", "eventqueue/worker/completetx.go", "eventqueue/handler.go"
	const finish, finished, decide = "eventqueue/worker/complete.go", "eventqueue/worker/completion.go", "eventqueue/worker/decide.go"
	const stopTimes, parts, keepsTime = "eventqueue/worker/stoptimes.go", "eventqueue/worker/parts.go", "TestAStopKeepsItsTime"
	const judged, stop = "TestWhatFollowsFromARun", "TestAStopUsesNoAttempt"
	const values, unread = "eventqueue/worker/value.go", "TestALargeValueThatCannotBeReadUsesNoAttempt"
	return []mutant{
		{"acknowledged-before-the-end", "I2 I13", decide, change("\t\tdec.executor.start(", "\t\tdec.releaser.answers.put(answer{delivery: d})\n\t\tdec.executor.start("),
			protocol("TestANotificationIsAnsweredAfterItsEvent")},
		{"panic-completes-the-event", "I1", "internal/invoke/invoke.go",
			change("*err = &eventqueue.PanicError{Value: value, Stack: debug.Stack()}", "*err = &eventqueue.PanicError{Value: value, Stack: debug.Stack()}\n\t\t*err = nil"),
			protocol(judged)},
		{"more-failures-than-allowed-end-a-group-unrun", "I18", process, change("attemptsExhausted(x.lostRun, x.run.Retries", "attemptsExhausted(x.lostRun || x.grouped, x.run.Retries"), protocol("TestOnlyALostRunEndsAnEventUnrun")},
		{"event-that-kills-its-workers-goes-on", "I9", process, change("return lostRun && retries >", "return false && retries >"), protocol(judged)},
		{"large-value-takes-the-handlers-time", "I18", process, change("r.Policy.Timeout + e.values.takes(f)", "r.Policy.Timeout"), protocol("TestALargeValueIsReadForItsRun")},
		{"large-values-are-read-at-once", "I15", values, change("valuesAtOnce = 2", "valuesAtOnce = 9"), protocol("TestALargeValueIsReadForItsRun")},
		{"large-value-is-waited-for-without-end", "I18", values, change("context.WithTimeout(ctx, v.config.LockTimeout/2)", "context.WithCancel(ctx)"), protocol(unread)},
		{"run-without-its-value", "I8", process, change("\tif x.valueApart {", "\tif false {"), protocol(unread)},
		{"unread-value-uses-an-attempt", "I18", process, change("\t\t\treturn machine.Released, err", "\t\t\treturn machine.Exception, err"), protocol(unread)},
		{"unread-value-is-tried-at-once", "I11", finished, change("\t\tif errors.As(err, new(laterError)) {", "\t\tif false {"), protocol(unread)},
		{"anothers-value-is-run", "I5", values, change("\tcase !held:\n\t\treturn laterError{eventqueue.ErrLockLost}", "\tcase !held && false:\n\t\treturn laterError{eventqueue.ErrLockLost}"), protocol(unread)},
		{"value-that-comes-too-late-is-run", "I3", values, change("case ctx.Err() != nil: //", "case ctx.Err() != nil && value == nil: //"), protocol("TestAStopDoesNotWaitForALargeValue")},
		{"large-completions-hold-up-others", "I15", finish, change("if !slices.ContainsFunc(batch, (*completedRun).isLarge) {", "if true {"), protocol("TestALargeCompletionHoldsUpNoOther")},
		{"large-values-come-with-the-claim", "I15", "eventqueue/pgstore/claim.go", change("CASE WHEN octet_length(e.value) <= ` + maxClaimedValueSQL + ` THEN e.value END AS value", "CASE WHEN octet_length(e.value) > 0 OR ` + maxClaimedValueSQL + ` > 0 THEN e.value END AS value"), stored("TestSuite")},
		{"value-is-read-without-the-claims-number", "I5", "eventqueue/pgstore/claim.go", change("AND coalesce(e.claim_id - e.attempts, 0) = $3 AND", "AND $3::bigint IS NOT NULL AND"), stored("TestSuite")},
		{"value-is-read-of-an-older-claim", "I5", "eventqueue/pgstore/claim.go", change("WHERE e.id = $1 AND e.attempts = $2 AND", "WHERE e.id = $1 AND $2::int IS NOT NULL AND"), stored("TestSuite")},
		{"value-is-read-of-a-released-claim", "I5", "eventqueue/pgstore/claim.go", change("= $3 AND e.locked_at IS NOT NULL`", "= $3`"), stored("TestSuite")},
		{"claim-that-is-too-old-is-run", "I3", process, change("if !e.mayHold(x) {", "if false && !e.mayHold(x) {"), protocol("TestAClaimThatIsTooOldIsNotRun")},
		{"stop-takes-its-time", "I13", "eventqueue/worker/stoptimes.go", change("lastWritesTake  = 800 * time.Millisecond", "lastWritesTake  = 2 * time.Second"), protocol("TestAStopKeepsItsTime")},
		{"stop-waits-for-claims", "I13", stopTimes, change("claimAtStop = 600 * time.Millisecond", "claimAtStop = 3 * time.Second"), protocol(keepsTime)},
		{"stop-waits-for-deaf-handlers", "I13", stopTimes, change("abandonAfter = 300 * time.Millisecond", "abandonAfter = 3 * time.Second"), protocol(keepsTime)},
		{"stop-waits-for-answers", "I13", stopTimes, change("lastAnswersTake = 300 * time.Millisecond", "lastAnswersTake = 3 * time.Second"), protocol(keepsTime)},
		{"stop-waits-beyond-its-grace-period", "I13", parts, change("end := time.Now().Add(max(p.config.GracePeriod, 0))", "end := time.Now().Add(max(p.config.GracePeriod, 0) + 2*time.Second)"), protocol(keepsTime)},
		{"last-writes-hold-up-a-stop", "I13", parts, change("time.AfterFunc(time.Until(end.Add(lastWritesTake)), stopWrite)", "time.AfterFunc(time.Until(end.Add(time.Minute)), stopWrite)"), protocol(keepsTime)},
		{"last-answers-hold-up-a-stop", "I13", parts, change("time.AfterFunc(time.Until(end.Add(lastWritesTake+lastAnswersTake)), stopNotifying)", "time.AfterFunc(time.Until(end.Add(time.Minute)), stopNotifying)"), protocol(keepsTime)},
		{"run-without-timeout", "I13", process,
			change("deadline: x.began.Add(x.limit)}", "deadline: x.began.Add(1000 * time.Hour)}"),
			protocol("TestARunHasNoMoreThanItsTimeout")},
		{"run-context-made-late-is-not-ended", "I3 I13", "eventqueue/worker/runcontext.go", change("if c.cause != nil && !errors.Is(", "if c.cause == eventqueue.ErrLockLost && !errors.Is("),
			working("TestARunContextThatWasEndedBeforeItIsMade")},
		{"timeout-nobody-saw-is-no-timeout", "I9", "eventqueue/worker/runcontext.go", change("c.cause = eventqueue.ErrTimeout", "c.cause = cause"),
			working("TestARunContextThatNobodyAskedForTimesOut")},
		{"stop-does-not-reach-new-runs", "I13", "eventqueue/worker/runs.go", change("if r.stopped != nil {", "if r.stopped == eventqueue.ErrLockLost {"),
			working("TestAStopReachesAllRuns")},
		{"retries-from-the-number-of-claims", "I9", finished, change("Retries: x.run.Retries,", "Retries: int(x.run.Attempt) - 1,"), protocol(judged)},
		{"refused-end-spoils-its-batch", "I15", finish, change("case sqlstate.Refused(err) && len(batch) > 1:", "case sqlstate.Refused(err) && len(batch) > 1 && false:"),
			protocol("TestOneRefusedEndSpoilsNoOther")},
		{"busy-end-is-forgotten", "I1", finish, change("busy = append(busy, f)", "outcomes = append(outcomes, resolvedRun{f, f.completion.Label, f.state, 0})"),
			protocol("TestAnEndWhoseRowIsBusyIsWrittenLater")},
		{"busy-end-holds-up-the-others", "I15", finish, change("later.Go(func() { c.writeLater(ctx, busy) })", "c.writeLater(ctx, busy)"),
			protocol("TestAnEndWhoseRowIsBusyHoldsUpNoOther")},
		{"completed-without-the-fence", "I5", complete,
			change("case len(written.Lost) == 1:", "case len(written.Lost) == 1:\n\t\t\treturn nil\n\t\tcase len(written.Lost) > 1:"),
			protocol("TestCompletingWithAStaleClaimFails")},
		{"stop-counts-as-a-failure", "I9", process, change("case stopping:\n\t\treturn machine.Released", "case stopping:\n\t\treturn machine.Exception"), protocol(stop)},
		{"deaf-handler-at-a-stop-counts-as-a-failure", "I9", process,
			change("x.decideRun(machine.Released, eventqueue.ErrStopping)", "x.decideRun(machine.Exception, eventqueue.ErrStopping)"), protocol(stop)},
	}
}

// heartbeatMutants are about keeping a lock for as long as its run lasts, and no
// longer.
func heartbeatMutants() []mutant {
	const heartbeat, runs = "eventqueue/worker/heartbeat.go", "eventqueue/worker/runs.go"
	const long, lost = "TestALongRunKeepsItsLockAndItsLease", "TestALostClaimEndsItsRun"
	return []mutant{
		{"heartbeat-off", "I3 I4", heartbeat, change("func() { h.renewClaims(ctx) }", "func() {}"), protocol(long)},
		{"leases-are-not-extended", "I11", heartbeat, change("func() { h.extendLeases(ctx) }", "func() {}"), protocol(long)},
		{"lost-claim-runs-on", "I3", heartbeat, change("case lost[x.run.ID] && !x.submitted:\n\t\t\tx.ctx.end(eventqueue.ErrLockLost)", "case lost[x.run.ID] && !x.submitted:"), protocol(lost)},
		{"run-outlives-a-lock-that-nobody-renewed", "I3", heartbeat,
			change("func() { h.runs.expire(time.Now(), h.config.LockTimeout) }", "func() {}"), protocol(lost)},
		{"deaf-handler-keeps-its-lock", "I13", runs,
			change("if (x.submitted || x.waits || now.Before(x.ctx.deadline)) &&", "if"), protocol("TestADeafHandlerLosesItsLock")},
		{"lock-is-not-kept-until-the-end-is-written", "I3", runs,
			change("(x.submitted || x.waits || now.Before(x.ctx.deadline))", "!x.submitted && now.Before(x.ctx.deadline)"), protocol("TestAnEndThatCannotBeWrittenKeepsItsLock")},
		{"lock-is-not-kept-past-the-timeout", "I3", runs,
			change("(x.submitted || x.waits || now.Before(x.ctx.deadline))", "now.Before(x.ctx.deadline)"), protocol("TestAnEndThatCannotBeWrittenKeepsItsLock")},
		{"idle-worker-asks-the-database", "I12", "internal/refusal/halve.go",
			change("if len(items) == 0 {\n\t\t\tcontinue", "if items == nil {\n\t\t\tcontinue"), protocol("TestAnIdleWorkerAsksNobody")},
	}
}
