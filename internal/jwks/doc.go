// Package jwks gets the public keys with which an issuer of JWTs signs them (RFC 7517), and retains them for as long as
// the headers of its answer say.
//
// # Failures
//
// From the end of a request, nobody is asked for five seconds, whatever ids of keys are asked for: those of a request may be
// made up. So a key that is a few seconds old may be unknown for as long. If the issuer does not answer, or its answer has
// no keys, the keys that are known are used for a day more, and nobody waits for newer ones; after that, and before the first
// answer, Key returns ErrUnavailable.
package jwks
