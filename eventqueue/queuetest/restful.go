package queuetest

import (
	"net"
	"os"
	"sync"
	"time"
)

// restful is a connection to Postgres that rests, in the sense of testing/synctest, while it has nothing to wait
// for but notifications.
type restful struct {
	net.Conn
	clock *Clock
	woken chan struct{} // of one that rests: something below mu has changed

	asking sync.Mutex // held while the server is asked for notifications

	mu        sync.Mutex
	sent, got frames
	answers   int  // that the server owes
	leaving   bool // no further statement will be sent
	resting   bool
	closed    bool
	deadline  time.Time
	kept      []byte // that was received, and not read yet
	failed    error  // what follows it
}

// NetConn returns the connection of the operating system.
func (r *restful) NetConn() net.Conn { return r.Conn }

// Write implements net.Conn.
func (r *restful) Write(b []byte) (int, error) {
	if err := r.clock.show(); err != nil {
		return 0, err
	}
	r.mu.Lock()
	r.sent.read(b, func(kind, _ byte) {
		switch kind {
		case startup, query, syncing, functionCall:
			r.answers++
		case terminate:
			r.leaving = true
		}
	})
	r.mu.Unlock()
	return r.Conn.Write(b)
}

// Read implements net.Conn.
func (r *restful) Read(b []byte) (int, error) {
	r.mu.Lock()
	kept, rests := len(r.kept) > 0, r.answers == 0 && !r.leaving && !r.got.within()
	r.mu.Unlock()
	switch {
	case kept:
		n, _, err := r.take(b)
		return n, err
	case rests:
		return r.rest(b)
	}
	n, err := r.Conn.Read(b)
	over := false
	r.mu.Lock()
	r.got.read(b[:n], func(kind, status byte) {
		if kind == readyForQuery {
			r.answers--
			over = over || status == outsideTransaction
		}
	})
	r.mu.Unlock()
	if over {
		r.clock.spread()
	}
	return n, err
}

// rest waits for notifications, until one arrives, the deadline has passed, or the connection is closed.
func (r *restful) rest(b []byte) (int, error) {
	r.setResting(true)
	defer r.setResting(false)
	r.ask() // what was notified before
	for {
		n, wait, err := r.take(b)
		if n > 0 || err != nil {
			return n, err
		}
		r.await(wait)
	}
}

// await returns when something has changed, or after wait, if that is not 0.
func (r *restful) await(wait time.Duration) {
	if wait == 0 {
		<-r.woken
		return
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-r.woken:
	case <-timer.C:
	}
}

// take reads what has been received, or returns how long to wait at most; 0 is for ever.
func (r *restful) take(b []byte) (n int, wait time.Duration, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case len(r.kept) > 0:
		n = copy(b, r.kept)
		r.kept = r.kept[n:]
		return n, 0, nil
	case r.failed != nil:
		return 0, 0, r.failed
	case r.closed:
		return 0, 0, net.ErrClosed
	case r.deadline.IsZero():
		return 0, 0, nil
	}
	if wait = time.Until(r.deadline); wait <= 0 {
		return 0, 0, os.ErrDeadlineExceeded
	}
	return 0, wait, nil
}

// setResting says whether the connection may be asked. Its deadlines concern the reader, and not who asks.
func (r *restful) setResting(resting bool) {
	if !resting {
		r.clock.works(r)
		r.asking.Lock()
		defer r.asking.Unlock()
	}
	r.mu.Lock()
	r.resting = resting
	deadline := r.deadline
	if resting {
		deadline = time.Time{}
	}
	_ = r.Conn.SetDeadline(deadline) // a closed connection says so when it is used
	r.mu.Unlock()
	if resting {
		r.clock.rests(r)
	}
}

// ask has a connection that rests receive what has been notified to it: the server sends that before it answers.
func (r *restful) ask() {
	r.asking.Lock()
	defer r.asking.Unlock()
	r.mu.Lock()
	resting := r.resting && r.failed == nil && !r.closed
	r.mu.Unlock()
	if !resting {
		return
	}
	_, err := r.Conn.Write([]byte{syncing, 0, 0, 0, 4})
	var received []byte
	if err == nil {
		received, err = untilReady(r.Conn)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.kept, r.failed = append(r.kept, received...), err
	if len(received) > 0 || err != nil {
		r.wake()
	}
}

// SetDeadline implements net.Conn.
func (r *restful) SetDeadline(deadline time.Time) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.deadline = deadline
	r.wake()
	if r.resting {
		return nil
	}
	return r.Conn.SetDeadline(deadline)
}

// Close implements net.Conn.
func (r *restful) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	r.wake()
	return r.Conn.Close()
}

func (r *restful) wake() {
	select {
	case r.woken <- struct{}{}:
	default:
	}
}
