package main

// apiMutants are about what a request to the HTTP API may cost.
func apiMutants() []mutant {
	const body, check, refusal = "httpapi/body.go", "httpapi/check.go", "httpapi/refusal.go"
	const bounded = "TestHostileBodiesCostLittle"
	return []mutant{
		{"api-notes-every-error", "I15", check, change("len(c.res.Errors) > maxErrors", "len(c.res.Errors) > 1<<30"), overHTTP(bounded)},
		{"api-shows-every-error", "I15", refusal, change("if len(problem.Errors) > maxErrors {", "if len(problem.Errors) > 1<<30 {"), overHTTP(bounded)},
		{"api-quotes-whole-values", "I15", refusal, change("return short(v, maxValueBytes)", "return v"), overHTTP(bounded)},
		{"api-takes-a-property-twice", "I16", check, change("if again {", "if again && name == \"\" {"), overHTTP("TestCheckRefusesMoreThanHuma")},
		{"api-reads-bodies-of-whoever", "I15", "httpapi/operation.go", change("if !callerOf(ctx.Context()).MayAnywhere(verb) {", "if verb == \"\" {"), overHTTP("TestForbiddenBodiesAreNotRead")},
		{"api-reserves-nothing-for-bodies", "I15", body, change("b.in.Reserve(b.of, around+copiesOfBody*most,", "b.in.Reserve(b.of, 0*around,"), overHTTP("TestStalledBodyMakesRoom")},
		{"api-large-bodies-of-all-wait-for-one", "I15", body, change("b.turns.take(waiting, b.of,", "b.turns.take(waiting, \"\","), overHTTP("TestStallingSenderKeepsNobodyOut")},
		{"api-who-takes-least-makes-room", "I15", body, change("b.in.Reserve(b.of,", "b.in.Reserve(\"\","), overHTTP("TestStallingSenderKeepsNobodyOut")},
		{"api-breaks-off-refused-bodies", "I13", body, change("if !l.ended {", "if l.ended {"), overHTTP("TestRefusedBodyIsReadToItsEnd")},
		{"api-keeps-the-memory-of-bodies", "I13", body, change("		b.room.Free()\n	}\n	if b.endTurn", "		_ = b.room\n	}\n	if b.endTurn"), overHTTP("TestAPIRefuses", bounded)},
		{"api-hands-nul-to-the-database", "I14", "internal/httprequest/text.go", change("case strings.ContainsRune(text, 0):", "case strings.ContainsRune(text, 1):"), overHTTP("TestUnusableTextsAreRefused")},
		{"api-audits-what-it-has-not-emitted", "I11", "httpapi/changes.go", change("		if !e.New {\n", "		if !e.New && e.ID == 0 {\n"), overHTTP("TestRepeatedEmitIsAuditedOnce")},
	}
}
