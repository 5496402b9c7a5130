package main

// outboxMutants are about the functions that emit from SQL and from triggers.
func outboxMutants() []mutant {
	const sql = "migrations/00007_outbox.sql"
	const origin, made = "migrations/00031_outbox_attributes.sql", "definition := replace(definition, change.column1, change.column2);"
	return []mutant{
		{"sql-emit-takes-any-attributes", "I8", origin, change(made, "definition := replace(definition, change.column1, replace(change.column2, 'events_mistake_in_origin(attributes, parent_id)', 'NULL'));"), outbox("TestRefusals")},
		{"sql-emit-by-the-setting-only", "I8", origin, change("setting::jsonb || coalesce(attributes, '{}')", "coalesce(attributes, '{}') || setting::jsonb"), outbox("TestAttributesBySQL")},
		{"sql-emit-takes-any-key-of-an-attribute", "I8", origin, change("'^[a-z0-9_.-]{1,64}$'", "'^[^[:upper:]]*$'"), outbox("TestSQLAcceptsTheAttributesThatGoAccepts")},
		{"the-new-emit-is-everybodys", "I16", origin, change("ORDER BY a.grantee = 0 -- PUBLIC last", "ORDER BY a.grantee = 0 LIMIT 0 -- PUBLIC last"), outbox("TestTheMigrationKeepsWhoMayEmit")},
		{"sql-emit-wakes-nobody", "I13", "migrations/00026_names.sql", change("new CONSTANT text := $$'events_v2_pending'$$;", "new CONSTANT text := $$'events_v2_nobody'$$;"), outbox("TestOneNoticePerTransaction")},
		{"sql-emit-takes-half-a-pair", "I8", sql, change(`IF strpos(value, '\u') > 0 THEN`, "IF false THEN"), outbox("TestRefusals")},
		{"sql-emit-forgets-the-delay", "I6", origin, change(made, "definition := replace(definition, change.column1, replace(change.column2, 'greatest(coalesce(delay_until, at + delay), at)', 'at'));"), outbox("TestTheIDIsReturned")},
		{"sql-emit-goes-by-the-callers-tables", "I1", sql, change("ALTER FUNCTION events_emit_from SET search_path = pg_catalog, %s, pg_temp",
			"ALTER FUNCTION events_emit_from SET search_path = pg_temp, pg_catalog, %s"), outbox("TestAnyCallerFindsTheQueue")},
		{"trigger-sends-the-old-row", "I8", sql, change("CASE TG_OP WHEN 'DELETE' THEN row_to_json(OLD) ELSE row_to_json(NEW) END;",
			"CASE TG_OP WHEN 'INSERT' THEN row_to_json(NEW) ELSE row_to_json(OLD) END;"), outbox("TestEveryWayToWriteARow")},
		{"trigger-feeds-the-queue-with-itself", "I12", sql, change("ELSIF TG_RELID = ANY (", "ELSIF false AND TG_RELID = ANY ("), outbox("TestTheQueueDoesNotFeedItself")},
	}
}
