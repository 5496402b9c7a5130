package worker

import "time"

// What may take time when a worker stops. Together they leave a program that is to stop within two
// seconds of its grace period half a second for the rest.
const (
	// claimAtStop is how long claims under way may still take.
	claimAtStop = 600 * time.Millisecond
	// abandonAfter is how long handlers have to return after their context was cancelled
	// at the end of the grace period.
	abandonAfter = 300 * time.Millisecond
	// lastWritesTake and lastAnswersTake are how long the last writes, and then the last
	// answers, may take after that.
	lastWritesTake  = 800 * time.Millisecond
	lastAnswersTake = 300 * time.Millisecond
)
