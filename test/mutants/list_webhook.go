package main

// webhookMutants are about what webhooks are verified for, and taken in once.
func webhookMutants() []mutant {
	const handler, verify, hmac = "webhook/handler.go", "webhook/verify.go", "webhook/hmac.go"
	const forged, once, replay = "TestForgeriesAreRefused", "TestTheSameDeliveryAddsNothing", "TestWhatIsNotSignedMakesNoSecondEvent"
	return []mutant{
		{"webhook-of-anybody", "I2", verify, change("if !found {", "if !found && len(signatures) == 0 {"), web(forged)},
		{"webhook-from-long-ago", "I3", verify, change("case seconds < now-most:", "case seconds < now-most-1:"), web(forged)},
		{"webhook-with-two-signatures", "I2", verify, change("case len(values) > 1:", "case len(values) > 2:"), web(forged)},
		{"webhook-with-an-empty-secret", "I2", verify, change(`if strings.TrimSpace(secret) == "" {`, `if strings.TrimSpace(secret) == "none" {`),
			web("TestSchemesThatProtectNothingAreRefusedAtTheStart")},
		{"webhook-id-reaches-into-the-body", "I3", hmac, change("if strings.ContainsAny(verified.Delivery, v.separators) {", "if len(v.separators) > 1<<20 {"),
			web("TestAnIDCannotReachIntoTheBody")},
		{"webhook-id-parted-on-one-side", "I3", hmac, change("return idGoesOn.MatchString(before) || idBegan.MatchString(after)", "return idGoesOn.MatchString(before + after)"),
			web("TestTwoRequestsAreNeverSignedAlike")},
		{"webhook-time-of-any-length", "I3", verify, change(" || len(text) != timeDigits {", " {"), web("TestATimeHasItsLength")},
		{"webhook-known-by-an-unsigned-id", "I3", hmac, change("if !v.signsID && !v.config.TrustUnsignedID {", "if !v.signsID && v.config.IDHeader == \"\" {"), web(replay)},
		{"webhook-without-an-id-is-always-new", "I3", hmac, change("verified.Delivery = what.delivery()", "_ = what.delivery()"), web(replay)},
		{"webhook-read-by-its-content-type", "I3", "webhook/slack.go", change("if !json.Valid(r.Body) {", `if r.Header.Get("Content-Type") == "application/x-www-form-urlencoded" {`),
			web("TestSlackIsReadByWhatIsSigned")},
		{"webhook-type-of-a-stranger", "I2", "webhook/bodytype.go", change("verified.Type = typeOf(r.Body, fields)", "if typ := typeOf(r.Body, fields); typ == \"\" {\n\t\t\t\tverified.Type = typ\n\t\t\t}"),
			web("TestTypeFromBody")},
		{"webhook-bodies-without-a-bound", "I15", "webhook/intake.go", change("for in.room < bytes {", "for in.room < -1<<40 {"), web("TestWhereNobodyCanBeCutOffTheNextIsRefused")},
		{"webhook-newest-body-makes-room", "I15", "webhook/intake.go", change("oldest := in.reading.Front()", "oldest := in.reading.Back()"), web("TestWhoHasBeenTheLongestMakesRoom")},
		{"webhook-room-is-not-given-back", "I13", "webhook/intake.go", change("h.in.room += h.bytes", "h.in.room += h.bytes / 2"), web("TestWhereNobodyCanBeCutOffTheNextIsRefused")},
		{"target-in-an-address-of-ipv6", "I16", "eventqueue/httptarget/guard.go", change("if !address.Is6() ||", "if address.Is6() ||"), target("TestWhereTargetsMayBe")},
		{"target-behind-a-translator-of-ones-own", "I16", "eventqueue/httptarget/guard.go", change("!ownNAT64.Contains(address) ||", "true ||"), target("TestWhereTargetsMayBe")},
		{"target-at-the-metadata-server", "I16", "eventqueue/httptarget/client.go", change("Control: settings.control}", "Control: nil}"), target("TestAForbiddenTargetFailsForGood")},
		{"mistakes-without-an-end", "I15", "eventqueue/httptarget/problem.go", change("ps.more += beyond\n", "ps.more += beyond\n\t\tbeyond = 0\n\t}\n\tif beyond := 0; beyond > 0 {\n"), target("TestManyMistakesAreCounted")},
		{"webhook-comes-twice", "I3", handler, change(`decides := i >= 0 && r.Delivery != ""`, `decides := i > len(events) && r.Delivery != ""`), web(once)},
		{"webhook-repeats-all-but-the-first", "I3", handler, change("if first = emitted[0]; !first.New {", "if first = emitted[0]; first.ID == 0 {"), web(once)},
		{"webhook-goes-where-the-caster-leads", "I16", handler, change("events[i].Canvas = r.Canvas\n",
			"if events[i].Canvas == (eventqueue.CanvasID{}) {\n\t\t\tevents[i].Canvas = r.Canvas\n\t\t}\n"), web(once)},
		{"webhook-is-acknowledged-unwritten", "I1", handler, change("return \"\", refuse(http.StatusServiceUnavailable, err)\n\t}\n\tlog.Debug", "return Accepted, nil\n\t}\n\tlog.Debug"),
			web("TestNothingIsAcknowledgedThatIsNotCommitted")},
	}
}
