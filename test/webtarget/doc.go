// Package webtarget receives the events that cmd/worker posts, for the programs that run a
// deployment (test/demo, test/attack/chaos and faults): a web server on the loopback
// interface, the handlers file that names it, and the reading of requests.
//
// # Failure handling
//
// A server that cannot listen, and a file that cannot be written, are errors of
// the call. A server that was started serves until it is stopped.
package webtarget
