package main

// accessMutants are about who may do what, and the audit log.
func accessMutants() []mutant {
	const tokens, who, issuer = "access/tokens.go", "access/identity.go", "access/issuer.go"
	const place, audited = "access/authenticator.go", "eventqueue/pgstore/audited.go"
	const operations, running, made = "eventqueue/operate/operations.go", "eventqueue/operate/operationsrun.go", "access/makers.go"
	return []mutant{
		{"an-expired-token-lets-in", "I16", tokens, change("revoked_at IS NULL AND (expires_at IS NULL OR expires_at > clock_timestamp())`", "revoked_at IS NULL`"), letting("TestTokensThatLetNobodyIn")},
		{"a-revoked-token-lets-in", "I16", tokens, change("= `revoked_at IS NULL AND (expires", "= `(expires"), letting("TestTokens")},
		{"a-token-is-created-twice-at-once", "I16", tokens, change("if _, err := tx.Exec(ctx, lockTokensSQL); err != nil {", "if err := ctx.Err(); err != nil {"), letting("TestATokenUnlessThereIsOne")},
		{"an-ended-token-exists", "I16", tokens, change("origin IS NULL AND ` + validSQL + `", "origin IS NULL"), letting("TestATokenUnlessThereIsOne")},
		{"a-token-is-for-every-canvas", "I16", who, change("slices.Contains(g.Verbs, verb) && (g.Canvases == nil || slices.Contains(g.Canvases, canvas))", "slices.Contains(g.Verbs, verb) && (g.Canvases == nil || canvas != eventqueue.CanvasID{})"), letting("TestTokens")},
		{"a-token-has-every-verb", "I16", who, change("slices.Contains(g.Verbs, verb) && (g.Canvases == nil || slices", "verb != \"\" && (g.Canvases == nil || slices"), letting("TestTokens")},
		{"an-email-that-is-claimed-counts", "I16", issuer, change(`m.Claim == "email" && !i.emailVerified(claims)`, `m.Claim == "" && !i.emailVerified(claims)`), letting("TestIssuers")},
		{"others-keep-out-who-was-let-in", "I15", "access/attempts.go", change("if a.accepted[sha256.Sum256([]byte(credentials))] {", "if false {"), letting("TestAttempts")},
		{"a-revoked-token-is-tried-without-end", "I12", "access/attempts.go", change("\tdelete(a.accepted, sha256.Sum256([]byte(credentials)))\n", ""), letting("TestAttempts")},
		{"the-machine-stays-open", "I16", place, change("	case configured:\n", "	case configured && !a.Loopback:\n"), letting("TestLoopback")},
		{"a-page-of-a-browser-gets-in", "I16", place, change("&& LoopbackHost(r.Host)", `&& r.Host != ""`), letting("TestLoopback")},
		{"a-change-without-its-row", "I11", audited, change("if bytes.Equal(before, after) {", "if bytes.Equal(before, after) || len(after) >= 0 {"), stored("TestAudit")},
		{"a-change-of-events-without-its-row", "I11", audited, change("if len(changed) == 0 {", "if len(changed) >= 0 {"), stored("TestAudit")},
		{"another-identity-confirms", "I16", operations, change("WHERE o.id = $1 AND o.identity = $2", "WHERE o.id = $1 AND $2::text <> ''"), controlling("TestWhoMayConfirm")},
		{"an-old-count-is-confirmed", "I16", operations, change("		if expired {", "		if expired && op.Counted < 0 {"), controlling("TestWhoMayConfirm")},
		{"a-change-of-many-reaches-later-events", "I16", running, change("t.filter(), t.after, t.last, pageSize", "t.filter(), t.after, 1<<62, pageSize"), controlling("TestEachVerb")},
		{"an-interrupted-piece-is-not-counted", "I14", running, change("if err != nil || !interrupted {", "if err != nil || t != nil {"), controlling("TestAnotherProgramGoesOn")},
		{"an-operation-is-taken-from-the-living", "I14", running, change("state = 'running' AND leased_until <= clock_timestamp()", "state = 'running' AND leased_until <= 'infinity'"), controlling("TestAnotherProgramGoesOn")},
		{"ages-grow-after-the-count", "I16", running, change("f.OlderThan += t.age", "f.OlderThan += 0 * t.age"), controlling("TestAgesCountFromTheCount")},
		{"a-token-makes-a-greater-one", "I16", made, change("case i.Exceeds(n.Grant):", "case i.Exceeds(n.Grant) && n.Name == \"\":"), overHTTP("TestTokensOverHTTP")},
		{"a-token-makes-one-that-outlives-it", "I16", made, change("case longest > 0 && n.For > longest:", "case longest < 0:"), letting("TestTokensEndNoLaterThanTheirMakers")},
		{"a-token-without-an-end-outlives-its-maker", "I16", made, change("	if n.For == 0 {", "	if n.For < 0 {"), letting("TestTokensEndNoLaterThanTheirMakers")},
		{"a-token-outlives-a-revocation", "I16", made, change("err == nil && len(ids) > 0; {", "err == nil && len(ids) > 1; {"), letting("TestTokensAreRevokedWithTheirMakers")},
		{"a-token-is-made-beside-a-revocation", "I16", made, change("	if _, err := tx.Exec(ctx, lockTokensSQL); err != nil {", "	if err := ctx.Err(); err != nil {"), letting("TestRevocationEndsTokensThatAreBeingMade")},
		{"a-proxy-is-taken-for-the-machine", "I16", place, change("	for header := range r.Header {", "	for header := range http.Header(nil) {"), letting("TestLoopback")},
		{"keys-that-cannot-be-fetched-refuse", "I17", "access/keys.go", change("		*noted = err\n", "		_ = noted\n"), letting("TestKeysThatCannotBeFetchedRefuseNobody")},
		{"refusals-are-lost-at-the-end", "I21", "access/recorder.go", change("context.WithTimeout(context.WithoutCancel(ctx), entriesTimeout)", "context.WithTimeout(ctx, entriesTimeout)"), letting("TestRecorderBoundsEntries")},
	}
}
