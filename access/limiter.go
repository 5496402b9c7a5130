package access

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// maxLimited is how many keys a Limiter knows at once. Those that have their whole budget are dropped
// first; if there are too many others, all are, which admits requests rather than refusing them.
const maxLimited = 10_000

// Limiter lets each key, such as that of an identity or an address, through so many times per second. It is
// safe for concurrent use.
type Limiter struct {
	perSecond rate.Limit
	burst     int

	mu   sync.Mutex
	keys map[string]*rate.Limiter
}

// NewLimiter makes a Limiter that lets each key through perSecond times per second, and burst times at once.
func NewLimiter(perSecond float64, burst int) *Limiter {
	return &Limiter{perSecond: rate.Limit(perSecond), burst: burst, keys: map[string]*rate.Limiter{}}
}

// Take lets a key through, or returns after how long it would.
func (l *Limiter) Take(key string) (wait time.Duration) {
	reservation := l.of(key).Reserve()
	if wait = reservation.Delay(); wait > 0 {
		reservation.Cancel()
	}
	return wait
}

// Wait returns after how long a key would be let through, without doing so.
func (l *Limiter) Wait(key string) time.Duration {
	missing := 1 - l.of(key).Tokens()
	if missing <= 0 {
		return 0
	}
	return time.Duration(missing / float64(l.perSecond) * float64(time.Second))
}

func (l *Limiter) of(key string) *rate.Limiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	if limiter := l.keys[key]; limiter != nil {
		return limiter
	}
	if len(l.keys) >= maxLimited {
		for key, limiter := range l.keys {
			if limiter.Tokens() >= float64(l.burst) {
				delete(l.keys, key)
			}
		}
		if len(l.keys) >= maxLimited {
			clear(l.keys)
		}
	}
	limiter := rate.NewLimiter(l.perSecond, l.burst)
	l.keys[key] = limiter
	return limiter
}
