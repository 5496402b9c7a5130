// Package intake is used by servers before they trust a request: it bounds the memory that
// requests take together, while their bodies arrive and until they are answered ([Intake]), refuses texts that the database
// cannot hold ([CheckText], [CheckURL]), and bounds and writes what the log has of requests ([LogLimiter], [LogField]).
//
// # Memory
//
// A handler makes a reservation before it reads a body, calls StopReading when the body has come, and Free when
// nothing of it is held any more. If there is no room for a request, bodies that are being read are cut off: of the sender
// who takes the most, the one whose reading began first. So senders who never complete their bodies cannot keep others
// out. If that does not make enough room, none is cut off, and the request gets no reservation: answer it with 503.
//
// # Guarantees
//
// Everything here is safe for concurrent use, and nothing blocks.
package intake
