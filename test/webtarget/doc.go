// Package webtarget is what the programs that run a deployment (test/demo,
// test/attack/chaos and faults) need to have cmd/worker post its events to them:
// a web server on the loopback interface, the handlers file that names it, and the reading
// of what is posted.
//
// # Failure handling
//
// A server that cannot listen, and a file that cannot be written, are errors of
// the call. A server that was started serves until it is stopped.
package webtarget
