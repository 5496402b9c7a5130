package main

// notifierMutants are about Pub/Sub.
func notifierMutants() []mutant {
	const receive, message = "pubsubnotify/receive.go", "pubsubnotify/message.go"
	const formats = "TestOwnMessagesAreReadLikeOthers"
	return []mutant{
		{"undecodable-message-comes-again-and-again", "I11", receive, change("bad = append(bad, message.GetAckId())", "_ = bad"),
			pubsub("TestAnUndecodableMessageHarmsNoOther")},
		{"undecodable-message-fails-its-batch", "I2 I15", receive, change("bad = append(bad, message.GetAckId())\n\t\t\tcontinue", "n.dropUndecodable(ctx, []string{message.GetAckId()})\n\t\t\treturn nil"),
			pubsub("TestNothingDecodableIsNothing")},
		{"requeue-truncated-on-the-wire", "I6 I11", receive, change("int32((d + time.Second - 1) / time.Second)", "int32(d / time.Second)"),
			pubsub("TestDelaysAreRoundedUp")},
		{"own-format-overflows", "I2", message, change("const maxOwnDigits = 18", "const maxOwnDigits = 20"), pubsub(formats)},
		{"own-format-takes-what-is-no-id", "I2", message, change(" || id[0] == '0'", ""), pubsub(formats)},
	}
}

// pgnotifyMutants are about the doorbell on Postgres.
func pgnotifyMutants() []mutant {
	const (
		notifier = "eventqueue/pgnotify/notifier.go"
		listen   = "eventqueue/pgnotify/listen.go"
		publish  = "eventqueue/pgnotify/publish.go"
		pull     = "eventqueue/pgnotify/pull.go"
		marks    = "eventqueue/pgnotify/marks.go"
	)
	return []mutant{
		{"bell-publish-wakes-nobody", "I2", publish, change("SELECT pg_notify('` + channel + `', '')`", "SELECT '` + channel + `'`"),
			bell("TestEachPublishNotifies")},
		{"bell-misses-what-was-before-listen", "I2", listen, change("\tl.ring()\n\tif err := l.hearItself", "\tif err := l.hearItself"),
			bell("TestItRingsOnceItListens")},
		{"bell-failed-take-rings-no-more", "I2", pull, change("n.bell.ring()\n\t\treturn fmt.Errorf(\"take", "return fmt.Errorf(\"take"),
			bell("TestAFailedLookIsMadeAgain")},
		{"bell-never-looks-from-the-beginning", "I2", marks, change(" || now.Sub(m.wholeAt) >= wholeEvery", ""), bell("TestMarks")},
		{"bell-waits-for-what-is-locked", "I2 I13", pull, change("\n    FOR UPDATE SKIP LOCKED", "\n    FOR UPDATE"),
			bell("TestWhatIsLockedIsPassedOver")},
		{"bell-keeps-what-was-taken-ahead", "I2", pull, change("n.leases.returnReady() // this process may pull no more\n", ""),
			bell("TestWhatWasTakenAheadGoesBack")},
		{"bell-close-forgets-its-leases", "I2", notifier, change("slices.Concat(n.unreturned, n.leases.takeAll())", "slices.Concat(n.unreturned)"),
			bell("TestCloseGivesEverythingBack")},
	}
}

// fallbackMutants are about the database standing in for a bell that is down.
func fallbackMutants() []mutant {
	const receiver = "eventqueue/fallback/receiver.go"
	judges := protocol("TestTheDatabaseStandsInForTheBell")
	return []mutant{
		{"fallback-off", "I2 I13", receiver, change("r.polling, r.probeAt = true,", "r.polling, r.probeAt = false,"), judges},
		{"fallback-at-the-first-hiccup", "I12", receiver, change("now.Sub(r.failing) >= r.config.After", "now.Sub(r.failing) >= 0"), judges},
		{"fallback-never-steps-back", "I12", receiver, change("r.failing, r.polling = time.Time{}, false", "r.failing, r.polling = time.Time{}, true"), judges},
		{"fallback-misses-what-is-lost", "I2", receiver, change("return r.enqueue(ctx, lost)", "_ = lost\n\treturn nil"), judges},
	}
}

// cronMutants are about slots.
func cronMutants() []mutant {
	const due, postgres = "cronchecker/due.go", "cronchecker/postgres.go"
	return []mutant{
		{"cron-slot-is-emitted-again", "I10", postgres, change(" && slot.At.After(last[slot.Cron])", ""), cron("TestEmitChecksAgain")},
		{"cron-slot-is-not-recorded", "I10", postgres, change("return record(ctx, tx, ours, ids)", "_ = ids\n\t\treturn nil"), cron("TestCheckAgain")},
		{"cron-checkers-do-not-exclude-each-other", "I10", postgres, change("\nFOR NO KEY UPDATE SKIP LOCKED", ""), cron("TestCheckLeavesWhatAnotherHolds")},
		{"cron-slot-before-its-start", "I10", postgres, change("locked && slot.At.After(start) &&", "locked && !start.IsZero() &&"), cron("TestEmitChecksAgain")},
		{"cron-latest-is-all", "I10", due, change("if d.Missed == MissedAll {", "if d.Missed != MissedNone {"), cron("TestDue")},
		{"cron-emits-however-late", "I10", due, change("d.Missed == MissedNone && now.Sub(latest) > late", "d.Missed == MissedNone && now.Before(latest)"), cron("TestDue")},
	}
}
