// Package httpapi is the HTTP API of a queue, below /v1: it emits, shows and changes events, and pauses and
// blocks handlers. docs/api.md describes it, and /v1/openapi.json is its OpenAPI document.
//
// # Guarantees
//
//   - Every request has an identity (package access), or is refused.
//   - An event on a canvas that the identity may not read is answered as one that does not exist.
//   - Every change has a row in the audit log, written by the transaction of the change.
//   - What a request may do somewhere is known before its body is read, and whether the body makes sense before it is decoded. The
//     memory of all bodies together is bounded, and that of one is a small multiple of its length.
//   - A refusal has less than 64 kB, whatever was sent.
//   - Errors are problems as of RFC 9457. What went wrong inside the server is in its log, and not in the answer.
package httpapi
