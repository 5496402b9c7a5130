// Package rig sets up tests of the queue. A Rig is a queue on a database of its own, an in-memory
// notifier, handlers, and a worker with its outcomes. Virtual runs a test of a Rig in virtual time,
// InBubble one that needs the database only, and Pass lets that time pass. Pages is a store without a
// database and a notifier, for whatever publishes and searches. Stalls asks of each call that hangs
// whether the loop that made it is named.
package rig
