// Package rig sets up tests of the queue. A Rig is a queue on a database of its own, an in-memory
// notifier, handlers, and a worker with its outcomes. InBubble runs a test in virtual time, and Pass
// lets that pass. Pages is a store without a database and a notifier, for whoever publishes and
// searches. Stalls asks of each call that hangs whether the loop that made it is named.
package rig
