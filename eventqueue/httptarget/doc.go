// Package httptarget runs events by sending them to a web server: a Target is
// an eventqueue.Handler that POSTs its event as a CloudEvent, and a File is the
// YAML file that says which handler has which target.
//
// # Several handlers of an event
//
// A handler of a File may have an Event, a handling key such as order.placed, in place of
// module and modifier. Events of a key that has such handlers (module order, name placed, modifier _) are
// dispatched: one transaction completes the event and emits one for each handler of the key and of its parents,
// with its value, its ordering key and its unique key. The event of the handler mail is for the module order, the name
// mail and the modifier order.placed. So each handler is retried, paused, limited and fails alone, and the dispatch
// calls nobody.
//
// # What is sent
//
// One POST per run in the binary mode of the CloudEvents 1.0 HTTP binding. The
// body is the value of the event, byte for byte (I8). The attributes are
// headers; characters that a header cannot hold are percent-encoded UTF-8, as
// the binding demands:
//
//	ce-id           the id of the event; the same on every retry: use it to
//	                recognise an event that is sent again
//	ce-source       /canvases/<canvas id>
//	ce-type         <module>.<name>; for a handler with an Event, the
//	                handling key of the event, order.placed
//	ce-subject      <module>/<name>/<modifier>
//	ce-time         when the event was enqueued
//	ce-canvasid, ce-module, ce-name, ce-modifier
//	                the handler, one part each
//	ce-retries      how many runs of the event have failed so far
//	content-type    application/json
//
// A trace in the context is sent as traceparent (and tracestate), and as the
// attributes of the same names of the CloudEvents distributed tracing extension.
// Without a trace these are absent.
//
// A Config may add an identity token, headers, and a signature by Standard Webhooks,
// which is made anew for each run.
//
// # What the answer means
//
//	2xx                         the event is completed
//	429, 503 with Retry-After   run again after that time; uses no attempt
//	408, other 429, 5xx         a failed attempt
//	no answer                   a failed attempt: refused connection,
//	                            timeout, unknown host, bad certificate. See below
//	401 to an identity token    a failed attempt; the next one has a new token
//	no token                    a failed attempt, without a call
//	3xx                         failed for good: redirects are not followed,
//	                            since a redirected POST may arrive as a GET
//	other 4xx                   failed for good
//	no call: a forbidden        failed for good, see AddressError
//	address
//	anything else               a failed attempt
//
// Of these, 401, 403, 404, 429 and 5xx, and no answer, count for the circuit breaker of the handler
// (eventqueue.Unavailable).
//
// With EmitAnswers, the body of a 2xx answer counts as well: it is empty, or has CloudEvents in structured JSON, of
// MaxAnswerBytes and MaxAnswerEvents at most, which are emitted in the transaction that completes the event, as its children:
// all of it commits or nothing does. Any other body is a failed attempt, as is one that breaks off, and the target gets the event again.
// The type of such a CloudEvent is the module and the name of the event, with a dot between them; the extensions module, name and
// modifier set a part each (the modifier is _ otherwise), partitionkey is the ordering key, and other extensions become attributes. The canvas is
// that of the event. Its id, source, subject and time are not kept.
//
// With RetainAnswers, the body of a 2xx answer is empty, or the result of the event: JSON of at most 64 KiB. Any other is
// a failed attempt.
//
// With IgnoreAnswers the status decides; a failure while the body of the answer is read changes
// nothing. Retry-After is seconds or a date, which is read relative to the Date
// of the same answer; it counts as at least 1 second, so that a target cannot
// cause a hot loop, and at most MaxSnooze. A malformed or past Retry-After counts
// as none.
//
// # Batches
//
// An Entry with a BatchSize has several events in one POST: a list of CloudEvents in structured JSON
// (application/cloudevents-batch+json), with the attributes above, and the value as data. The answer counts for each of them, but for 207, whose body
// has the status of each that is not completed; see [Target.HandleBatch]. A signature has the ids of the first and the last event as webhook-id.
//
// # Failures
//
// A connection that served another request before may have been closed by the target while
// this request was on its way. So if it breaks before the first byte of an answer, the request
// is sent once more within the same attempt, on a new connection: the target may see it twice,
// with the same ce-id. What breaks a new connection may have ended the target's process, with all
// requests that it had in hand. So it is a failed attempt only of an event that ran alone, or as the
// only suspect (docs/guarantees.md). A refused connection is a failed attempt of each event: a
// target that is gone for good has to end the event as FAILED, and the waits between the
// attempts are there to outlast a deployment.
//
// The context bounds a run; when it ends, the request is abandoned and the error
// wraps context.Cause. The target may have done its work nevertheless, and will
// receive the event again: it must be idempotent. Error texts contain the status and
// the beginning of the answer's body, for the history of the event. They, and
// everything else that this package prints, never contain the user, password or
// query of a URL, a token, the value of a header of Config, or a secret, though the target
// may have repeated it: as it was sent, and if it has at least six characters.
//
// A handlers file is accepted whole or not at all. All mistakes are reported
// together, each with its line, up to a hundred.
package httptarget
