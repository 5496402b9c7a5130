// Package program is the command lines of cmd/worker and cmd/cron, so that one binary can be both: the image has one
// for all programs (cmd/eventsv2). It wires what the programs are made of, makes the providers of OpenTelemetry as the
// variables OTEL_… say, and has no rules of its own.
package program
