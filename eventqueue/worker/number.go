package worker

import (
	"crypto/rand"
	"encoding/binary"

	"eventsv2/eventqueue"
)

// newWorkerNumber makes the number of a worker at random.
func newWorkerNumber() eventqueue.WorkerNumber { return eventqueue.WorkerNumber(max(random31(), 1)) }

// newClaimID makes the number of a claim of a worker. A fence token can be added to it.
func newClaimID(number eventqueue.WorkerNumber) eventqueue.ClaimID {
	return number.Claim(random31())
}

// random31 returns 31 random bits. They come from the system, whose numbers do not repeat in
// copies of a virtual machine.
func random31() int32 {
	var b [4]byte
	_, _ = rand.Read(b[:]) // which never fails
	return int32(binary.LittleEndian.Uint32(b[:]) >> 1)
}
