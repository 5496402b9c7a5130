package access

import (
	"crypto/sha256"
	"net"
	"net/http"
	"sync"
	"time"
)

// What an address may try without success: per second, and at once.
const (
	failuresPerSecond = 5
	failuresAtOnce    = 4 * failuresPerSecond
)

// maxAccepted is how many credentials Attempts remember; when there are more, all are forgotten.
const maxAccepted = 10_000

// Attempts bound how often an address tries invalid credentials: each try costs a statement, or a
// request to an issuer. Credentials that were accepted before are always tried, so that no user is kept out by
// others at the same address, such as that of a proxy. It is safe for concurrent use.
type Attempts struct {
	failures *Limiter

	mu       sync.Mutex
	accepted map[[sha256.Size]byte]bool
}

// NewAttempts makes Attempts that let five failures per second through, and twenty at once.
func NewAttempts() *Attempts {
	return &Attempts{failures: NewLimiter(failuresPerSecond, failuresAtOnce), accepted: map[[sha256.Size]byte]bool{}}
}

// Wait returns after how long credentials from an address may be tried; 0 is now.
func (a *Attempts) Wait(address, credentials string) time.Duration {
	wait := a.failures.Wait(address)
	if wait == 0 {
		return 0
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.accepted[sha256.Sum256([]byte(credentials))] {
		return 0
	}
	return wait
}

// Accepted records that credentials were accepted.
func (a *Attempts) Accepted(credentials string) {
	key := sha256.Sum256([]byte(credentials))
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.accepted) >= maxAccepted {
		clear(a.accepted)
	}
	a.accepted[key] = true
}

// Refused records that credentials from an address were refused.
func (a *Attempts) Refused(address, credentials string) {
	a.failures.Take(address)
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.accepted, sha256.Sum256([]byte(credentials)))
}

// AddressOf returns from where a request comes, as Attempts take it and the audit log has it.
func AddressOf(r *http.Request) string {
	if host, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
		return host
	}
	return r.RemoteAddr
}

// CredentialsOf returns what a request says of who makes it, as Attempts take it.
func CredentialsOf(r *http.Request) string {
	return r.Header.Get("Authorization") + "\n" + r.Header.Get(iapHeader)
}
