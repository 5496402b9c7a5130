-- The time that the test has set, in microseconds: unlike a row, a sequence is read without a snapshot and set without a lock.
CREATE SCHEMA queuetest;
CREATE SEQUENCE queuetest.clock MINVALUE 0;
CREATE FUNCTION queuetest.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS $$
    SELECT timestamptz 'epoch' + (SELECT last_value FROM queuetest.clock) * interval '1 microsecond'
$$;
-- Only the owner of the database has to write there.
GRANT USAGE ON SCHEMA queuetest TO public;
GRANT SELECT ON SEQUENCE queuetest.clock TO public;

DO $$
DECLARE
    one record;
BEGIN
    FOR one IN
        SELECT d.adrelid::regclass AS in_table, a.attname AS name, regexp_replace(pg_get_expr(d.adbin, d.adrelid),
            '\m(now|clock_timestamp)\(\)', 'queuetest.clock_timestamp()', 'g') AS expression,
            a.atttypid = 'timestamp'::regtype AS no_zone
        FROM pg_attrdef d JOIN pg_attribute a ON a.attrelid = d.adrelid AND a.attnum = d.adnum
        WHERE pg_get_expr(d.adbin, d.adrelid) ~ '\m(now|clock_timestamp)\(\)'
    LOOP
        EXECUTE format('ALTER TABLE %s ALTER %I SET DEFAULT %s', one.in_table, one.name,
            CASE WHEN one.no_zone THEN format('(%s) AT TIME ZONE ''UTC''', one.expression) ELSE one.expression END);
    END LOOP;
    -- Functions that have a search path of their own.
    FOR one IN
        SELECT p.oid::regprocedure AS name, substr(setting, length('search_path=') + 1) AS path
        FROM pg_proc p, unnest(p.proconfig) AS setting
        WHERE setting LIKE 'search_path=%' AND p.pronamespace <> 'pg_catalog'::regnamespace
    LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = queuetest, pg_catalog, %s', one.name, one.path);
    END LOOP;
END
$$;
