// Package intake bounds the memory that the requests of an HTTP server take together, while their bodies arrive and
// until they are answered.
//
// # Use
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
