package main

// emitMutants are about what is written and published when events come in.
func emitMutants() []mutant {
	const insert, queue, publish = "eventqueue/pgstore/insert.go", "eventqueue/queue.go", "eventqueue/publish.go"
	return []mutant{
		{"emit-by-the-emitters-clock", "I6", insert,
			change("delays[i] = roundUpMicroseconds(e.Delay)",
				"delays[i] = roundUpMicroseconds(e.Delay)\n\t\tif e.Delay > 0 {\n\t\t\tuntils[i] = new(time.Now().Add(e.Delay))\n\t\t}"),
			protocol("TestTheWorkersClockDecidesNothing")},
		{"emit-delay-truncated", "I6", insert,
			change("return int64((d + time.Microsecond - 1) / time.Microsecond)", "return int64(d/time.Second) * 1_000_000"),
			protocol("TestADelayIsNeverShortened")},
		{"emit-encodes-the-value-again", "I8", insert,
			[]edit{
				{"\t\"database/sql\"\n", "\t\"bytes\"\n\t\"database/sql\"\n\t\"encoding/json\"\n"},
				{"values[i] = e.Canvas, string(e.Value)", "values[i] = e.Canvas, \"\"\n\t\tvar again bytes.Buffer\n\t\t_ = json.Compact(&again, e.Value)\n\t\tvalues[i] = again.String()"},
			},
			protocol("TestAValueComesOutAsItWentIn")},
		{"far-off-event-counts-as-notified", "I2 I13", insert,
			change("AND due <= clock.now + $9::bigint * interval '1 microsecond' THEN", "AND $9::bigint IS NOT NULL THEN"),
			protocol("TestADebtIsPaidOnce")},
		{"published-after-a-rollback", "I1", queue,
			change("if err != nil {\n\t\treturn err\n\t}\n\tq.publisher.publish(ctx, tx.announced)\n",
				"if tx != nil {\n\t\tq.publisher.publish(ctx, tx.announced)\n\t}\n\tif err != nil {\n\t\treturn err\n\t}\n"),
			protocol("TestNothingRingsBeforeTheCommit")},
		{"published-before-the-commit", "I1", queue,
			change("return f(ctx, tx)\n", "if err := f(ctx, tx); err != nil {\n\t\t\treturn err\n\t\t}\n\t\tq.publisher.publish(ctx, tx.announced)\n\t\ttx.announced = nil\n\t\treturn nil\n"),
			protocol("TestNothingRingsBeforeTheCommit")},
		{"failed-publish-is-not-owed", "I1 I2", publish,
			change("if err != nil {\n\t\tp.oweAll(ctx, batch)\n\t}\n\treturn err", "return err"),
			protocol("TestAFailedPublishIsOwed")},
		{"broker-that-is-down-is-tried-each-time", "I12", publish,
			change("p.down = err != nil\n", "p.down = err != nil && p.rest < 0\n"),
			protocol("TestAFailedPublishIsOwed")},
		{"broker-that-is-back-is-not-noticed", "I2", publish,
			change("if !p.down || p.idle != nil", "if p.rest > 0 || p.idle != nil"),
			protocol("TestABrokerThatIsBackIsNoticed")},
		{"emit-waits-for-a-broker-that-hangs", "I12", publish, change("\tcase <-timer.C:\n", ""), protocol("TestABrokerThatHangsHoldsUpNoEmit")},
	}
}
