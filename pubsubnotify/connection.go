package pubsubnotify

import (
	"context"
	"errors"
	"sync"
	"time"
)

// connection is the connection to Pub/Sub. It is replaced when a call on it gets no
// answer. A firewall or a proxy may drop a connection silently, and calls on it would
// hang long after new connections work. Keepalive pings do not help: servers refuse pings
// that are frequent enough to detect this.
type connection struct {
	config Config

	mu     sync.Mutex
	now    *clients
	dialed time.Time
	old    []*clients // calls may still be running on them
	closed bool
}

// redialGap is the least time between two dials, so that a slow server is not dialled
// after each call.
const redialGap = 3 * time.Second

func (l *connection) open(config Config, first *clients) {
	l.config, l.now, l.dialed = config, first, time.Now()
}

func (l *connection) clients() *clients {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.now
}

// redial replaces a connection that did not answer. It does nothing if that connection
// was replaced already, or another one within redialGap. Calls that are running on the
// old connection may still complete.
func (l *connection) redial(silent *clients) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || l.now != silent || time.Since(l.dialed) < redialGap {
		return
	}
	l.dialed = time.Now()
	fresh, err := connect(context.Background(), l.config)
	if err != nil {
		return // keep the old connection; the caller already has an error to report
	}
	for _, c := range l.old {
		_ = c.conn.Close() // its calls have had redialGap, and the server has not answered them
	}
	l.old = []*clients{l.now}
	l.now = fresh
}

func (l *connection) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	errs := []error{l.now.conn.Close()}
	for _, c := range l.old {
		errs = append(errs, c.conn.Close())
	}
	return errors.Join(errs...)
}
