// Package rig is what tests of the queue begin with: a queue on a database of its own,
// an in-memory notifier, handlers, and a worker with its outcomes.
package rig
