package check

import "time"

// SlotOperator is the writer of what the operator changes.
const SlotOperator = "operator"

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
