-- Roles of the event queue, for one database: run it as the owner of the schema who may
-- also create roles, after each eventctl migrate up.
-- It may run any number of times, and revokes earlier rights of the roles first. The roles
-- cannot log in: GRANT queue_worker TO the user that cmd/worker logs in as, and so on.
BEGIN;

SET LOCAL search_path = public;

DO $$
DECLARE
    role   text;
    "table" text;
    schema text := (SELECT relnamespace::regnamespace::text FROM pg_class WHERE oid = 'events_v2'::regclass);
    f      regprocedure;
BEGIN
    FOREACH role IN ARRAY ARRAY['queue_emitter', 'queue_sql_emitter', 'queue_worker', 'queue_cron', 'queue_operator', 'queue_reader'] LOOP
        IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = role) THEN
            EXECUTE format('CREATE ROLE %I NOLOGIN', role);
        END IF;
        EXECUTE format('GRANT USAGE ON SCHEMA %s TO %I', schema, role);
        FOREACH "table" IN ARRAY events_v2_tables() LOOP
            EXECUTE format('REVOKE ALL ON %s.%I FROM %I', schema, "table", role);
        END LOOP;
        EXECUTE format('GRANT SELECT ON %s.eventsv2_schema_version TO %I', schema, role);
    END LOOP;
    -- Of the functions, those that change something are not everybody's. Trigger
    -- functions run for whoever writes the table.
    FOR f IN SELECT p.oid FROM pg_proc p WHERE p.pronamespace = schema::regnamespace
        AND (p.proname LIKE 'events\_%' OR p.proname IN ('send_to_outbox', 'rate_limit_changed'))
    LOOP
        EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', f);
        -- Whoever ends no event may not say that one ends, and take its unique key.
        FOREACH role IN ARRAY ARRAY['queue_worker', 'queue_cron', 'queue_operator'] LOOP
            CONTINUE WHEN role = 'queue_cron' AND f::text ~ 'events_v2_emit_ending';
            EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %I', f, role);
        END LOOP;
        IF f::text ~ 'events_(emit|prioritize|mistake|depth|key_of_row)|send_to_outbox|events_v2_(tables|channel|notify|emit_keyed)' THEN
            EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO queue_sql_emitter', f);
        END IF;
        IF f::text ~ 'events_(v2_emit_keyed|v2_lock_keys|prioritize)' THEN
            EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO queue_emitter', f);
        END IF;
        IF f::text ~ 'events_v2_(group_key|needs_read_committed|max_running|channel|notify|queue_id|runnable|room|rate_room)' THEN
            EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO queue_emitter, queue_reader', f);
        END IF;
    END LOOP;
    -- A reader sees all tables but those of access, values of events as well.
    FOREACH "table" IN ARRAY array_remove(array_remove(array_remove(events_v2_tables(), 'access_tokens'), 'ended_sessions'), 'audit_log') LOOP
        EXECUTE format('GRANT SELECT ON %s.%I TO queue_reader, queue_operator', schema, "table");
    END LOOP;
END
$$;

-- Emitting from SQL: events_emit, the trigger send_to_outbox, and INSERT with the
-- documented columns. It reads nothing, and what it inserts is a new event.
GRANT INSERT (id, canvas_id, module, name, modifier, value, delay_until, enqueued_at, attributes, parent_id) ON events_v2 TO queue_sql_emitter;
GRANT USAGE ON SEQUENCE events_id_seq TO queue_sql_emitter;

-- Emitting with the library. UPDATE of notified_at is for notifications that could not
-- be published. It reads no value; it sets no lock and no count, and admits no event to a group.
GRANT INSERT (id, canvas_id, module, name, modifier, value, delay_until, enqueued_at, notified_at, unique_seconds, group_state, ordering_key, attributes, parent_id, by_sql, priority)
    ON events_v2 TO queue_emitter;
GRANT SELECT (id, canvas_id, module, name, locked_at, notified_at, delay_until, group_state, ordering_key, priority), UPDATE (notified_at) ON events_v2 TO queue_emitter;
GRANT USAGE ON SEQUENCE events_id_seq TO queue_emitter;
-- Programs of the version before write the tables of keys themselves; now events_v2_emit_keyed does.
GRANT SELECT, INSERT (canvas_id, key), UPDATE (event_id) ON unique_keys TO queue_emitter;
GRANT SELECT (event_id, expires_at), DELETE ON unique_expiries TO queue_emitter;
GRANT INSERT (event_id, stage, canvas_id, group_key) ON event_groups TO queue_emitter;
-- What programs count, each minute in which there is something to count.
GRANT SELECT, INSERT, UPDATE ON event_minutes TO queue_emitter, queue_worker, queue_cron;
-- What programs that serve webhooks count.
GRANT SELECT, INSERT, UPDATE ON webhook_minutes, webhook_sources TO queue_worker, queue_cron;
-- For NOTIFIER=postgres. Whether there is any notification is all that it may read.
GRANT INSERT (event_id, canvas_id, traceparent), SELECT (event_id) ON events_v2_notifications TO queue_emitter, queue_cron;

-- cmd/worker, and programs that run handlers: it emits as well, and ends events. It
-- changes no rule, no limit and no cron definition.
GRANT SELECT, INSERT, UPDATE, DELETE ON events_v2, event_attempts, event_groups, unique_expiries, events_v2_notifications, cleanups, grid_outputs TO queue_worker;
GRANT SELECT, INSERT ON unique_heirs TO queue_worker;
GRANT SELECT, INSERT, UPDATE ON event_log, unique_keys, event_group_locks, event_workers TO queue_worker;
GRANT SELECT ON scheduling_rules, concurrency_limits, rate_limits TO queue_worker;
GRANT SELECT, UPDATE ON rate_counters, claim_barrier TO queue_worker;
-- Whoever starts first sets the lock timeout that all others then use.
GRANT INSERT ON events_v2_settings TO queue_worker, queue_cron;
GRANT UPDATE (foreign_at) ON events_v2_settings TO queue_worker, queue_cron;
GRANT USAGE ON SEQUENCE events_id_seq TO queue_worker;

-- cmd/cron: the relay, schedules, old history. UPDATE of created_at is what locking a
-- definition needs.
GRANT SELECT, INSERT, UPDATE ON events_v2, unique_keys, event_group_locks TO queue_cron;
GRANT DELETE ON unique_keys TO queue_cron;
GRANT SELECT, DELETE ON unique_heirs TO queue_cron;
GRANT SELECT, INSERT, UPDATE, DELETE ON event_groups, unique_expiries TO queue_cron;
GRANT SELECT, UPDATE, DELETE ON event_log, event_attempts, event_workers TO queue_cron;
GRANT DELETE ON event_minutes, webhook_minutes, webhook_sources TO queue_cron;
GRANT SELECT, INSERT, UPDATE, DELETE ON event_hours TO queue_cron;
GRANT SELECT, INSERT, UPDATE, DELETE ON event_minute_totals, event_hour_totals TO queue_cron;
GRANT SELECT, UPDATE, DELETE ON event_emits TO queue_cron;
GRANT SELECT ON scheduling_rules, concurrency_limits, rate_limits, rate_counters, cleanups, cron_definitions TO queue_cron;
-- Rules that end at a time, or are lifted at a rate.
GRANT DELETE, UPDATE (released_to, released_at) ON scheduling_rules TO queue_cron;
GRANT UPDATE (created_at) ON cron_definitions TO queue_cron;
GRANT SELECT, INSERT, DELETE ON cron_records TO queue_cron;
GRANT SELECT, DELETE ON grid_outputs TO queue_cron;
GRANT USAGE ON SEQUENCE events_id_seq TO queue_cron;

-- Rules that end at a time are in the audit log, whose old rows cron deletes.
GRANT SELECT, INSERT, DELETE ON audit_log TO queue_cron;
GRANT SELECT, DELETE ON bulk_operations TO queue_cron;

-- eventctl, the HTTP API and the dashboard, but for migrate: all that is written of the queue, and no part of its schema.
GRANT INSERT, UPDATE, DELETE ON events_v2, event_log, event_attempts, event_workers, event_groups, scheduling_rules, concurrency_limits, rate_limits, rate_counters,
    cron_definitions, cron_records, unique_keys, unique_expiries, unique_heirs, events_v2_notifications, cleanups, grid_outputs, events_v2_settings,
    event_minutes, event_hours, event_minute_totals, event_hour_totals, event_emits, webhook_minutes, webhook_sources, canvas_names TO queue_operator;
GRANT SELECT, INSERT, UPDATE ON access_tokens TO queue_operator;
GRANT SELECT, INSERT, DELETE ON ended_sessions TO queue_operator;
GRANT SELECT, INSERT ON audit_log TO queue_operator;
GRANT INSERT, UPDATE ON bulk_operations TO queue_operator;
GRANT INSERT, UPDATE ON event_group_locks TO queue_operator;
GRANT UPDATE ON claim_barrier TO queue_operator;
GRANT USAGE ON SEQUENCE events_id_seq, scheduling_rules_id_seq TO queue_operator;

COMMIT;
