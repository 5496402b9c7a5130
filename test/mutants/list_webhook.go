package main

// webhookMutants are about what webhooks are verified for, and taken in once.
func webhookMutants() []mutant {
	const handler, verify, hmac = "webhook/handler.go", "webhook/verify.go", "webhook/hmac.go"
	const forged, once = "TestForgeriesAreRefused", "TestTheSameDeliveryAddsNothing"
	return []mutant{
		{"webhook-of-anybody", "I2", verify, change("if !found {", "if !found && len(signatures) == 0 {"), web(forged)},
		{"webhook-from-long-ago", "I3", verify, change("case seconds < now-most:", "case seconds < now-most-1:"), web(forged)},
		{"webhook-with-two-signatures", "I2", verify, change("case len(values) > 1:", "case len(values) > 2:"), web(forged)},
		{"webhook-with-an-empty-secret", "I2", verify, change(`if strings.TrimSpace(secret) == "" {`, `if strings.TrimSpace(secret) == "none" {`),
			web("TestSchemesThatProtectNothingAreRefusedAtTheStart")},
		{"webhook-id-reaches-into-the-body", "I3", hmac, change("if strings.ContainsAny(verified.Delivery, v.separators) {", "if len(v.separators) > 1<<20 {"),
			web("TestAnIDCannotReachIntoTheBody")},
		{"webhook-comes-twice", "I3", handler, change(`decides := i >= 0 && r.Delivery != ""`, `decides := i > len(events) && r.Delivery != ""`), web(once)},
		{"webhook-repeats-all-but-the-first", "I3", handler, change("if first = emitted[0]; !first.New {", "if first = emitted[0]; first.ID == 0 {"), web(once)},
		{"webhook-goes-where-the-caster-says", "I16", handler, change("events[i].Canvas = r.Canvas\n",
			"if events[i].Canvas == (eventqueue.CanvasID{}) {\n\t\t\tevents[i].Canvas = r.Canvas\n\t\t}\n"), web(once)},
		{"webhook-is-acknowledged-unwritten", "I1", handler, change("return refuse(http.StatusServiceUnavailable, err)\n\t}\n\tlog.Debug", "return nil\n\t}\n\tlog.Debug"),
			web("TestNothingIsAcknowledgedThatIsNotCommitted")},
	}
}
