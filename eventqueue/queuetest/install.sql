DO $$
DECLARE
    one record;
BEGIN
    FOR one IN
        SELECT oid::regclass AS name, pg_get_userbyid(relowner) AS owner FROM pg_class
        WHERE relname = 'events_v2' AND NOT pg_has_role(relowner, 'USAGE')
    LOOP
        RAISE EXCEPTION '% belongs to role %: connect as that role', one.name, one.owner;
    END LOOP;
END
$$;

-- The time that the test has set, in microseconds: unlike a row, a sequence is read without a snapshot and set without a lock.
CREATE SCHEMA queuetest;
CREATE SEQUENCE queuetest.clock MINVALUE 0;
CREATE FUNCTION queuetest.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS $$
    SELECT timestamptz 'epoch' + (SELECT last_value FROM queuetest.clock) * interval '1 microsecond'
$$;
-- Only the owner of the database has to write there.
GRANT USAGE ON SCHEMA queuetest TO public;
GRANT SELECT ON SEQUENCE queuetest.clock TO public;

-- An object may be changed that belongs to the role, and to no extension.
CREATE FUNCTION queuetest.own(class regclass, object oid, owner oid) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT pg_has_role(owner, 'USAGE')
        AND NOT EXISTS (SELECT FROM pg_depend WHERE classid = class AND objid = object AND deptype = 'e')
$$;

DO $$
DECLARE
    one record;
BEGIN
    FOR one IN
        SELECT d.adrelid::regclass AS in_table, a.attname AS name, regexp_replace(pg_get_expr(d.adbin, d.adrelid),
            '\m(now|clock_timestamp)\(\)', 'queuetest.clock_timestamp()', 'g') AS expression,
            a.atttypid = 'timestamp'::regtype AS no_zone
        FROM pg_attrdef d JOIN pg_attribute a ON a.attrelid = d.adrelid AND a.attnum = d.adnum
            JOIN pg_class c ON c.oid = d.adrelid
        WHERE pg_get_expr(d.adbin, d.adrelid) ~ '\m(now|clock_timestamp)\(\)'
            AND queuetest.own('pg_class', c.oid, c.relowner)
    LOOP
        EXECUTE format('ALTER TABLE %s ALTER %I SET DEFAULT %s', one.in_table, one.name,
            CASE WHEN one.no_zone THEN format('(%s) AT TIME ZONE ''UTC''', one.expression) ELSE one.expression END);
    END LOOP;
    -- Functions and procedures that have a search path of their own, which may be empty.
    FOR one IN
        SELECT p.oid::regprocedure AS name, nullif(substr(setting, length('search_path=') + 1), '""') AS path
        FROM pg_proc p, unnest(p.proconfig) AS setting
        WHERE setting LIKE 'search_path=%' AND p.pronamespace <> 'pg_catalog'::regnamespace
            AND queuetest.own('pg_proc', p.oid, p.proowner)
    LOOP
        EXECUTE format('ALTER ROUTINE %s SET search_path = %s', one.name,
            concat_ws(', ', 'queuetest, pg_catalog', one.path));
    END LOOP;
END
$$;
