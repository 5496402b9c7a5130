package main

// serviceMutants are about programs as package service puts them together.
func serviceMutants() []mutant {
	const ready, run, config = "service/ready.go", "service/run.go", "service/config.go"
	const health = "service/health.go"
	const outcome = "eventqueue/worker/outcome.go"
	return []mutant{
		{"unready-for-its-first-cause-for-ever", "I17", "service/health.go", []edit{
			{"case errors.Is(err, errNotBegun):", "case false:"}, {"if !r.causes.Worth(advised(err), changed) {", "if !changed {"},
		},
			serving("TestTheLogSaysWhyAProgramIsNotReadyAnyMore")},
		{"untaken-answers-look-like-an-outage", "I19", "service/ready.go", change("kind = untaken.Kind", "return notifier + \" cannot be used, and events are found in the database\""), serving("TestReadinessSaysWhatPubSubDoesNotDo")},
		{"answers-that-are-refused-are-not-reported", "I19", "eventqueue/worker/standby.go", change("return w.answering.failure()", "return nil"), working("TestAnswersThatAreNotTakenAreReported")},
		{"answers-are-reported-as-refused-for-ever", "I19", "eventqueue/worker/refusals.go", change("r.from, r.err = time.Time{}, nil", "_ = now"), working("TestAnswersThatAreNotTakenAreReported")},
		{"second-cause-of-a-publisher-is-not-logged", "I19", "eventqueue/publish.go", change("p.causes.Worth(err, !wasDown)", "!wasDown"),
			[]judge{{"./eventqueue", []string{"TestAPublishersSecondCauseIsLogged"}}}},
		{"second-cause-of-a-receiver-is-not-logged", "I19", "eventqueue/fallback/health.go", change("if r.causes.Worth(err, false) {", "if false {"),
			[]judge{{"./eventqueue/fallback", []string{"TestAReceiversSecondCauseIsLogged"}}}},
		{"second-cause-is-not-logged-by-readiness", "I19", "service/health.go", change("!r.causes.Worth(advised(err), changed)", "!changed"), serving("TestReadinessLogsEachCause")},
		{"every-failure-is-logged", "I19", "internal/cause/cause.go", change("cause == l.last ||", "false ||"), []judge{{"./internal/cause", []string{"TestWhichFailuresAreLogged"}}}},
		{"readiness-is-found-out-for-each", "I12", "service/answers.go", change("if time.Now().Before(a.last.until) {", "if time.Now().After(a.last.until) {"),
			serving("TestAskingForReadinessIsBounded")},
		{"readiness-hangs-up-with-the-first", "I12", "service/answers.go", change("a.current(context.WithoutCancel(ctx))", "a.current(ctx)"),
			serving("TestWhoGivesUpTakesNobodysAnswer")},
		{"program-ends-without-its-database", "I17", ready, change("if !pgsession.Unreachable(err) {", "if true {"), serving("TestAProgramWaitsForPostgres")},
		{"program-waits-for-what-never-comes", "I17", ready, change("if !pgsession.Unreachable(err) {", "if false {"), serving("TestAnUnfitDatabaseIsRefused")},
		{"wait-is-logged-each-time", "I17", ready, change("if !s.waiting.Swap(true) {", "if s.waiting.Store(true); true {"), serving("TestAProgramWaitsForPostgres")},
		{"rights-of-a-part-are-not-checked", "I17", ready, change("works = append(works, pgstore.Relaying)", "_ = pgstore.Relaying"), serving("TestEachPartNeedsItsRights")},
		{"wrong-settings-are-connected-with", "I17", config, change("if part.err != nil {", "if false {"), serving("TestOpenRefusesByName")},
		{"notifier-is-not-asked-for-its-settings", "I17", "service/notifier.go", change("return validate(c)", "return nil"), serving("TestANotifierNeedsNothingButItsFile")},
		{"worker-without-handlers-runs", "I1", run, change("len(set.Everywhere)+len(set.OnCanvas) == 0 &&", "false &&"), serving("TestRunRefusesAtOnce")},
		{"missing-relay-is-not-noticed", "I13", run, change("case running:", "case running || true:"), serving("TestAWorkerThatSeesNoRelaySaysSo")},
		{"relay-does-not-show-itself", "I13", "eventqueue/pgsession/relays.go", change("SELECT pg_try_advisory_lock_shared(", "SELECT pg_try_advisory_xact_lock_shared("), serving("TestAWorkerThatSeesNoRelaySaysSo")},
		{"hung-loop-is-well", "I13", "internal/rounds/rounds.go", change("case now.Sub(l.late) >= sure:", "case now.Sub(l.late) >= sure && l.due.IsZero():"), protocol("TestAHungLoopOfAWorkerIsNamed")},
		{"lifts-are-not-watched", "I13", "eventqueue/control/expiry.go", change("\tr.loop.Within(2 * statementTakes)\n", ""), protocol("TestAHungLoopOfCronIsNamed")},
		{"counts-of-minutes-are-not-watched", "I13", "eventqueue/maintenance/minutes.go", change("\tm.loop.Within(statementTakes)\n\tif store", "\tif store"), protocol("TestAHungLoopOfCronIsNamed")},
		{"lock-timeout-is-not-watched", "I13", "eventqueue/maintenance/locktimeout.go", change("\t\tloop.Within(statementTakes)\n", ""), protocol("TestAHungLoopOfCronIsNamed")},
		{"program-that-thaws-is-restarted", "I13", "internal/rounds/rounds.go", change("case l.late.IsZero():", "case l.late.IsZero() && l.due.IsZero():"), []judge{{"./internal/rounds", []string{"TestAProgramThatThawsIsGivenTime"}}}},
		{"idle-worker-is-restarted", "I13", "eventqueue/worker/pull.go", change("loop.Waits()", "loop.Within(0)"), protocol("TestIdleAndBusyLoopsAreWell")},
		{"waiting-completer-is-restarted", "I13", "eventqueue/worker/complete.go", change("loop.Waits()", "_ = loop"), protocol("TestIdleAndBusyLoopsAreWell", "TestAHungLoopOfAWorkerIsNamed")},
		{"worker-is-restarted-for-its-database", "I13", "eventqueue/worker/complete.go", change("		loop.Within(c.config.LockTimeout/2 + 2*maxCompleteWait)\n", "		if last == nil {\n			loop.Within(c.config.LockTimeout/2 + 2*maxCompleteWait)\n		}\n"), protocol("TestAHungLoopOfAWorkerIsNamed")},
		{"stalled-program-is-alive", "I13", ready, change("errs = append(errs, stalled())", "_ = stalled"), serving("TestAliveAsksEachPart")},
		{"readiness-asks-twice-beside-another", "I12", health, change("s.peersAsked.ask(ctx)", "(&answers{ready: s.peers}).ask(ctx)"), serving("TestReadinessCostsAStatementInTenSeconds")},
		{"idle-minute-has-a-line", "I12", "eventqueue/worker/tally.go", change("n > 0 {", "n >= 0 {"), protocol("TestAMinuteIsSummedUp")},
		{"last-runs-are-not-summed-up", "I19", "eventqueue/worker/tally.go", change("		case <-ctx.Done():\n		}\n", "		case <-ctx.Done():\n			return\n		}\n"), protocol("TestAMinuteIsSummedUp")},
		{"every-request-was-answered-well", "I19", health, change("	a.status = status\n", ""), serving("TestAHealthCheckHasALineAtDebug")},
		{"failed-event-is-no-error", "I19", outcome, change("return zap.ErrorLevel,", "return zap.WarnLevel,"), protocol("TestWhatIsWorthALine")},
		{"retry-is-no-warning", "I19", outcome, change(`return zap.WarnLevel, "event run failed`, `return zap.DebugLevel, "event run failed`), protocol("TestWhatIsWorthALine")},
		{"success-has-a-line", "I12", outcome, change("if r.config.LogEvents {", "if true {"), protocol("TestWhatIsWorthALine")},
		{"line-has-no-trace", "I19", outcome, change(`if out.Traceparent != "" {`, "if false {"), protocol("TestALineOfARunNamesTheTraceOfItsEmitter")},
		{"job-does-not-end-its-relay", "I17", "service/part.go", change("if p.ends {", "if false {"), serving("TestTheEndOfAJobEndsTheOthers")},
		{"tenants-share-the-default-canvas", "I16", config, change("if !c.MultiTenant {", "if true {"), serving("TestAnEventWithoutATenantIsRefused")},
		{"events-of-a-caller-are-changed", "I16", "eventqueue/event.go", change("events, copied = slices.Clone(events), true", "copied, _ = true, slices.Clone(events)"),
			[]judge{{"./eventqueue", []string{"TestAnEventThatNamesNobodyIsTheConfiguredOnes"}}}},
	}
}
