package main

// sessionMutants are about connections, and what is set on them.
func sessionMutants() []mutant {
	const session, url, readonly = "eventqueue/pgsession/session.go", "eventqueue/pgsession/url.go", "eventqueue/pgsession/readonly.go"
	return []mutant{
		{"a-time-at-infinity-fails-its-page", "I15", "eventqueue/pgsession/times.go", change("clamped := min(max(at, firstTime), lastTime)", "clamped := at"), sessions("TestTimesThatGoLacksAreClamped")},
		{"transaction-at-the-default-level", "I7", "eventqueue/pgstore/lockwait.go",
			change("append(before, pgsession.LevelSQL, planSQL)", "append(before, planSQL)"), []judge{{"./test/model", []string{"TestModelEqualsSQL"}}}},
		{"a-password-is-read-once", "I12", "eventqueue/pgsession/access.go", change("		c.Password, err = a.password()\n		return err\n", "		return err\n"), sessions("TestAPasswordFile")},
		{"who-listens-has-an-old-password", "I12", "eventqueue/pgsession/access.go", change("	if config.BeforeConnect != nil {\n		if err := config.BeforeConnect(ctx, c); err != nil {", "	if config.BeforeConnect != nil {\n		if err := ctx.Err(); err != nil {"),
			sessions("TestAPasswordFile")},
		{"a-password-with-its-line-break", "I16", "eventqueue/pgsession/access.go", change("strings.Cut(string(text), \"\\n\")", "strings.Cut(string(text), \"\\n\\n\")"), sessions("TestAPasswordFile")},
		{"a-dialer-is-encrypted-twice", "I12", "eventqueue/pgsession/access.go", change("c.TLSConfig, c.Fallbacks, c.SSLNegotiation = nil, nil, \"\"", "c.SSLNegotiation = \"\""), sessions("TestADialer")},
		{"cloudsql-without-its-dialer", "I12", "service/config.go", change("refuse(c.cloudSQL != \"\" && c.Access.Dial == nil", "refuse(c.cloudSQL != \"\" && c.Access.Dial != nil && c.DatabaseURL == \"\""),
			[]judge{{"./service", []string{"TestCloudSQLNeedsADialer"}}}},
		{"settings-as-startup-parameters", "I12", session, change("delete(config.RuntimeParams, name)", "_ = name"),
			sessions("TestSettingsBehindAPoolerOfSessions")},
		{"settings-are-not-set", "I12", session, change("set_config(name, value, false), pg_backend_pid()", "current_setting(name, true), pg_backend_pid()"),
			sessions("TestSettingsBehindAPoolerOfSessions")},
		{"pooler-is-not-checked-for", "I3", "eventqueue/pgsession/pooler.go", change("if process == strconv.FormatUint(uint64(conn.PID()), 10) {", "if true || process == strconv.FormatUint(uint64(conn.PID()), 10) {"),
			sessions("TestPoolersOfTransactionsAreRefused")},
		{"pool-is-not-checked", "I3", "eventqueue/pgsession/pool.go", change("if err := p.fit(ctx, conn.Conn()); err != nil {", "if err := error(nil); err != nil {"),
			sessions("TestPoolersOfTransactionsAreRefused")},
		{"read-only-connection-is-kept", "I19", readonly, change("if ledAstray(err) {\n\t\tcloseConn(conn)", "if ledAstray(err) {\n\t\t_ = conn"), sessions("TestConnectionsThatLeadAstrayAreClosed")},
		{"read-only-connection-is-used", "I19", "eventqueue/pgsession/pool.go", change("onlyReads(conn.Conn())\n", "false\n"), serving("TestOwnPoolRecoversFromFailover")},
		{"callers-read-only-connection-is-kept", "I19", readonly, change("if ledAstray(err) { // one", "if false { // one"), sessions("TestConnectionsThatLeadAstrayAreClosed")},
		{"error-shows-the-url", "I16", url, change("return nil, unreadable(text, isURL, err) // without err, which may quote the text", "return nil, err"),
			sessions("TestNoErrorShowsThePassword")},
		{"wrong-password-is-waited-for", "I17", "eventqueue/pgsession/reach.go", change("lasting = true", "_ = lasting"), sessions("TestWhatIsUnreachable")},
		{"database-that-starts-is-refused", "I17", "eventqueue/pgsession/reach.go", change(`case "08", "53", "57", "58":`, `case "08", "53", "58":`), sessions("TestWhatIsUnreachable")},
		{"worker-does-not-wait-for-postgres", "I17", "eventqueue/worker/begin.go", change("case unmendable(err):", "default:"), working("TestAWorkerWaitsForItsDatabase")},
		{"unfit-database-is-waited-for", "I17", "eventqueue/worker/begin.go", change("errors.As(err, &unfit)", "errors.As(err, &unfit) && false"), working("TestAWorkerWaitsForItsDatabase")},
		{"embedded-heartbeats-share-the-pool", "I3", "eventqueue/worker/standby.go", change("w.beats = reserve", "_ = reserve"),
			[]judge{{"./test/e2e", []string{"TestHandlersThatHoldThePoolLoseNoLock"}}}},
		{"failing-notifier-is-not-named", "I19", "eventqueue/fallback/health.go", change("return r.why", "return nil"),
			[]judge{{"./eventqueue/fallback", []string{"TestFailureIsWhyItIsDown"}}}},
		{"right-to-draw-ids-is-not-asked-for", "I17", "eventqueue/pgstore/fit.go", change(`		"events_id_seq":   {"USAGE"},`, ""), stored("TestTheEmitterHasTheRightsItIsCheckedFor")},
		{"publisher-is-asked-for-rights-to-pull", "I17", "eventqueue/pgnotify/check.go", change("if n.config.PublishOnly {", "if false {"),
			stored("TestWhoOnlyPublishesMayOnlyPublish")},
		{"late-claims-are-not-warned-of", "I17", "eventqueue/worker/lateclaims.go", change("c.late.inARow.Add(1) != lateClaimsWarned", "c.late.inARow.Add(1) >= 0"),
			working("TestADatabaseThatIsTooFarAwayIsWarnedOf")},
		{"nobody-sets-the-lock-timeout", "I17", "migrations/roles/roles.sql", change("GRANT INSERT ON events_v2_settings TO queue_worker, queue_cron;", ""),
			stored("TestWhatTheWorkerMay", "TestWhatCronMay")},
		{"last-pull-makes-the-topic-again", "I19", "pubsubnotify/receive.go", change("n.modify(ctx, p.deliveries, 0)", "n.Requeue(ctx, p.deliveries, 0)"),
			pubsub("TestTheLastPullKeepsItsTime")},
		{"published-without-a-subscription", "I19", "pubsubnotify/publish.go", change("if err := n.subscribed(ctx); err != nil {", "if err := error(nil); err != nil {"),
			pubsub("TestNothingIsPublishedToATopicWithoutItsSubscription")},
		{"publisher-has-to-create", "I19", "pubsubnotify/notifier.go", change("if status.Code(err) == codes.PermissionDenied { // then", "if false { // then"),
			pubsub("TestAPublisherThatMayNotCreatePublishes")},
		{"lacking-right-is-not-named", "I17", "eventqueue/pgstore/fit.go", change("case len(lacking) > 0:", "case false:"), []judge{{"./test/e2e", []string{"TestALackingRightIsNamedAtTheStart"}}}},
	}
}

// lockTimeoutMutants are about the one lock timeout of a database.
func lockTimeoutMutants() []mutant {
	const (
		own, store = "eventqueue/locktimeout/locktimeout.go", "eventqueue/pgstore/locktimeout.go"
		judged     = "TestLocksAreCheckedByTheDatabase"
		one        = "TestOneLockTimeoutForADatabase"
	)
	byDefault := func(name, file, before, after string) mutant {
		return mutant{name, "I4", file, change(before, after), stored(judged)}
	}
	return []mutant{
		byDefault("claim-judges-by-the-default", "eventqueue/pgstore/claim.go", "` + mayrun.ValidForSQL + ` AS valid_for", "interval '1 minute' AS valid_for"),
		byDefault("requeue-judges-by-the-default", "eventqueue/pgstore/requeue.go", `"clock.now - clock.valid_for"`, `"clock.now - interval '1 minute'"`),
		byDefault("counts-judge-by-the-default", "eventqueue/pgstore/backlog.go", "AS minute, now - ` + mayrun.ValidForSQL + ` AS valid", "AS minute, now - interval '1 minute' AS valid"),
		byDefault("oldest-due-is-judged-by-the-default", "eventqueue/pgstore/backlog.go", "SELECT now, now - ` + mayrun.ValidForSQL + ` AS valid", "SELECT now, now - interval '1 minute' AS valid"),
		byDefault("turns-judge-by-the-default", "eventqueue/pgstore/advance.go", "THEN ` + mayrun.ValidForSQL + ` END", "THEN interval '1 minute' END"),
		byDefault("lost-judges-by-the-default", "eventqueue/pgstore/pending.go", `mayrun.ValidSinceSQL("now")`, `"now - interval '1 minute'"`),
		byDefault("share-judges-by-the-default", "eventqueue/pgstore/runnable.go", `mayrun.ValidSinceSQL("now")`, `"now - interval '1 minute'"`),
		{"operator-is-shown-locks-by-the-default", "I4", "internal/mayrun/mayrun.go", change(`now+" - "+validFor`, `now+" - interval '1 minute'"`),
			[]judge{{"./eventqueue/pgstore", []string{"TestStatementsAgreeOnWhatMayRun"}}}},
		{"database-without-a-setting-has-no-lock-timeout", "I4", "internal/mayrun/mayrun.go", change("locktimeout.Default/time.Second", "locktimeout.Default/time.Hour"),
			[]judge{{"./eventqueue/inspect", []string{"TestShowFollowsAnEvent"}}}},
		{"claim-describes-locks-by-the-default", "I11", "eventqueue/pgstore/claim.go", change("r.lockedAt.Time.Add(*r.validFor)", "r.lockedAt.Time.Add(time.Minute)"), stored(judged)},
		{"lock-timeout-before-is-forgotten", "I4", "internal/mayrun/mayrun.go", change("SELECT greatest(s.lock_timeout, s.lock_timeout_before)", "SELECT s.lock_timeout"), stored(judged)},
		{"another-lock-timeout-is-no-error", "I4", own, change("case own != 0 && own != agreed:", "case false:"), stored(one)},
		{"last-lock-timeout-wins", "I4", store, change("(lock_timeout) VALUES ($1) ON CONFLICT DO NOTHING", "(lock_timeout) VALUES ($1) ON CONFLICT (singleton) DO UPDATE SET lock_timeout = excluded.lock_timeout"),
			stored("TestTwoProgramsSetTheLockTimeoutAtOnce")},
		{"relay-rests-by-the-default", "I13", "eventqueue/maintenance/locktimeout.go", change("r.lockTimeout.Store(int64(timeout))", "_ = timeout"), maintaining("TestARunningRelayHeedsAChange")},
		{"longer-lock-timeout-than-the-databases", "I4", store, change("return min(own, locktimeout.Default), nil", "return own, nil"), stored(one)},
		{"change-is-finalized-at-one-instant", "I4", store, change(" AND (SELECT locks FROM young) = 0", ""), stored("TestAChangeIsFinalizedBesideNoProgramOfTheOldTime")},
		{"change-is-finalized-under-a-lock", "I4", store, change("AND NOT EXISTS (SELECT FROM held) AND", "AND"), stored("TestAChangeIsFinalizedWhenNobodyNeedsTheOldTime")},
		{"lock-timeout-needs-the-right-to-write-it", "I13", store, change(`refused.Code == "42501"`, `refused.Code == "00000"`), stored(one)},
	}
}

// rightMutants are about what a role may do, and what belongs to the queue.
func rightMutants() []mutant {
	const (
		roles  = "migrations/roles/roles.sql"
		mayNot = "TestWhatRolesMayNot"
	)
	return []mutant{
		{"worker-may-write-rules", "I7", roles, change("GRANT SELECT ON scheduling_rules, concurrency_limits, rate_limits TO queue_worker;", "GRANT ALL ON scheduling_rules, concurrency_limits, rate_limits TO queue_worker;"),
			stored(mayNot)},
		{"emitter-may-read-values", "I16", roles, change("GRANT SELECT (id, canvas_id, module, name, locked_at, notified_at, delay_until, group_state, ordering_key), UPDATE (notified_at)", "GRANT SELECT, UPDATE (notified_at)"), stored(mayNot)},
		{"rights-on-one-column-pass-for-all", "I17", "eventqueue/pgstore/fit.go", change("WHEN columns IS NOT NULL THEN", "WHEN false THEN"), stored("TestTheEmitterHasTheRightsItIsCheckedFor")},
		{"sql-emitter-may-forge-claims", "I4", roles, change("GRANT INSERT (id, canvas_id, module, name, modifier, value, delay_until, enqueued_at, attributes, parent_id) ON", "GRANT INSERT ON"), stored(mayNot)},
		{"emitter-may-forge-claims", "I4", roles, change("GRANT INSERT (id, canvas_id, module, name, modifier, value, delay_until, enqueued_at, notified_at, unique_seconds, group_state, ordering_key, attributes, parent_id)\n    ON", "GRANT INSERT\n    ON"), stored(mayNot)},
		{"emitter-may-admit-events", "I4", roles, change("GRANT INSERT (event_id, stage, canvas_id, group_key) ON event_groups TO queue_emitter;", "GRANT INSERT ON event_groups TO queue_emitter;"), stored(mayNot)},
		{"roles-keep-what-they-had", "I16", roles, change("EXECUTE format('REVOKE ALL ON %s.%I FROM %I', schema, \"table\", role);", "PERFORM 1;"), stored("TestRolesLoseWhatTheyHad")},
		{"everybody-may-emit", "I16", roles, change("EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', f);", "PERFORM 1;"), stored(mayNot)},
		{"groups-are-not-locked", "I4", advancing, change("AS changed (canvas_id, group_key) ORDER BY number\n        ON CONFLICT (number) DO UPDATE SET number = held.number WHERE false;", "AS changed (canvas_id, group_key) ORDER BY number\n        ON CONFLICT (number) DO NOTHING;"), stored("TestAGroupIsLockedByItsRow")},
		{"group-locks-are-anybodys", "I13", advancing, change("        INSERT INTO event_group_locks AS held (number)", "        PERFORM pg_advisory_xact_lock(1); INSERT INTO event_group_locks AS held (number)"), stored("TestNobodyElseHoldsAGroup")},
		{"a-table-of-the-queue-is-unknown", "I12", "migrations/00007_access.sql", change("'event_minute_totals', 'ended_sessions'];", "'event_minute_totals'];"), stored("TestTheQueueKnowsItsTables")},
		{"outbox-takes-rows-of-the-queue", "I12", baseline, change("ELSIF \"table\" = ANY (events_v2_tables()) AND", "ELSIF \"table\" = 'events_v2' AND"), stored("TestTheQueueKnowsItsTables")},
	}
}
