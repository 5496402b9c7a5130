package main

// emitMutants are about what is written and published when events come in.
func emitMutants() []mutant {
	const insert, tx, publish = "eventqueue/pgstore/insert.go", "eventqueue/tx.go", "eventqueue/publish.go"
	return []mutant{
		{"emit-by-the-emitters-clock", "I6", insert,
			change("delays[i] = roundUpMicroseconds(e.Delay)",
				"delays[i] = roundUpMicroseconds(e.Delay)\n\t\tif e.Delay > 0 {\n\t\t\tuntils[i] = new(time.Now().Add(e.Delay))\n\t\t}"),
			stored("TestTheWorkersClockDecidesNothing")},
		{"emit-delay-truncated", "I6", insert,
			change("return int64((d + time.Microsecond - 1) / time.Microsecond)", "return int64(d/time.Second) * 1_000_000"),
			stored("TestADelayIsNeverShortened")},
		{"emit-encodes-the-value-again", "I8", insert,
			[]edit{
				{"\t\"context\"\n", "\t\"bytes\"\n\t\"context\"\n\t\"encoding/json\"\n"},
				{"values[i] = e.Canvas, string(e.Value)", "values[i] = e.Canvas, \"\"\n\t\tvar again bytes.Buffer\n\t\t_ = json.Compact(&again, e.Value)\n\t\tvalues[i] = again.String()"},
			},
			stored("TestAValueComesOutAsItWentIn")},
		{"emit-at-once-encodes-the-value-again", "I8", insert,
			[]edit{
				{"\t\"context\"\n", "\t\"bytes\"\n\t\"context\"\n\t\"encoding/json\"\n"},
				{"values[i], places[i] = string(e.Value), place", "var again bytes.Buffer\n\t\t_ = json.Compact(&again, e.Value)\n\t\tvalues[i], places[i] = again.String(), place"},
			},
			stored("TestAValueComesOutAsItWentIn")},
		{"batch-goes-to-one-handler", "I16", insert,
			change("place = int32(len(canvases))", "place = 1"), stored("TestEachOfABatchGoesToItsHandler")},
		{"batch-forgets-canvases", "I16", insert,
			change("at := eventqueue.CanvasHandler{Canvas: e.Canvas, Key: e.Handler()}", "at := eventqueue.CanvasHandler{Key: e.Handler()}"),
			stored("TestEachOfABatchGoesToItsHandler")},
		{"far-off-event-counts-as-notified", "I2 I13", insert,
			change("AND due <= (SELECT now FROM clock) + $9::bigint * interval '1 microsecond' THEN", "AND $9::bigint IS NOT NULL THEN"),
			stored("TestAPendingNotificationIsTakenOnce")},
		{"published-after-a-rollback", "I1", tx,
			change("if err != nil {\n\t\treturn err\n\t}\n\tq.publisher.publish(ctx, tx.toNotify)\n",
				"if tx != nil {\n\t\tq.publisher.publish(ctx, tx.toNotify)\n\t}\n\tif err != nil {\n\t\treturn err\n\t}\n"),
			stored("TestNothingIsNotifiedBeforeTheCommit")},
		{"published-before-the-commit", "I1", tx,
			change("\t\t\tcommit = q.unanswered", "\t\t\tq.publisher.publish(ctx, tx.toNotify)\n\t\t\ttx.toNotify = nil\n\t\t\tcommit = q.unanswered"),
			stored("TestNothingIsNotifiedBeforeTheCommit")},
		{"failed-publish-is-not-pending", "I1 I2", publish,
			change("\t\t\tp.MarkPending(ctx, batch[:n])\n", "\t\t\t_ = n\n"),
			stored("TestAFailedPublishIsPending")},
		{"notifier-that-is-down-is-tried-each-time", "I12", publish,
			change("p.down = err != nil\n", "p.down = err != nil && p.rest < 0\n"),
			stored("TestAFailedPublishIsPending")},
		{"notifier-that-is-back-is-not-noticed", "I2", publish,
			change("if !p.down || p.probing != nil", "if p.rest > 0 || p.probing != nil"),
			protocol("TestANotifierThatIsBackIsNoticed")},
		{"sender-that-failed-is-down-for-good", "I13 I19", publish, change("p.down = err != nil\n", "p.down = p.down || err != nil\n"), protocol("TestANotifierThatIsBackIsNoticed")},
		{"only-emits-notice-a-notifier-that-is-back", "I13 I19", publish, change("\t\t\tp.MarkPending(ctx, batch)\n\t\t\tp.probe(ctx, batch[0])\n", "\t\t\tp.MarkPending(ctx, batch)\n"),
			[]judge{{"./eventqueue", []string{"TestOneFailedPublishDelaysNoLiftedRule"}}}},
		{"emit-waits-for-a-notifier-that-hangs", "I12", publish, change("\tcase <-timer.C:\n", ""), protocol("TestANotifierThatHangsHoldsUpNoEmit")},
	}
}

// unansweredMutants are about emits whose answers are lost.
func unansweredMutants() []mutant {
	const search, state, queries = "eventqueue/unanswered.go", "internal/sqlstate/sqlstate.go", "eventqueue/pgstore/unclaimed.go"
	const takes = "internal/lostanswer/takes.go"
	taking := func(name, invariants string, e []edit, tests ...string) mutant {
		return mutant{name, invariants, takes, e, []judge{{"./eventqueue", tests}}}
	}
	const again, until = "TestTakenNotificationsWithoutAnAnswerArePendingAgain", "TestTakenNotificationsAreMarkedUntilThatIsAnswered"
	return []mutant{
		taking("unanswered-take-is-forgotten", "I19", change("case err != nil && sqlstate.MayHaveCommitted(err):", "case false && sqlstate.MayHaveCommitted(err):"), again),
		taking("silent-take-is-awaited-for-ever", "I19", change("time.AfterFunc(AnswerTakes, func() { u.add(ids, t) })", "time.AfterFunc(AnswerTakes, func() {})"), again),
		taking("answered-take-is-marked-too", "I12", change("inTime := t.timer.Stop()", "inTime := true"), "TestNothingIsMarkedWithoutALostAnswer"),
		taking("late-take-is-marked-too", "I12", change("case !inTime:", "case !inTime && false:"), "TestALateAnswerMarksNothing"),
		taking("failed-mark-is-the-last", "I19", change("\tif len(u.ids) > 0 {\n\t\tu.timer", "\tif len(u.ids) > 0 && err == nil {\n\t\tu.timer"), until),
		taking("failed-marks-go-on-for-ever", "I12", change("began.Sub(added) > GiveUpAfter", "false"), until),
		taking("close-leaves-lost-takes-to-the-relay", "I19", change("for !u.mark(ctx) {", "for false {"), "TestCloseMarksALastTime"),
		{"unanswered-emit-is-forgotten", "I19", search, change("lost := err != nil && sqlstate.MayHaveCommitted(err)", "lost := false && sqlstate.MayHaveCommitted(err)"),
			queue("TestAnEmitWithoutAnAnswerIsNotified")},
		{"silent-database-is-waited-for", "I19", search, change("time.AfterFunc(lostanswer.AnswerTakes, a.seek)", "time.AfterFunc(insertTakes, a.seek)"),
			queue("TestAnEmitWithoutAnAnswerIsNotified")},
		{"late-answer-is-searched-for", "I12", search, change("!s.lost && len(s.late) == 0", "false"), queue("TestALateAnswerEndsTheSearch")},
		{"late-answer-ends-the-search-for-a-lost-one", "I19", search, change("s.lost = s.lost || lost", "s.lost = lost"), queue("TestALateAnswerEndsNoOtherSearch")},
		{"late-answer-ends-the-search-for-another-late-one", "I19", search, change("!s.lost && len(s.late) == 0", "!s.lost"), queue("TestALateAnswerEndsNoOtherSearch")},
		{"late-commit-is-not-searched-for", "I19", search, change("case s.answered == len(lateSearches):", "case s.answered >= 0:"),
			queue("TestALateCommitIsFound")},
		{"search-that-fails-is-the-last", "I19", search, change("case err != nil && began.Sub(s.to) > lostanswer.GiveUpAfter:", "case err != nil:"),
			queue("TestASearchThatFailsIsTriedAgain")},
		{"search-is-never-given-up", "I12", search, change("began.Sub(s.to) > lostanswer.GiveUpAfter", "began.Sub(s.to) > 1000*lostanswer.GiveUpAfter"),
			queue("TestASearchThatFailsIsTriedAgain")},
		{"each-loss-is-searched-for-alone", "I12", search, change("maxSearchScopes = 100\n", "maxSearchScopes = 1\n"),
			queue("TestWhatFailsTogetherIsSearchedForTogether")},
		{"found-events-are-notified-by-each-search", "I11", search, change("return slices.DeleteFunc(found, func(n Notification) bool { return earlier[n.Event] })", "return found"),
			queue("TestAnEmitWithoutAnAnswerIsNotified")},
		{"close-leaves-lost-emits-to-the-relay", "I19", search, change("until == nil && u.searchNow(ctx, true)", "until == nil"), queue("TestCloseSearchesALastTime")},
		{"failed-connect-may-have-committed", "I12", state, change("errors.As(err, &connect) ||", "errors.As(err, &connect) && false ||"),
			queue("TestNoSearchWithoutALostAnswer")},
		{"rollback-may-have-committed", "I12", state, change(" || errors.Is(err, pgx.ErrTxCommitRollback)", " || errors.Is(err, pgx.ErrTxClosed)"),
			queue("TestNoSearchWithoutALostAnswer")},
		{"cut-commit-counts-as-unsent", "I19", state, change("if errors.Is(err, pgconn.ErrConnClosed) {", "if false {"), stored("TestACommitWithoutItsAnswerIsNotified")},
		{"search-reads-a-backlog", "I12", queries, change("WHERE (e.canvas_id, e.module, e.name) >= (asked.canvas_id, asked.module, asked.name)\n          AND (e.canvas_id, e.module, e.name) <= (asked.canvas_id, asked.module, asked.name)",
			"WHERE e.canvas_id = asked.canvas_id AND e.module = asked.module AND e.name = asked.name"), stored("TestASearchForUnansweredEmitsReadsNoBacklog")},
	}
}

// groupMutants are about emits that share an insert.
func groupMutants() []mutant {
	const group = "eventqueue/groupcommit.go"
	return []mutant{
		{"one-refused-emit-fails-others", "I15", group, change("if sqlstate.Refused(err) && len(calls) > 1 {", "if sqlstate.Refused(err) && len(calls) > maxGroup {"),
			queue("TestOneRefusedEmitFailsNoOther")},
		{"group-without-bound", "I12", group, change("events > maxGroup ||", "events > 1000*maxGroup ||"), queue("TestGroupsAreBounded")},
		{"given-up-emit-is-inserted", "I8", group, change("; i >= 0 {", "; i > len(g.waiting) {"),
			queue("TestAnEmitThatIsGivenUpBeforeItsInsertIsNotInserted")},
		{"emits-return-before-their-insert", "I1", group,
			[]edit{
				{"\tinserted, err := g.insertOnce(ctx, events)\n",
					"\tfor _, call := range calls {\n\t\tcall.inserted = make([]Inserted, len(call.events))\n\t\tclose(call.done)\n\t}\n\tinserted, err := g.insertOnce(ctx, events)\n"},
				{"\t\tclose(call.done)\n\t\tif call.left", "\t\tif call.left"},
			}, queue("TestAnEmitReturnsAfterItsCommit")},
		{"given-up-emit-is-not-notified", "I13", group, change("if call.left && call.err == nil {", "if call.left && call.err != nil {"),
			queue("TestAnEmitThatIsGivenUpIsNotified")},
		{"given-up-emit-reads-its-callers-memory", "I8", group, change("Value = slices.Clone(events[i].Value)", "Value = events[i].Value"),
			queue("TestAnEmitThatIsGivenUpKeepsNothingOfItsCaller")},
		{"hanging-insert-holds-up-all", "I15", group, change("g.running < maxInserts &&", "g.running < 1 &&"),
			queue("TestAHangingInsertHoldsUpNobodyElse")},
		{"group-mixes-up-its-ids", "I2", group, change("call.inserted, inserted = inserted[:n:n], inserted[n:]", "call.inserted = inserted[:n:n]"),
			queue("TestAnEmitReturnsAfterItsCommit")},
	}
}
