// Package webhook takes webhooks of other services in as events: an http.Handler
// for POST /webhooks/{canvas}/{source}.
//
// # Use
//
// A Source is a name in the path, a Verifier that knows whether a request is
// genuine, and a Caster that makes events of it, or none. Verifiers for GitHub,
// GitLab, Stripe, Slack, Standard Webhooks and any HMAC come with the package; any
// other one is a function.
//
// # Guarantees
//
// A request is verified over the bytes of its body as they came, before anything
// looks into them, in constant time, against each of the secrets. Where a scheme
// has a time stamp, it is at most five minutes from the clock of this process.
//
// The answer is 2xx only after the events are committed, all of them or none. A
// delivery that comes again, at once or later, in this process or in another one,
// adds nothing: its id is a unique key in the transaction of its events, which
// holds until Config.KeepDelivery after the end of the first of them. A delivery without
// an id, which some schemes do not have, is no repeat of anything; and where a Caster
// gives each of its events a UniqueKey, these decide and not the delivery.
//
// Events belong to the canvas of the path, whatever the Caster says (I16). Who
// knows the secret of a source without a Canvas can emit to all canvases.
//
// # Failures
//
// A refusal is a status without a body; why it was refused is in the log, where
// no secret, signature or body ever is:
//
//	400  the body broke off; what it holds is nothing to make an event of
//	401  not genuine, too old, or repeated headers
//	404  no such source, or no canvas
//	405  not POST
//	408  the body took longer than Config.ReadTimeout
//	413  the body is larger than Config.MaxBodyBytes
//	415  it is compressed: a signature holds for the bytes as they are
//	422  the queue does not take such events
//	429  Config.Check says so; with Retry-After
//	500  the Caster failed
//	503  the database failed, or Config.Check did
//
// Senders try again after 5xx, 429 and lost answers. What is no HTTP, and headers that
// are larger than the http.Server takes, never come here: it refuses them itself, with
// a line of text, and logs nothing.
package webhook
