package main

// minuteMutants are about the counts of minutes.
func minuteMutants() []mutant {
	const counts, store = "eventqueue/minutes/counter.go", "eventqueue/pgstore/minutes.go"
	counting := func(tests ...string) []judge { return []judge{{"./eventqueue/minutes", tests}} }
	adding := func(tests ...string) []judge { return []judge{{"./eventqueue/pgstore", tests}} }
	const pending, lines, said = "eventqueue/pgstore/backlog.go", "eventqueue/maintenance/waiting.go", "service/explain.go"
	finding := func(before, after, name string) mutant {
		return mutant{name, "I19", pending, change(before, after), adding("TestCountPendingFindsHandlersThatNobodyRuns")}
	}
	return []mutant{
		{"idle-relay-counts-what-is-pending", "I12", "eventqueue/maintenance/minutes.go", change("m.idle >= idleCounts && m.empty()", "false && m.empty()"), maintaining("TestARelayWithoutEventsSendsFewStatements")},
		{"minutes-stay-for-longer", "I12", "eventqueue/maintenance/minutes.go", change("= 14 * 24 * time.Hour", "= 15 * 24 * time.Hour"), maintaining("TestHowLongCountsAreRetained")},
		{"minutes-go-too-early", "I19", "eventqueue/maintenance/minutes.go", change("= 14 * 24 * time.Hour", "= 13 * 24 * time.Hour"), maintaining("TestHowLongCountsAreRetained")},
		{"hours-stay-for-longer", "I12", "eventqueue/maintenance/minutes.go", change("= 365 * 24 * time.Hour", "= 366 * 24 * time.Hour"), maintaining("TestHowLongCountsAreRetained")},
		{"hours-go-too-early", "I19", "eventqueue/maintenance/minutes.go", change("= 365 * 24 * time.Hour", "= 364 * 24 * time.Hour"), maintaining("TestHowLongCountsAreRetained")},
		{"relay-counts-nothing-while-there-are-events", "I13", "eventqueue/maintenance/minutes.go", change("m.idle >= idleCounts && m.empty()", "m.idle >= idleCounts"), maintaining("TestAnIdleRelayCountsAgain")},
		{"relay-stops-counting-before-runs-are-handed-in", "I13", "eventqueue/maintenance/waiting.go", change("if whole && waiting.EndedOf == 0 &&", "if whole &&"), maintaining("TestAnIdleRelayCountsAgain")},
		{"idle-relay-reads-the-lock-timeout-often", "I12", "eventqueue/maintenance/locktimeout.go", change("unset = min(2*unset, readLockTimeoutEvery)", "unset = min(unset, readLockTimeoutEvery)"), maintaining("TestARelayWithoutEventsSendsFewStatements")},
		finding("WHERE NOT c.ruled AND c.running = 0", "WHERE c.running = 0", "paused-handler-stands"),
		{"narrow-rule-holds-nothing-or-all", "I19", pending, change("ELSE round(all_of.pending::numeric * c.held / c.n)::bigint END", "ELSE 0 END"), adding("TestWhatANarrowRuleHoldsIsCounted")},
		{"event-that-a-narrow-rule-holds-stands", "I19", pending, []edit{{"c.free_due AS oldest_due", "c.oldest_due"}, {"AND c.free_due >= $7", "AND c.oldest_due >= $7"}}, adding("TestWhatANarrowRuleHoldsIsCounted")},
		{"held-event-is-why-nothing-runs", "I19", pending, change(" + ` AND NOT ` + mayrun.NarrowlyRuledSQL(\"e\") + `\nORDER BY", " + `\nORDER BY"), adding("TestWhatANarrowRuleHoldsIsCounted")},
		finding("NOT c.ruled AND c.running = 0 AND", "NOT c.ruled AND", "running-handler-stands"),
		finding("AND (c.canvas_id, c.module, c.name) NOT IN (SELECT canvas_id, module, name FROM recent)", "", "handler-whose-runs-end-stands"),
		finding("AND (c.module, c.name) NOT IN (SELECT module, name FROM recent WHERE", "AND (c.module, c.name) NOT IN (SELECT module, name FROM recent WHERE false AND", "runs-of-further-canvases-are-none"),
		{"event-behind-others-is-why-nothing-runs", "I19", pending, change("mayrun.NotBehindSQL(\"e.group_state\")", "\"true\""), adding("TestTheOldestDueEventIsFound")},
		{"idle-minute-has-a-line-of-the-relay", "I12", lines, change("if ended == 0 && waiting.OldestDue == 0 {", "if false {"), maintaining("TestMinutesAreSummedUp")},
		{"handler-beside-others-is-an-error-each-minute", "I19", lines, change("stands := whole && waiting.EndedOf == 0 && waiting.Running == 0", "stands := whole"), maintaining("TestAHandlerThatStandsBesideOthersIsAWarning")},
		{"backlog-of-a-worker-is-a-warning", "I19", lines, change("explained.Free && !stands", "false"), maintaining("TestAHandlerThatStandsBesideOthersIsAWarning")},
		{"handler-beside-others-is-a-warning-each-minute", "I19", lines, change("< unservedAgain {", "< 0 {"), maintaining("TestAHandlerThatStandsBesideOthersIsAWarning")},
		{"what-passes-has-a-line", "I19", lines, change("explained.Passes ||", ""), maintaining("TestWhatPassesByItselfHasNoLine")},
		{"event-that-was-notified-now-stands", "I19", said, change("< maintenance.UnservedAfter", "< 0"), serving("TestWhatARelaySaysOfAnEventThatIsDue")},
		{"failed-event-has-no-remedy", "I19", "eventqueue/worker/outcome.go", change("if level == zap.ErrorLevel {", "if false {"), protocol("TestWhatIsWorthALine")},
		{"replaced-connection-is-the-reason", "I19", "pubsubnotify/notifier.go", change("if status.Code(err) == codes.Canceled && n.connection.clients() != clients {", "if false {"),
			pubsub("TestACallOnAReplacedConnectionWasNotAnswered")},
		{"refused-counts-are-lost", "I14", counts, change("\t\tm.putBack(counts)\n", ""), counting("TestARefusedHandInComesWithTheNextOne")},
		{"sums-of-minutes-are-counted-twice", "I14", "eventqueue/inspect/totals.go", change("WHERE $1 AND asked.minute > summed.upto", "WHERE $1 AND summed.upto IS NOT NULL"), []judge{{"./eventqueue/inspect", []string{"TestTotalsOfMinutesThatAreSummedUp"}}}},
		{"newest-minutes-are-summed-up-first", "I14", "eventqueue/pgstore/minutetotals.go", change("ORDER BY asked.minute LIMIT $3", "ORDER BY asked.minute DESC LIMIT $3"), []judge{{"./eventqueue/inspect", []string{"TestTotalsOfMinutesThatAreSummedUp"}}}},
		{"page-of-counts-ends-with-its-first-handlers", "I14", "eventqueue/inspect/minutepages.go", change("LIMIT $8::bigint + 1", "LIMIT $8::bigint"), inspecting("TestPagesOfManyHandlers")},
		{"page-of-counts-has-no-end", "I14", "eventqueue/inspect/minutepages.go", change("WHERE cut.module IS NULL OR (seen.module, seen.name) < (cut.module, cut.name)", "WHERE true"), inspecting("TestPagesOfManyHandlers")},
		{"last-page-of-counts-is-empty", "I14", "eventqueue/inspect/minutepages.go", change("WHERE nth > $8", "WHERE nth >= $8"), inspecting("TestPagesOfManyHandlers")},
		{"page-of-counts-leaves-handlers-out", "I14", "eventqueue/inspect/minutepages.go", change("sum(n) OVER ordered - n AS before", "sum(n) OVER (ORDER BY module, name DESC) - n AS before"), overHTTP("TestStatsHavePages")},
		{"idle-programs-hand-in", "I12", counts, []edit{{"\tif len(counts) == 0 {\n\t\treturn nil\n\t}\n", ""},
			{"\tm.ahead = time.Until(now)\n", "\tm.ahead = time.Until(now)\n\tm.timer = time.AfterFunc(m.untilHandIn(now), func() { _ = m.HandIn(context.Background()) })\n"}}, counting("TestIdleProgramsHandInNothing")},
		{"a-repeat-is-counted-as-emitted", "I14", "eventqueue/queue.go", change("!row.Repeat && !yield(", "row.ID > 0 && !yield("), queue("TestWhatWasEmittedIsCounted")},
		{"a-hand-in-of-any-size", "I15", counts, change("len(m.counts) < most || scope == eventqueue.Scope{}", "most > 0 || scope == eventqueue.Scope{}"), counting("TestAHandInHasABoundedNumberOfRows")},
		{"a-minute-of-any-size", "I15", store, change("WHEN there OR n <= room.scopes THEN canvas_id", "WHEN true THEN canvas_id"), adding("TestAMinuteHasABoundedNumberOfRows")},
		{"a-series-for-each-handler", "I15", "otelevents/handlers.go", change("if len(h.known) >= MaxHandlers {", "if false {"), []judge{{"./otelevents", []string{"TestTheNumberOfSeriesIsBounded"}}}},
		{"a-span-has-the-text-of-an-error", "I19", "otelevents/traces.go", change("fmt.Sprintf(\"%T\", err)", "fmt.Sprintf(\"%v\", err)"), []judge{{"./otelevents", []string{"TestARunIsASpan"}}}},
		{"profiles-for-everybody", "I16", "internal/webserver/profiles.go", change("case !onLoopback(c.ProfilesListen):", "case false:"), []judge{{"./internal/webserver", []string{"TestProfilesAreForThisMachine"}}}},
		{"each-scrape-is-a-statement", "I12", "otelevents/pending.go", change("if time.Now().Before(p.until) {", "if false {"), []judge{{"./otelevents", []string{"TestPendingIsReadForThoseWhoCollect"}}}},
		{"the-last-hand-in-replaces-the-others", "I14", store, change("completed = e.completed + excluded.completed", "completed = excluded.completed"), adding("TestHandInsOfTwoWorkersAdd")},
	}
}
