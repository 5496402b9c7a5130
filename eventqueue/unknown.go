package eventqueue

import (
	"sync"
	"time"
)

// sayUnknownEvery is how often a worker warns of events of one handler that it
// does not have.
const sayUnknownEvery = time.Minute

// unknown remembers which handlers a worker has warned of, so that a backlog of
// events that it does not know fills no log.
type unknown struct {
	mu   sync.Mutex
	said map[HandlerKey]time.Time
}

// sayNow tells whether it is time to warn of a handler again.
func (u *unknown) sayNow(key HandlerKey) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	now := time.Now()
	if now.Sub(u.said[key]) < sayUnknownEvery {
		return false
	}
	if u.said == nil || len(u.said) > 1000 { // keys come from rows: keep the map small
		u.said = map[HandlerKey]time.Time{}
	}
	u.said[key] = now
	return true
}
