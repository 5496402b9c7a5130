// Package testenv gives every test real services of its own: a fresh database
// that is a clone of a migrated one, a pool on it, and the official Pub/Sub
// emulator.
//
// # Use
//
// Each package whose tests use it ends its tests through Main:
//
//	func TestMain(m *testing.M) { testenv.Main(m) }
//
// The services are from package services. They are found or started at the
// first use in the process and stopped by Main; without Main they stop when the
// process ends.
//
// # Guarantees
//
// No two tests share a database, in whatever process of whatever checkout they
// run; a test may change its schema and drop its tables. The database is dropped
// when the test ends. The template that databases are cloned from is made once
// per cluster and set of migrations, under an advisory lock, and nobody can
// connect to it once it is complete, so cloning it never fails for its other
// users.
//
// # Failures
//
// Without a Postgres a test fails. Without an emulator the tests that need it
// are skipped with a message that begins SKIPPED, NOT TESTED. A template that was left half
// made by a process that died is made anew. Databases of a process that was
// killed stay in a Postgres that it did not start; their names begin with
// eventsv2_test_. Templates stay in such a Postgres on purpose.
package testenv
