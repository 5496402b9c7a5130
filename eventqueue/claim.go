package eventqueue

// ClaimID is the number of a claim statement, made by the claimant, below 2^62: the number of
// the worker, and 31 bits that it draws for each claim. 0 is none. In the row, claim_id is its
// sum with the fence token.
type ClaimID int64

// WorkerNumber distinguishes the workers of a database. A worker draws its number when it is made,
// from 1 to 2^31-1. 0 is none.
type WorkerNumber int32

// workerShift is how many bits of a ClaimID are below the number of the worker.
const workerShift = 31

// Claim is the number of a claim of the worker. drawn is at least 0.
func (n WorkerNumber) Claim(drawn int32) ClaimID {
	return ClaimID(int64(n)<<workerShift | int64(drawn))
}

// Worker is the number of the worker that made the claim. It is any number, or 0, for a program
// of a version in which workers had no numbers.
func (id ClaimID) Worker() WorkerNumber { return WorkerNumber(max(id>>workerShift, 0)) }
