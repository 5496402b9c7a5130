// Package jwks gets the public keys with which an issuer of JWTs signs them (RFC 7517), and retains them for as long as
// the headers of its answer say.
//
// # Failures
//
// Nobody is asked more often than once in five seconds, whatever ids of keys are asked for: those of a request may be
// made up. So a key that is a few seconds old may be unknown for as long. If the issuer does not answer, or its answer has
// no keys, the keys that are known are used for a day more; after that, and before the first answer, Key returns
// ErrUnavailable.
package jwks
