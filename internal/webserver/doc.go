// Package webserver serves what people and programs see of a queue over HTTP, on one listener: the HTTP API
// below /v1/, and what else is added. cmd/worker, cmd/cron and eventctl serve share it.
//
// The profiles of a program have a listener of their own, on loopback.
//
// While no access is configured it listens on loopback only, and lets the machine itself in.
package webserver
