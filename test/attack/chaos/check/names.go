package check

import "time"

// SlotOperator is the writer of what the operator changes.
const SlotOperator = "operator"

// operates reports whether a change was made by the operator, and not by what advances groups for it, or
// notifies.
func (ch *change) operates() bool {
	return ch.op == opUpdate && ch.writer == SlotOperator && ch.new.dueMicros != ch.old.dueMicros
}

// Shifter is the writer that brings far-off events near, in the record.
const Shifter = "chaos-shifter"

// The programs, by the names of their slots. A slot has one process at a time,
// and connections of its own.
const (
	SlotEmitter  = "emitter"
	SlotPostgres = "postgres"
	SlotEmulator = "emulator"
)

// LockTimeout is short, so that much happens.
const LockTimeout = 5 * time.Second

// ClaimBatch is what an approximate rate limit may be exceeded by, of each worker.
const ClaimBatch = 100
