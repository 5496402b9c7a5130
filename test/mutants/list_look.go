package main

// lookMutants are about what a worker makes of what it found.
func lookMutants() []mutant {
	const receive, answer = "eventqueue/receive.go", "eventqueue/answer.go"
	const back = "TestWhenANotificationComesBack"
	return []mutant{
		{"doubled-notification-runs-twice", "I3 I4", receive, change("seen[d.Event]; double {", "seen[d.Event]; double && len(seen) == 0 {"),
			protocol("TestADoubledNotificationRunsItsEventOnce")},
		{"doubled-notification-ends-the-other", "I2 I13", receive,
			change("w.giveBack(doubles, w.config.Lease)", "for _, d := range doubles {\n\t\tw.answers <- answer{delivery: d}\n\t}\n\tw.slots.give(len(doubles))"),
			protocol("TestADoubledNotificationRunsItsEventOnce")},
		{"held-lock-is-looked-at-again-at-once", "I11", receive,
			change("return min(facts.LockRemaining, leaveToRelay) + w.config.Jitter(claimFailedDelay)", "return 0"), protocol(back)},
		{"busy-row-is-looked-at-again-at-once", "I11", receive,
			change("return claimFailedDelay + w.config.Jitter(claimFailedDelay)", "return 0"), protocol(back)},
		{"unknown-handler-is-looked-at-again-at-once", "I11", receive,
			change("return w.config.UnknownDelay + w.config.Jitter(claimFailedDelay)", "return 0"), protocol(back)},
		{"unknown-handler-goes-round-for-ever", "I11", receive, change("return leaveToRelay", "return w.config.UnknownDelay"), protocol(back)},
		{"empty-pulls-make-a-hot-loop", "I11", receive, change("case time.Since(began) < emptyPullTakes:", "case time.Since(began) < 0:"),
			protocol("TestABellThatAnswersNothingAtOnceMakesNoHotLoop")},
		{"failed-look-forgets-its-notifications", "I2 I13", receive,
			change("w.giveBack(deliveries, wait.next)", "w.slots.give(len(deliveries))"),
			protocol("TestALookThatFailsGivesItsNotificationsBack")},
		{"stop-cuts-off-a-claim", "I3 I13", receive,
			change("\t\tpause(claim, claimAtStop)\n", ""), protocol("TestAStopDoesNotCutOffAClaim")},
		{"claim-that-hangs-holds-up-a-stop", "I13", receive,
			change("pause(claim, claimAtStop)\n\t\tcancel()", "pause(claim, claimAtStop)"), protocol("TestAClaimThatHangsDoesNotHoldUpAStop")},
		{"requeue-truncated", "I6 I11", answer, change("(d+unit-1)/unit*unit", "d/unit*unit"), protocol(back)},
		{"far-off-event-stays-in-the-bell", "I11", answer, change(" || out.Delay > MaxRequeue", ""), protocol(back)},
	}
}

// machineMutants are wrong arrows and wrong decisions.
func machineMutants() []mutant {
	const arrows, walk = "eventqueue/machine/arrows.go", "eventqueue/machine/walk.go"
	return []mutant{
		{"unknown-handler-ends-the-event", "I1", arrows,
			change("Label: HandlerUnknown, To: Queue", "Label: HandlerUnknown, To: End"), pure("TestLook")},
		{"paused-event-goes-round", "I11", arrows, change("Label: Paused, To: End", "Label: Paused, To: Queue"), pure("TestLook")},
		{"snooze-ends-the-event", "I1", arrows, change("Label: Snoozed, To: Queue", "Label: Snoozed, To: Delete"), pure("TestJudge")},
		{"one-retry-too-many", "I9", walk, change("r.Retries < r.MaxRetries", "r.Retries <= r.MaxRetries"), pure("TestJudge")},
		{"early-by-a-nanosecond", "I6", walk, change("f.Delay > 0", "f.Delay > 1"), pure("TestLook")},
	}
}
