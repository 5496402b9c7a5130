// Package halfbroker is a server between programs and Pub/Sub that fails single methods
// of it, as long as it is told to: a right that was revoked, a quota that is used up, a
// call that hangs, an answer that is lost on its way. Programs use it in place of an
// emulator; what it does not fail it hands on to one.
package halfbroker
