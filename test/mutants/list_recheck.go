package main

// recheckMutants are about what a worker makes of what it found.
func recheckMutants() []mutant {
	const receive, delivery, decide = "eventqueue/worker/pull.go", "eventqueue/worker/decide.go", "eventqueue/worker/decide.go"
	const recheck, answer = "eventqueue/worker/recheck.go", "eventqueue/worker/acknowledge.go"
	const unknown = "eventqueue/worker/unknown.go"
	const back, nobody = "TestWhenANotificationComesBack", "TestAnEventThatNobodyKnowsCostsFewClaims"
	return []mutant{
		{"doubled-notification-runs-twice", "I3 I4", delivery, change("seen[d.Event]; double {", "seen[d.Event]; double && len(seen) == 0 {"),
			protocol("TestADoubledNotificationRunsItsEventOnce")},
		{"doubled-notification-ends-the-other", "I2 I13", decide,
			change("dec.releaser.giveBack(doubles, dec.config.Lease)", "for _, d := range doubles {\n\t\tdec.releaser.answers.put(answer{delivery: d})\n\t}\n\tdec.releaser.slots.give(len(doubles))"),
			protocol("TestADoubledNotificationRunsItsEventOnce")},
		{"held-lock-is-rechecked-at-once", "I11", recheck,
			change("return min(facts.LockRemaining, leaveToRelay) + r.config.Jitter(claimFailedDelay)", "return 0"), protocol(back)},
		{"busy-row-is-rechecked-at-once", "I11", recheck,
			change("return claimFailedDelay + r.config.Jitter(claimFailedDelay)", "return 0"), protocol(back)},
		{"unknown-handler-is-rechecked-at-once", "I11", unknown, change("min(unknownBackoff(l.count), r.config.UnknownDelay)", "time.Millisecond"), protocol(nobody)},
		{"unknown-handler-waits-long", "I13", unknown, change("min(unknownBackoff(l.count), r.config.UnknownDelay)", "r.config.UnknownDelay"), protocol("TestAnEventThatHalfOfTheWorkersKnowStartsSoon")},
		{"unknown-handler-waits-double-from-the-start", "I13", unknown, change("return unknownEarly[claims-1]", "return unknownEarly[0] << (claims - 1)"),
			protocol("TestEightClaimsInTheFirstSecond")},
		{"unknown-handler-is-looked-at-more-in-the-first-second", "I11", unknown, change("unknownWait = 500 * time.Millisecond", "unknownWait = 200 * time.Millisecond"), protocol("TestEightClaimsInTheFirstSecond")},
		{"rechecks-of-many-workers-add-up", "I11", unknown, change("wait < due/12 {", "wait < 0 {"), protocol(nobody)},
		{"old-unknown-event-is-not-left-to-the-relay", "I11", unknown, change("if old && (wait > maxHold || l.count > unknownLate) {", "if old && wait < 0 {"),
			protocol("TestAnOldEventThatNobodyKnowsIsLeftToTheRelay")},
		{"unknown-event-goes-round-for-ever", "I11", unknown, change("l.count > 0 && time.Since(l.first) > most:", "l.count > 0 && most < 0:"),
			protocol("TestAnEventThatNobodyKnowsDoesNotGoRoundForEver")},
		{"unknown-event-is-forgotten-at-once", "I11", unknown, change("max(most/2, minRetained)", "time.Millisecond"), protocol(nobody)},
		{"held-notification-is-not-given-back-by-a-stop", "I13", answer, change("\t\trequeues = append(requeues, h.answer)\n", ""),
			protocol("TestAStopGivesBackWhatItHolds")},
		{"empty-pulls-make-a-hot-loop", "I11", receive, change("case time.Since(began) < emptyPullTakes:", "case time.Since(began) < 0:"),
			protocol("TestANotifierThatAnswersNothingAtOnceMakesNoHotLoop")},
		{"failed-claim-loses-its-notifications", "I2 I13", decide,
			change("dec.releaser.giveBack(deliveries, wait.Next)", "dec.releaser.slots.give(len(deliveries))"),
			protocol("TestAClaimThatFailsGivesItsNotificationsBack")},
		{"stop-cuts-off-a-claim", "I3 I13", decide,
			change("\t\tbackoff.Sleep(claim, time.Until(dec.stopsSince().Add(claimAtStop))) // one batch may need several claims\n", ""), protocol("TestAStopDoesNotCutOffAClaim")},
		{"claim-that-hangs-holds-up-a-stop", "I13", decide,
			change("// one batch may need several claims\n\t\tcancel()", ""), protocol("TestAClaimThatHangsDoesNotHoldUpAStop")},
		{"requeue-truncated", "I6 I11", answer, change("(d+unit-1)/unit*unit", "d/unit*unit"), protocol(back)},
		{"answers-wait-for-a-request", "I13 I19", answer, change("func (as *answers) put(a answer) {\n", "func (as *answers) put(a answer) {\n\tfor len(as.acks.items) > 20 {\n\t\ttime.Sleep(time.Millisecond)\n\t}\n"),
			protocol("TestAnswersThatHangHoldUpNothing")},
		{"answers-pile-up", "I19", answer, change("box.putNewest(maxAnswers, a...)", "box.putNewest(1000*maxAnswers, a...)"), working("TestAnswersThatNobodyTakesAreBounded")},
		{"every-delay-is-a-request", "I19", answer, change("if len(requeues) > fewDelays {", "if false {"), protocol("TestManyDelaysMakeFewRequests")},
		{"far-off-event-stays-in-the-notifier", "I11", answer, change(" || out.Delay > eventqueue.MaxRequeue", ""), protocol(back)},
	}
}

// machineMutants are wrong arrows and wrong decisions.
func machineMutants() []mutant {
	const arrows, walk = "eventqueue/machine/arrows.go", "eventqueue/machine/walk.go"
	return []mutant{
		{"unknown-handler-ends-the-event", "I1", arrows,
			change("Label: HandlerUnknown, To: Queue", "Label: HandlerUnknown, To: End"), pure("TestDecideClaim")},
		{"paused-event-goes-round", "I11", arrows, change("Label: Paused, To: End", "Label: Paused, To: Queue"), pure("TestDecideClaim")},
		{"snooze-ends-the-event", "I1", arrows, change("Label: Snoozed, To: Queue", "Label: Snoozed, To: Delete"), pure("TestDecideRun")},
		{"one-retry-too-many", "I9", walk, change("r.Retries < r.MaxRetries", "r.Retries <= r.MaxRetries"), pure("TestDecideRun")},
		{"early-by-a-nanosecond", "I6", walk, change("f.Delay > 0", "f.Delay > 1"), pure("TestDecideClaim")},
	}
}
