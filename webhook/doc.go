// Package webhook receives webhooks of other services and emits them as events. It is
// an http.Handler for POST /webhooks/{canvas}/{source}.
//
// # Use
//
// A Source is a name in the path, a Verifier that decides whether a request is
// genuine, and a Caster that makes events of it, or none. The package has Verifiers for
// GitHub, GitLab, Stripe, Slack, Standard Webhooks and any HMAC, and for Google's Pub/Sub, Eventarc
// and Cloud Scheduler, whose requests carry a token; any other Verifier is a function.
//
// # Guarantees
//
// A request is verified over the bytes of its body as received, before they are
// parsed, in constant time, against each of the secrets. If a scheme has a time stamp,
// it may differ by at most five minutes from the clock of this process.
//
// The answer is 2xx only after the events are committed, all of them or none. A
// delivery that is repeated, at once or later, to this process or to another one, adds
// no events: its id is a unique key in the transaction of its events, which is taken
// until Config.RetainDelivery after the end of the first event. If no id is signed, the
// signed text is used as the id, since an attacker who has recorded a request can change
// every other header; see HMAC.TrustUnsignedID. If a custom Verifier returns no id, no delivery
// is a repeat. If a Caster gives each of its events a UniqueKey, these keys decide
// instead of the delivery.
//
// Events belong to the canvas of the path, whatever canvas the Caster sets (I16).
// Whoever knows the secret of a source without a Canvas can emit to all canvases.
//
// # Failures
//
// A refusal is a status without a body. The reason is in the log, which never contains
// a secret, a signature or a body:
//
//	400  the body broke off, or no event can be made of it
//	401  not genuine, too old, an expired token, or repeated headers
//	404  no such source, or the path has no canvas
//	405  not POST
//	408  the body took longer than Config.ReadTimeout
//	413  the body is larger than Config.MaxBodyBytes
//	415  the body is compressed: a signature is over the uncompressed bytes
//	422  the queue does not accept such events
//	429  Config.Check refused the events of a source with RefuseOverLimit; with Retry-After
//	500  the Caster failed
//	503  the database failed, or Config.Check did, or the keys of an issuer of tokens cannot be got
//
// Which senders try again after a refusal or a lost answer is up to them, and many count 4xx as final: GitHub tries
// nothing again by itself, and GitLab disables a webhook that goes on failing; Slack tries three times more within the
// hour, Stripe and Standard Webhooks for days, after any answer but 2xx. So events over a rate limit are accepted and
// wait: Config.Check is asked only for sources with RefuseOverLimit.
//
// The http.Server itself refuses requests that are not HTTP, and headers that are too
// large for it. It answers with a line of text and logs nothing; such requests do not
// reach the Handler.
package webhook
