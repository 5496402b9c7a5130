package sim

import (
	"time"

	"eventsv2/eventqueue"
)

// outsideStore is where handlers publish. It is used by calls that have passed the gate.
type outsideStore struct {
	sent     int
	postings []posting
	senders  map[string]eventqueue.EventID // by token
	rows     map[publicationRow]time.Time  // of the table, with their expiries
}

// posting is something that is published there.
type posting struct{ id, token string }

// publicationRow is a row of cleanups.
type publicationRow struct {
	Event eventqueue.EventID // 0 of a row beside that of the event
	Token string
	Data  string // empty of an intent
}
