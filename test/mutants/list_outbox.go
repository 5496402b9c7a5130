package main

// outboxMutants are about the functions that emit from SQL and from triggers.
func outboxMutants() []mutant {
	return []mutant{
		{"sql-emit-takes-any-attributes", "I8", baseline, change("coalesce(mistake, events_mistake_in_origin(attributes, parent_id))", "coalesce(mistake, NULL)"), outbox("TestRefusals")},
		{"sql-emit-by-the-setting-only", "I8", baseline, change("setting::jsonb || coalesce(attributes, '{}')", "coalesce(attributes, '{}') || setting::jsonb"), outbox("TestAttributesBySQL")},
		{"sql-emit-takes-any-key-of-an-attribute", "I8", baseline, change("'^[a-z0-9_.-]{1,64}$'", "'^[^[:upper:]]*$'"), outbox("TestSQLAcceptsTheAttributesThatGoAccepts")},
		{"sql-emit-wakes-nobody", "I13", baseline, change("events_v2_channel('events_v2_pending')", "events_v2_channel('events_v2_nobody')"), outbox("TestOneNoticePerTransaction")},
		{"sql-emit-takes-half-a-pair", "I8", baseline, change(`IF strpos(value, '\u') > 0 THEN`, "IF false THEN"), outbox("TestRefusals")},
		{"sql-emit-forgets-the-delay", "I6", baseline, change("value, greatest(coalesce(delay_until, at + delay), at), at);", "value, at, at);"), outbox("TestTheIDIsReturned")},
		{"sql-emit-goes-by-the-callers-tables", "I1", baseline, change("SET search_path = pg_catalog, %s, pg_temp", "SET search_path = pg_temp, pg_catalog, %s"), outbox("TestAnyCallerFindsTheQueue")},
		{"trigger-sends-the-old-row", "I8", baseline, change("CASE TG_OP WHEN 'DELETE' THEN row_to_json(OLD) ELSE row_to_json(NEW) END;",
			"CASE TG_OP WHEN 'INSERT' THEN row_to_json(NEW) ELSE row_to_json(OLD) END;"), outbox("TestEveryWayToWriteARow")},
		{"trigger-feeds-the-queue-with-itself", "I12", baseline, change("ELSIF \"table\" = ANY (", "ELSIF false AND \"table\" = ANY ("), outbox("TestTheQueueDoesNotFeedItself")},
	}
}
