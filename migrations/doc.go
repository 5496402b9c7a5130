// Package migrations holds the database schema of the event queue: numbered SQL
// files, embedded in the binary, and the code that applies them.
//
// # Who applies them
//
// An operator, with eventctl migrate (Up, Down, Status) or by running the text
// of SQL through psql. Workers and the cron service never change a schema; they
// call Check when they start and refuse to work on one that is too old. Deploys
// migrate first and roll the binaries afterwards, so Check accepts a schema
// that is newer than the binary, and a migration must leave the binaries of the
// version before it working. A migration that takes away what earlier versions need makes, or replaces, the SQL function
// eventsv2_oldest_program, which returns the oldest Latest of the programs that can work with it:
// Check refuses for the others.
//
// # Guarantees
//
//   - Files are numbered 1, 2, 3, … without gap or duplicate and are only ever
//     appended; a file that has been released is never edited.
//   - Every migration runs in a transaction of its own together with the row
//     that records it, so a migration has happened whole or not at all.
//   - A migration waits for a lock on a table for two seconds at most and is tried again,
//     since whoever uses the table waits behind it.
//   - Up and Down hold a session-level advisory lock: any number of them may run
//     at once against one database, one works and the others wait their turn.
//     The text of SQL takes the same lock.
//
// # Failures
//
// When a migration fails, those before it stay applied and are returned beside
// the error; running Up again continues at the one that failed. A process that
// dies in the middle loses its connection, and with it the lock and the open
// transaction. A lock that is not free for five minutes is given up with an
// error. Messages never contain the password of the database URL.
//
// Applied versions are recorded in the table eventsv2_schema_version, in the
// format of the library goose, in the schema of the queue.
package migrations
