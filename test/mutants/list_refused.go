package main

// refusedRowMutants are about rows that the database refuses to write: each costs itself only, and
// is named.
func refusedRowMutants() []mutant {
	const bad, notify = "TestARowThatNoClaimCanWriteCostsItselfOnly", "TestARowThatCannotBeNotifiedCostsItselfOnly"
	const rows, halve, refusedRows = "internal/refusal/rows.go", "internal/refusal/halve.go", "eventqueue/pgstore/refused.go"
	const next, limit = "TestANextEventThatIsRefusedCostsNoCompletion", "TestARefusedRowHoldsUpNoLimit"
	const around = "eventqueue/pgstore/advancearound.go"
	const checker = "cronchecker/checker.go"
	return []mutant{
		{"refused-claim-spoils-its-batch", "I15", askFile, change("case len(ids) > 1:", "case len(ids) > 1 && false:"), protocol(bad)},
		{"refused-row-is-asked-with-others", "I15", rows, change("case !refused:", "case !refused || len(keys) > 0:"), protocol(bad)},
		{"refused-row-comes-as-often-as-ever", "I11 I15", rows, change("refused.wait = min(2*refused.wait, most)", "refused.wait = minWait"), protocol(bad)},
		{"missing-right-is-blamed-on-rows", "I13", askFile, change("return err == nil\n}\n\n// askHalving", "return err == nil || true\n}\n\n// askHalving"),
			protocol("TestADatabaseThatRefusesAllClaimsBlamesNoRow")},
		{"lone-refused-row-stops-the-receiver", "I15", askFile, change("case a.answered || a.blamesRows || c.answersNothing(ctx):", "case a.answered:"),
			protocol("TestALoneRowThatNoClaimCanWriteCostsItselfOnly")},
		{"many-refused-rows-stop-the-receiver", "I15", askFile, change("case a.answered || a.blamesRows || c.answersNothing(ctx):", "case len(a.unsure) < 12 && (a.answered || c.answersNothing(ctx)):"),
			protocol("TestManyAdjacentRowsThatNoClaimCanWriteStarveNobody")},
		{"refused-row-stops-its-statement", "I15 I20", halve, change("case len(items) > 1:", "case len(items) > 1 && false:"), stored(notify)},
		{"missing-right-is-blamed-on-events", "I15", halve, change("case !h.answered && h.write(nil) != nil:", "case false:"),
			stored("TestARightThatIsMissingBlamesNoRow")},
		{"refused-row-stops-the-relay", "I15 I20", refusedRows, change("if !sqlstate.Refused(err) {", "if !sqlstate.Refused(err) || true {"), stored(notify)},
		{"refused-crowd-takes-all-time", "I15 I20", refusedRows, change("range maintenance.Interleaved(found) {", "range append(maintenance.Interleaved(nil), found...) {"), stored("TestACrowdOfRefusedRowsTakesTheTimeOfNoOtherCanvas")},
		{"page-that-takes-too-long-hides-the-others", "I15 I20", "eventqueue/pgstore/due.go", change("if full || oldestErr == nil", "if oldestErr == nil"), stored("TestACrowdOfRefusedRowsTakesTheTimeOfNoOtherCanvas")},
		{"refused-rows-are-not-put-off", "I11 I15", refusedRows, change("together, alone, _ := rows.Part(ids)", "together, alone := ids, ids[:0]"), stored(notify)},
		{"refused-row-of-the-relay-is-not-named", "I15", refusedRows, change("if refusedErr := named(rows, refused); err == nil {", "if refusedErr := named(rows, refused); err == nil && refusedErr == nil {"), stored(notify)},
		{"refused-group-stops-the-relay", "I15 I20", "eventqueue/pgstore/advance.go", change("if !sqlstate.Refused(err) {", "if !sqlstate.Refused(err) || true {"), stored(notify)},
		{"refused-next-event-costs-a-completion", "I1 I15", "eventqueue/pgstore/complete.go", change("if !sqlstate.Refused(err) {", "if !sqlstate.Refused(err) || true {"), stored(next)},
		{"refused-next-event-is-not-named", "I15", around, change("	return advanced, named(&s.stuck, culprits)\n", "	return advanced, nil\n"), stored(next)},
		{"written-end-looks-unwritten", "I1 I15", around, change("err = &refusal.Error{Advance: err}", "return nil, err"), stored("TestAWrittenEndReportsWhyItsGroupCouldNotAdvance")},
		{"group-that-stays-is-not-reported", "I15", around, change("err = &refusal.Error{Advance: err}", "err = nil"), stored("TestAWrittenEndReportsWhyItsGroupCouldNotAdvance")},
		{"refused-row-keeps-its-place-under-a-limit", "I15", around, change("stage > 1 AND NOT admitted`", "stage > 1 AND admitted AND false`"), stored(limit)},
		{"refused-row-leaves-its-key", "I15", around, change("WHERE event_id = ANY ($1) AND stage > 1 AND NOT admitted`", "WHERE event_id = ANY ($1) AND NOT admitted`"), stored(next)},
		{"relay-ends-at-a-refused-row", "I15 I20", "eventqueue/maintenance/sweep.go", change("return swept, refusal.Report(r.log, err)", "return swept, err"), maintaining("TestARowThatCannotBeNotifiedStopsNoRelay")},
		{"relay-ends-at-a-refused-pending-row", "I15 I20", "eventqueue/maintenance/relay.go", change("if err = refusal.Report(r.log, err); err != nil {", "if err != nil {"), maintaining("TestARowThatCannotBeNotifiedStopsNoRelay")},
		{"refused-renewal-costs-all-locks", "I3 I15", "eventqueue/worker/heartbeat.go", change("refused, err = refusal.Halve(func(claims []Claim) error {", "err = func(write func([]Claim) error, claims []Claim) error { return write(claims) }(func(claims []Claim) error {"),
			protocol("TestAClaimThatCannotBeRenewedCostsItselfOnly")},
		{"refused-release-costs-its-claim", "I15 I18", "eventqueue/worker/unanswered.go", change("refused, err := refusal.Halve(func(ids", "refused, err := []refusal.Refused[eventqueue.EventID](nil), func(write func([]eventqueue.EventID) error, ids []eventqueue.EventID) error { return write(ids) }(func(ids"),
			protocol("TestAnEventThatCannotBeGivenBackCostsItselfOnly")},
		{"refused-definition-is-not-named", "I10 I15", checker, change("p.refused = append(p.refused, refused...)", "_ = refused"), cron("TestADefinitionWhoseEventIsRefusedCostsItselfOnly")},
		{"refused-definition-comes-again-at-once", "I10 I15", checker, change("due.more && err == nil", "due.more"), cron("TestADefinitionWhoseEventIsRefusedCostsItselfOnly")},
		{"refusal-of-all-definitions-is-no-error", "I10", checker, change("if len(p.refused) > 0 && !p.answered {", "if false {"), cron("TestARefusalOfAllDefinitionsIsAnError")},
		{"lone-refused-row-is-forgotten-for-long", "I13 I15", askFile, change("most = maxUnsureWait", "_ = maxUnsureWait"),
			protocol("TestALoneRowThatNoClaimCanWriteCostsItselfOnly")},
	}
}
