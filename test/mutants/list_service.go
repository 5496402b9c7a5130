package main

// serviceMutants are about programs as package service puts them together.
func serviceMutants() []mutant {
	const ready, run, config = "service/ready.go", "service/run.go", "service/config.go"
	return []mutant{
		{"unready-for-its-first-cause-for-ever", "I17", "service/health.go", []edit{
			{"case errors.Is(err, errNotBegun):", "case false:"}, {"if !r.causes.Worth(advised(err), changed) {", "if !changed {"},
		},
			serving("TestTheLogSaysWhyAProgramIsNotReadyAnyMore")},
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
		{"worker-without-handlers-runs", "I1", run, change("len(set.Everywhere)+len(set.OnCanvas) == 0 &&", "false &&"), serving("TestRunRefusesAtOnce")},
		{"missing-relay-is-not-noticed", "I13", run, change("case running:", "case running || true:"), serving("TestAWorkerThatSeesNoRelaySaysSo")},
		{"relay-does-not-show-itself", "I13", "eventqueue/pgstore/pending.go", change("SELECT pg_try_advisory_lock_shared(", "SELECT pg_try_advisory_xact_lock_shared("), serving("TestAWorkerThatSeesNoRelaySaysSo")},
		{"job-does-not-end-its-relay", "I17", run, change("if p.ends {", "if false {"), serving("TestTheEndOfAJobEndsTheOthers")},
		{"tenants-share-the-default-canvas", "I16", config, change("if !c.MultiTenant {", "if true {"), serving("TestAnEventWithoutATenantIsRefused")},
		{"events-of-a-caller-are-changed", "I16", "eventqueue/event.go", change("events, copied = slices.Clone(events), true", "copied, _ = true, slices.Clone(events)"),
			[]judge{{"./eventqueue", []string{"TestAnEventThatNamesNobodyIsTheConfiguredOnes"}}}},
	}
}
