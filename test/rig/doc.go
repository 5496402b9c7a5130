// Package rig sets up tests of the queue: a queue on a database of its own, an in-memory
// notifier, handlers, and a worker with its outcomes.
package rig
