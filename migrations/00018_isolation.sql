-- Statements that run in a transaction of the caller and need READ COMMITTED can refuse
-- another level.
-- Locks: none on existing tables (everything here is new).

-- +goose Up

-- A statement that sees only what was committed before its transaction began would see an
-- event that has ended since as the holder of its key.
-- +goose StatementBegin
CREATE FUNCTION events_v2_needs_read_committed(what text) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
        RAISE EXCEPTION '% needs a transaction at READ COMMITTED, and this one is at %', what, upper(current_setting('transaction_isolation'))
            USING ERRCODE = 'feature_not_supported',
                HINT = 'Begin it with BEGIN ISOLATION LEVEL READ COMMITTED (pgx.TxOptions, sql.TxOptions), whatever default_transaction_isolation is.';
    END IF;
    RETURN true;
END
$$;
-- +goose StatementEnd

-- +goose Down
DROP FUNCTION events_v2_needs_read_committed;
