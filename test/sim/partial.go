package sim

import (
	"time"
)

// way is a kind of calls of the notifier that may fail while the others work.
type way string

const (
	publishing way = "Publish"
	pulling    way = "Pull"
	answering  way = "answers" // Ack, Requeue and the extension of leases
)

// partial is what is wrong with a peer that is there. Guarded by the gate's lock.
type partial struct {
	failing map[way]bool // calls of the notifier that fail
	hanging map[way]bool // and those that are accepted and never answered
	orphan  bool         // the topic of the subscription is gone: publishes are accepted, and reach nobody
	void    bool         // publishes are accepted, checks are answered, and nothing is delivered
}

// rowRefusal is what the database does not let anybody write of one row.
type rowRefusal struct {
	kinds int64  // of writes, as bits
	code  string // an SQLSTATE
}

// intensity is how hard a seed attacks single calls.
type intensity struct {
	before, after, slow, stuck float64 // chances, of a call
	drop, double, late         float64 // chances, of a notification
	forget                     float64 // chance, of an answer to one
	gap                        time.Duration
}

// opCheck is the call that asks the notifier how it is. It works while others fail.
const opCheck = "Check"
