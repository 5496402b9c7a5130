// Package pgsession makes connections to Postgres on which the queue's statements
// work as intended, whatever the defaults of the database, the role or the pool.
//
// # Guarantees
//
// No error of [ParseURL] contains any part of its text: in a malformed URL it is not
// known where the password begins and ends.
//
// [Prepare] sets the settings of a connection by SQL and reads them back in another
// transaction, because a pooler passes on few startup parameters, and refuses or
// drops the others. [Pool] runs each transaction at the isolation level that the
// queue needs, also on a pool of the caller's.
//
// # Failures
//
// A pooler that gives each transaction another server connection silently loses
// settings, LISTEN and prepared statements, so it is refused with an error of its
// own ([ErrTransactionPooling]). A database that is read-only by default and a
// connection whose encoding is not UTF-8 are refused, too.
package pgsession
