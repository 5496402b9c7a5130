package sim

import "time"

// The times of the simulated queue.
const (
	lockTimeout   = 20 * time.Second
	relayInterval = 10 * time.Second
	quiet         = 15 * time.Second
)

// mostSnoozes is the largest bound of snoozes in a row that a version has.
const mostSnoozes = 1

// mostBatch is the largest ClaimBatch of a version.
const mostBatch = 6

// leaseTime is the broker's ack deadline.
const leaseTime = 15 * time.Second

// progress is I13's bound: the relay's longest interval and its timer, a lock,
// the notification's lease, the wait of a worker without the handler, and what
// queues up behind a fault.
const progress = 10*quiet + 2*relayInterval + lockTimeout + leaseTime + 30*time.Second

// silent is so long without a notification that a worker which waits for one breaks I13.
const silent = progress + 2*time.Minute
