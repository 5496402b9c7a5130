// Package e2e_test runs the programs as they are deployed: built binaries,
// configured by their environment, on real Postgres and the official Pub/Sub
// emulator, with an HTTP server as the target of the handlers.
package e2e_test
