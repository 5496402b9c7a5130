-- Arguments of triggers: send_to_outbox refuses each argument with = that is no known name, stands in the place of the module, is given
-- twice or has a value that is no interval, and names it.
-- Locks: nothing.

-- +goose Up
-- +goose StatementBegin
DO $do$
DECLARE
    script text := pg_get_functiondef('send_to_outbox'::regproc);
    change text[];
BEGIN
    FOREACH change SLICE 1 IN ARRAY ARRAY[
            [$from$    unknown  text := CASE WHEN TG_NARGS > 2 THEN (SELECT a FROM unnest(placed[3:]) AS a WHERE a ~* '^\s*[a-z_]+\s*=' LIMIT 1) END;
$from$,
             $to$    -- An argument with = is a name with its value, and no module or modifier.
    wrong    text := CASE
        WHEN strpos(TG_ARGV[1], '=') > 0 THEN format('the argument %s in the place of the module', to_json(TG_ARGV[1]))
        WHEN TG_NARGS > 2 THEN coalesce(
            (SELECT format('the argument %s, and the function knows no such name', to_json(a)) FROM unnest(placed[3:]) AS a WHERE strpos(a, '=') > 0 LIMIT 1),
            (SELECT format('the argument %s more than once', split_part(a, '=', 1)) FROM unnest(TG_ARGV) WITH ORDINALITY AS given (a, place)
             WHERE place > 2 AND a ~ named GROUP BY split_part(a, '=', 1) HAVING count(*) > 1 LIMIT 1))
        END;
$to$],
            [$from$    ELSIF unknown IS NOT NULL THEN
        RAISE EXCEPTION '%: trigger % has the argument %, and the function knows no such name', source, TG_NAME, to_json(unknown)
            USING ERRCODE = 'trigger_protocol_violated', HINT = 'It knows ordering_key=column, unique_key=column, unique_for, unique_mode, max_wait and delay, '
                'each with = and its value, without spaces before it.';
$from$,
             $to$    ELSIF wrong IS NOT NULL THEN
        RAISE EXCEPTION '%: trigger % has %', source, TG_NAME, wrong
            USING ERRCODE = 'trigger_protocol_violated', HINT = 'After canvas and module it knows ordering_key=column, unique_key=column, unique_for, unique_mode, max_wait '
                'and delay, each once, with = and its value, without spaces before it.';
$to$],
            [$from$    IF options IS NOT NULL THEN
        "order" := $from$,
             $to$    IF options IS NOT NULL THEN
        FOREACH wrong IN ARRAY ARRAY['delay', 'unique_for', 'max_wait'] LOOP
            CONTINUE WHEN NOT options ? wrong;
            BEGIN
                PERFORM (options ->> wrong)::interval;
            EXCEPTION WHEN invalid_datetime_format OR datetime_field_overflow OR interval_field_overflow THEN
                RAISE EXCEPTION '%: trigger % has the argument %, which is no interval', source, TG_NAME, to_json(wrong || '=' || (options ->> wrong))
                    USING ERRCODE = 'trigger_protocol_violated', HINT = format('Write it as Postgres does, such as %s=1 minute.', wrong);
            END;
        END LOOP;
        "order" := $to$]]
    LOOP
        IF strpos(script, change[1]) = 0 THEN
            RAISE EXCEPTION 'send_to_outbox is not as this migration expects it: it lacks %', change[1];
        END IF;
        script := replace(script, change[1], change[2]);
    END LOOP;
    EXECUTE script;
END
$do$;
-- +goose StatementEnd

-- +goose Down
-- +goose StatementBegin
DO $do$
DECLARE
    script text := pg_get_functiondef('send_to_outbox'::regproc);
    change text[];
BEGIN
    FOREACH change SLICE 1 IN ARRAY ARRAY[
            [$from$    -- An argument with = is a name with its value, and no module or modifier.
    wrong    text := CASE
        WHEN strpos(TG_ARGV[1], '=') > 0 THEN format('the argument %s in the place of the module', to_json(TG_ARGV[1]))
        WHEN TG_NARGS > 2 THEN coalesce(
            (SELECT format('the argument %s, and the function knows no such name', to_json(a)) FROM unnest(placed[3:]) AS a WHERE strpos(a, '=') > 0 LIMIT 1),
            (SELECT format('the argument %s more than once', split_part(a, '=', 1)) FROM unnest(TG_ARGV) WITH ORDINALITY AS given (a, place)
             WHERE place > 2 AND a ~ named GROUP BY split_part(a, '=', 1) HAVING count(*) > 1 LIMIT 1))
        END;
$from$,
             $to$    unknown  text := CASE WHEN TG_NARGS > 2 THEN (SELECT a FROM unnest(placed[3:]) AS a WHERE a ~* '^\s*[a-z_]+\s*=' LIMIT 1) END;
$to$],
            [$from$    ELSIF wrong IS NOT NULL THEN
        RAISE EXCEPTION '%: trigger % has %', source, TG_NAME, wrong
            USING ERRCODE = 'trigger_protocol_violated', HINT = 'After canvas and module it knows ordering_key=column, unique_key=column, unique_for, unique_mode, max_wait '
                'and delay, each once, with = and its value, without spaces before it.';
$from$,
             $to$    ELSIF unknown IS NOT NULL THEN
        RAISE EXCEPTION '%: trigger % has the argument %, and the function knows no such name', source, TG_NAME, to_json(unknown)
            USING ERRCODE = 'trigger_protocol_violated', HINT = 'It knows ordering_key=column, unique_key=column, unique_for, unique_mode, max_wait and delay, '
                'each with = and its value, without spaces before it.';
$to$],
            [$from$    IF options IS NOT NULL THEN
        FOREACH wrong IN ARRAY ARRAY['delay', 'unique_for', 'max_wait'] LOOP
            CONTINUE WHEN NOT options ? wrong;
            BEGIN
                PERFORM (options ->> wrong)::interval;
            EXCEPTION WHEN invalid_datetime_format OR datetime_field_overflow OR interval_field_overflow THEN
                RAISE EXCEPTION '%: trigger % has the argument %, which is no interval', source, TG_NAME, to_json(wrong || '=' || (options ->> wrong))
                    USING ERRCODE = 'trigger_protocol_violated', HINT = format('Write it as Postgres does, such as %s=1 minute.', wrong);
            END;
        END LOOP;
        "order" := $from$,
             $to$    IF options IS NOT NULL THEN
        "order" := $to$]]
    LOOP
        IF strpos(script, change[1]) = 0 THEN
            RAISE EXCEPTION 'send_to_outbox is not as this migration expects it: it lacks %', change[1];
        END IF;
        script := replace(script, change[1], change[2]);
    END LOOP;
    EXECUTE script;
END
$do$;
-- +goose StatementEnd
