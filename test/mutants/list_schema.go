package main

// baseline is the migration that makes the schema.
const baseline = "migrations/00001_events_v2.sql"

// advancing is the migration that has events_v2_advance.
const advancing = "migrations/00005_suspects.sql"

// schemaMutants let statements, functions and channels of a queue lead to another schema.
func schemaMutants() []mutant {
	const (
		qualify = "eventqueue/pgsession/qualify.go"
		schema  = "eventqueue/pgsession/schema.go"
		foreign = "migrations/foreign.go"
	)
	return []mutant{
		{"emit-in-a-transaction-follows-the-search-path", "I1", "eventqueue/pgstore/insert.go", change("	in = s.pool.In(in)\n", ""), sessions("TestTheSearchPathDoesNotMatter")},
		{"completion-in-a-transaction-follows-the-search-path", "I1", "eventqueue/pgstore/complete.go", change("	in = s.pool.In(in)\n", ""), stored("TestACompletionInATransactionIsInTheSchema")},
		{"batch-follows-the-search-path", "I1", "eventqueue/pgsession/pool.go", change("	qualifyBatch(batch, p.SQL)\n", ""), stored("TestSuiteInASchema")},
		{"sequence-in-a-literal-has-no-schema", "I1", qualify, change("case literal && isObject(", "case false && isObject("), sessions("TestStatementsGetTheirSchema")},
		{"name-behind-a-dot-gets-a-schema", "I1", qualify, change("afterDot = token == \".\"", "afterDot = afterDot && token == \".\""), sessions("TestStatementsGetTheirSchema")},
		{"name-in-a-comment-gets-a-schema", "I1", qualify, change(`case strings.HasPrefix(text, "--"):`, `case strings.HasPrefix(text, "---"):`), sessions("TestStatementsGetTheirSchema")},
		{"channel-of-all-schemas", "I13", schema, change(`	return s.Name() + "." + name`, "	return name"), migrating("TestChannelsAreThoseOfTheProgram")},
		{"schema-without-a-queue-is-taken", "I1", schema, change("if len(missing) == 0 {", "if len(missing) < 99 {"), sessions("TestASchemaWithoutAQueueIsNamed")},
		{"schema-of-postgres-is-taken", "I1", schema, change(`case strings.HasPrefix(name, "pg_"), name`, `case strings.HasPrefix(name, "pg__"), name`), sessions("TestSchemasThatNoQueueCanHave")},
		{"truncated-versions-are-foreign", "I17", "migrations/target.go", change("case list[0].version == 1:", "case list[0].version < 1:"), migrating("TestUpKnowsItsOwnTablesWithoutVersions")},
		{"function-follows-the-search-path", "I1", advancing, change("EXECUTE format('ALTER FUNCTION", "PERFORM format('ALTER FUNCTION"), stored("TestSuiteInASchema")},
		{"foreign-objects-are-not-refused", "I1", foreign, change("if len(objects) > 0 {", "if len(objects) > 99 {"), migrating("TestForeignObjectsAreRefusedBeforeAnythingIsWritten")},
		{"foreign-objects-of-an-upgrade-are-not-refused", "I1", "migrations/target.go", change("return list, refuseForeign(ctx, tx, schema, list[0].version)", "return list, nil"),
			migrating("TestForeignObjectsAreInTheWayOfAnUpgrade")},
		{"foreign-table-of-one-name-is-not-refused", "I1", "migrations/names.txt", change("1 + table event_groups\n", ""), migrating("TestTheNamesAreThoseOfADatabase")},
		{"foreign-names-of-the-next-version-are-ours", "I1", foreign, change("case c.version < version && c.brings:", "case c.version <= version && c.brings:"), migrating("TestNamesOfEachOriginAreRefused")},
		{"foreign-key-of-the-versions-is-not-refused", "I1", "migrations/target.go", change("refuseForeign(ctx, tx, schema, 0)", "refuseForeign(ctx, tx, schema, 1)"), migrating("TestNamesOfEachOriginAreRefused")},
		{"foreign-functions-with-other-arguments-are-not-refused", "I1", foreign, change("!ours[name] && taken[anyArguments(name)]", "!ours[name] && taken[name]"), migrating("TestNamesOfEachOriginAreRefused")},
		{"what-is-ours-is-in-the-way-of-an-upgrade", "I1", foreign, change("!ours[name] && taken[anyArguments(name)]", "taken[anyArguments(name)]"), migrating("TestNamesFromKnowsWhatEachVersionHas")},
		{"what-was-ours-is-ours-for-good", "I1", foreign, change("delete(ours, c.name)", "_ = ours"), migrating("TestNamesFromKnowsWhatEachVersionHas")},
		{"script-quotes-the-name-of-its-schema", "I1", "migrations/script.go", change("olderHead, versionTable, from-1", `olderHead, m.Schema.Identifier()+"."+versionTable, from-1`), migrating("TestAScriptForASchemaWithDollars")},
		{"migration-leaves-its-search-path", "I1", "migrations/apply.go", change("tx.Exec(ctx, `SELECT set_config('search_path', $1, true)`, path)", "tx.Exec(ctx, `SELECT $1::text`, path)"),
			migrating("TestASchemaOfItsOwn")},
		{"others-wait-behind-a-migration", "I13", "migrations/target.go", change(`pgsession.Settings{"lock_timeout": lockWait}`, "nil"), migrating("TestNobodyWaitsBehindAMigration")},
		{"migration-without-its-locks-is-given-up", "I13", "migrations/patience.go", change("(refused.Code == lockNotAvailable || refused.Code == deadlock)", "refused.Code == \"\""), migrating("TestAMigrationIsTriedUntilItHasItsLocks")},
		{"schema-that-lacks-what-is-needed-is-taken", "I1", "migrations/check.go", change("if know < oldest {", "if know < 0 {"), migrating("TestCheck")},
		{"script-is-for-any-version", "I1", "migrations/script.go", change("WHERE is_applied) <> %[2]d THEN", "WHERE is_applied) < %[2]d THEN"), migrating("TestAScriptIsForOneVersion")},
	}
}
