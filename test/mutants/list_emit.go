package main

// emitMutants are about what is written and published when events come in.
func emitMutants() []mutant {
	const insert, queue, publish = "eventqueue/pgstore/insert.go", "eventqueue/queue.go", "eventqueue/publish.go"
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
		{"published-after-a-rollback", "I1", queue,
			change("if err != nil {\n\t\treturn err\n\t}\n\tq.publisher.publish(ctx, tx.toNotify)\n",
				"if tx != nil {\n\t\tq.publisher.publish(ctx, tx.toNotify)\n\t}\n\tif err != nil {\n\t\treturn err\n\t}\n"),
			stored("TestNothingIsNotifiedBeforeTheCommit")},
		{"published-before-the-commit", "I1", queue,
			change("return f(ctx, tx)\n", "if err := f(ctx, tx); err != nil {\n\t\t\treturn err\n\t\t}\n\t\tq.publisher.publish(ctx, tx.toNotify)\n\t\ttx.toNotify = nil\n\t\treturn nil\n"),
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
		{"only-emits-notice-a-notifier-that-is-back", "I13 I19", publish, change("\t\t\tp.MarkPending(ctx, batch)\n\t\t\tp.probe(ctx, batch[0])\n", "\t\t\tp.MarkPending(ctx, batch)\n"),
			[]judge{{"./eventqueue", []string{"TestOneFailedPublishDelaysNoLiftedRule"}}}},
		{"emit-waits-for-a-notifier-that-hangs", "I12", publish, change("\tcase <-timer.C:\n", ""), protocol("TestANotifierThatHangsHoldsUpNoEmit")},
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
