// Package access decides who may do what over HTTP: with tokens, with the JWTs of an OpenID Connect
// issuer, or behind Google's Identity-Aware Proxy (IAP).
//
// All three end in an [Identity] with grants: verbs on all canvases, or on some. Pages and operations
// ask [Identity.May], and do not know how the identity was established.
//
// # Tokens
//
// A token has 256 random bits. It is shown once, when it is created; the database has its SHA-256. It
// may end by itself, and can be revoked, which holds from the next request on: nothing is cached.
//
// # Without any access
//
// While there is neither a token nor an issuer, requests from the machine itself are let in with
// every right, if [Authenticator.Loopback] is set; all others are refused.
package access
