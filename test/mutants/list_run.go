package main

// runMutants are about running a handler and judging how it ended.
func runMutants() []mutant {
	const process, run = "eventqueue/process.go", "eventqueue/run.go"
	const finish, worker = "eventqueue/finish.go", "eventqueue/worker.go"
	const judged, stop = "TestHowARunIsJudged", "TestAStopUsesNoAttempt"
	return []mutant{
		{"acknowledged-before-the-end", "I2 I13", process, change("w.runs.add(x)\n", "w.runs.add(x)\n\tw.answers <- answer{delivery: d}\n"),
			protocol("TestANotificationIsAnsweredAfterItsEvent")},
		{"panic-completes-the-event", "I1", process,
			change("*err = &PanicError{Value: value, Stack: debug.Stack()}", "*err = &PanicError{Value: value, Stack: debug.Stack()}\n\t\t*err = nil"),
			protocol(judged)},
		{"event-that-kills-its-workers-goes-on", "I9", process, change("return takenOver && retries >", "return false && retries >"), protocol(judged)},
		{"run-without-timeout", "I13", process,
			change("deadline: x.began.Add(x.policy.Timeout)}", "deadline: x.began.Add(1000 * time.Hour)}"),
			protocol("TestARunHasNoMoreThanItsTimeout")},
		{"run-context-made-late-is-not-ended", "I3 I13", "eventqueue/runcontext.go", change("if c.cause != nil && !errors.Is(", "if c.cause == ErrLockLost && !errors.Is("),
			queue("TestARunContextThatWasEndedBeforeItIsMade")},
		{"timeout-nobody-saw-is-no-timeout", "I9", "eventqueue/runcontext.go", change("c.cause = ErrTimeout", "c.cause = cause"),
			queue("TestARunContextThatNobodyAskedForTimesOut")},
		{"stop-does-not-reach-new-runs", "I13", "eventqueue/runs.go", change("if r.stopped != nil {", "if r.stopped == ErrLockLost {"),
			queue("TestAStopReachesAllRuns")},
		{"retries-from-the-number-of-claims", "I9", finish, change("Retries: x.run.Retries,", "Retries: int(x.run.Attempt) - 1,"), protocol(judged)},
		{"refused-end-spoils-its-batch", "I15", finish, change("case refused(err) && len(batch) > 1:", "case refused(err) && len(batch) > 1 && false:"),
			protocol("TestOneRefusedEndSpoilsNoOther")},
		{"busy-end-is-forgotten", "I1", finish, change("busy = append(busy, f)", "ended = append(ended, closing{f, f.end.Label, f.state, 0})"),
			protocol("TestAnEndWhoseRowIsBusyIsWrittenLater")},
		{"busy-end-holds-up-the-others", "I15", finish, change("later.Go(func() { w.writeLater(ctx, busy) })", "w.writeLater(ctx, busy)"),
			protocol("TestAnEndWhoseRowIsBusyHoldsUpNoOther")},
		{"completed-without-the-fence", "I5", run,
			change("case len(written.Lost) == 1:", "case len(written.Lost) == 1:\n\t\t\treturn nil\n\t\tcase len(written.Lost) > 1:"),
			protocol("TestCompletingWithAStaleClaimFails")},
		{"stop-counts-as-a-failure", "I9", run, change("return machine.Released", "return machine.Exception"), protocol(stop)},
		{"deaf-handler-at-a-stop-counts-as-a-failure", "I9", worker,
			change("x.finished(machine.Released, ErrStopping)", "x.finished(machine.Exception, ErrStopping)"), protocol(stop)},
	}
}

// heartbeatMutants are about keeping a lock for as long as its run lasts, and no
// longer.
func heartbeatMutants() []mutant {
	const heartbeat, runs = "eventqueue/heartbeat.go", "eventqueue/runs.go"
	const long, lost = "TestALongRunKeepsItsLockAndItsLease", "TestALostClaimEndsItsRun"
	return []mutant{
		{"heartbeat-off", "I3 I4", heartbeat, change("func() { w.renewClaims(ctx) }", "func() {}"), protocol(long)},
		{"leases-are-not-extended", "I11", heartbeat, change("func() { w.extendLeases(ctx) }", "func() {}"), protocol(long)},
		{"lost-claim-runs-on", "I3", heartbeat, change("case lost[x.run.ID] && !x.ended:\n\t\t\tx.ctx.end(ErrLockLost)", "case lost[x.run.ID] && !x.ended:"), protocol(lost)},
		{"run-outlives-a-lock-that-nobody-renewed", "I3", heartbeat,
			change("func() { w.runs.expire(time.Now(), w.config.LockTimeout) }", "func() {}"), protocol(lost)},
		{"deaf-handler-keeps-its-lock", "I13", runs,
			change("if (x.ended || now.Before(x.ctx.deadline)) &&", "if"), protocol("TestADeafHandlerLosesItsLock")},
		{"lock-is-not-kept-until-the-end-is-written", "I3", runs,
			change("(x.ended || now.Before(x.ctx.deadline))", "!x.ended && now.Before(x.ctx.deadline)"), protocol("TestAnEndThatCannotBeWrittenKeepsItsLock")},
		{"lock-is-not-kept-past-the-timeout", "I3", runs,
			change("(x.ended || now.Before(x.ctx.deadline))", "now.Before(x.ctx.deadline)"), protocol("TestAnEndThatCannotBeWrittenKeepsItsLock")},
		{"idle-worker-asks-the-database", "I12", heartbeat,
			change("if len(due) == 0 {\n\t\treturn\n\t}\n\tclaims :=", "claims :="), protocol("TestAnIdleWorkerAsksNobody")},
	}
}
