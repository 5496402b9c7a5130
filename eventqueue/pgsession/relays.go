package pgsession

// What shows that a relay runs is an advisory lock, which ends with the connection that
// holds it: of this class, and of the relay's table. No statement waits for it, and
// nothing but a warning depends on it.
const (
	// ShowRelaySQL takes the lock.
	ShowRelaySQL = `SELECT pg_try_advisory_lock_shared(` + relayLockClass + `, to_regclass('events_v2')::oid::int)`

	// RelayRunsSQL holds if a relay is connected to the database.
	RelayRunsSQL = `EXISTS (
    SELECT FROM pg_locks
    WHERE locktype = 'advisory' AND classid = ` + relayLockClass + ` AND objid = to_regclass('events_v2')::oid
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))`

	relayLockClass = "1163284562"
)
