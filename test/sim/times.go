package sim

import "time"

// The times of the simulated queue.
const (
	lockTimeout   = 20 * time.Second
	relayInterval = 10 * time.Second
	lostAfter     = 15 * time.Second
)

// mostSnoozes is the largest bound of snoozes in a row that a version has.
const mostSnoozes = 1

// mostBatch is the largest ClaimBatch of a version.
const mostBatch = 6

// leaseTime is the notifier's ack deadline.
const leaseTime = 15 * time.Second

// progress is I13's bound, from the last obstacle on and from when a notification that may
// be on its way counts as lost: that of the guarantees.
const progress = relayInterval + lockTimeout

// longestWait is how long I13 lets an event wait at most: after 10 · lostAfter the relay's
// interval grows no more.
const longestWait = 10*lostAfter + progress

// silent is so long without a notification that a worker which waits for one breaks I13.
const silent = longestWait + 2*time.Minute
