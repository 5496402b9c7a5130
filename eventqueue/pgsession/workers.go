package pgsession

// WorkerLockClass is the class of the advisory locks by which workers show that they live; the number
// of the lock is the worker number. No statement waits for one.
const WorkerLockClass = "1163284567"

// LiveWorkersSQL are the numbers of the workers that are connected to the database.
const LiveWorkersSQL = `
    SELECT objid::bigint AS number FROM pg_locks
    WHERE locktype = 'advisory' AND classid = ` + WorkerLockClass + ` AND objsubid = 2 AND granted
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`
