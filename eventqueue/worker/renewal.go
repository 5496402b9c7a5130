package worker

import "time"

// Renewal describes a statement that was to renew the claims of running events.
type Renewal struct {
	// Claims is how many there were.
	Claims int
	// Age is how long ago the claim that was renewed the longest ago had been renewed when the answer came. At
	// the lock timeout its run is canceled, and other workers may take its event.
	Age time.Duration
	// Err is why claims were not renewed; nil: they were, or another worker holds their events.
	Err error
}
