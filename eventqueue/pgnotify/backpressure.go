package pgnotify

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Polls that find nothing do not wait as long as there are at most freeEmptyPolls of
// them at once and in a second; after one more the next poll waits. Everybody who may
// connect can send a NOTIFY, and each would otherwise cost a statement.
const (
	freeEmptyPolls = 100
	emptyPollWait  = time.Second / freeEmptyPolls
)

// backpressure delays the polls of a process while they find nothing. A poll that finds
// something is not counted, and the next poll after it does not wait.
type backpressure struct {
	free *rate.Limiter

	mu   sync.Mutex
	next time.Time // when the next poll may begin
}

func newBackpressure() *backpressure {
	return &backpressure{free: rate.NewLimiter(rate.Every(emptyPollWait), freeEmptyPolls)}
}

// record records how many notifications a poll has found.
func (b *backpressure) record(now time.Time, found int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.next = time.Time{}
	if found == 0 && !b.free.AllowN(now, 1) {
		b.next = now.Add(emptyPollWait)
	}
}

// wait is how long the next poll has to wait.
func (b *backpressure) wait(now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.next.Sub(now)
}
