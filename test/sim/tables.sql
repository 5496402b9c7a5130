-- What the simulation adds to a database of the queue: a record of what commits, and rows that refuse to be written.
CREATE SCHEMA sim;

-- What has become of events, for the simulation to read and delete. It is no notification, since a commit with one
-- waits for those of other databases.
CREATE UNLOGGED TABLE sim.changes (n bigserial, id bigint NOT NULL, row events_v2); -- row is NULL of an event that is gone
CREATE FUNCTION sim.changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO sim.changes (id, row) VALUES (coalesce(NEW.id, OLD.id), CASE WHEN TG_OP <> 'DELETE' THEN NEW END);
    RETURN NULL;
END
$$;
CREATE TRIGGER sim_changed AFTER INSERT OR UPDATE OR DELETE ON events_v2 FOR EACH ROW EXECUTE FUNCTION sim.changed();

-- Which kind of statement is under way, as a bit; 0: one that no row refuses.
CREATE SEQUENCE sim.under_way MINVALUE 0;
CREATE TABLE sim.refusals (id bigint PRIMARY KEY, kinds bigint NOT NULL, code text NOT NULL);
CREATE FUNCTION sim.refuse() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    kind bigint := (SELECT last_value FROM sim.under_way);
    refused text;
BEGIN
    IF kind > 0 THEN
        RAISE NOTICE 'sim writes %', OLD.id;
        SELECT code INTO refused FROM sim.refusals WHERE id = OLD.id AND kinds & kind > 0;
        IF FOUND THEN
            RAISE EXCEPTION 'the simulated table refuses this row' USING ERRCODE = refused;
        END IF;
    END IF;
    RETURN CASE TG_OP WHEN 'DELETE' THEN OLD ELSE NEW END;
END
$$;

-- When a plan changes is the seed's to decide, not that of a process which looks now and then.
DO $$
DECLARE
    name text;
BEGIN
    FOR name IN SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace LOOP
        EXECUTE format('ALTER TABLE public.%I SET (autovacuum_enabled = off)', name);
    END LOOP;
END
$$;
