package eventqueue

// ClaimID is the number of a claim statement, made at random by the claimant, below 2^62.
// 0 is none. In the row, claim_id is its sum with the fence token.
type ClaimID int64
