package service

import (
	"container/list"
	"net"
	"net/http"
	"sync"
)

// maxQuiet is how many connections may be open that no handler works for: those whose
// next header has not come, or not all of it. One of them can take a few hundred KiB.
const maxQuiet = 512

// connections closes the connection that has been quiet the longest when there are too
// many, so that a client that opens thousands, to send nothing or half a header, neither
// fills the memory nor keeps other clients out. It is safe for concurrent use.
type connections struct {
	mu     sync.Mutex
	quiet  list.List // of net.Conn, the longest first
	places map[net.Conn]*list.Element
}

// changed is http.Server.ConnState. A connection is active while its request is handled.
func (c *connections) changed(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if place := c.places[conn]; place != nil {
		c.quiet.Remove(place)
		delete(c.places, conn)
	}
	if state != http.StateNew && state != http.StateIdle {
		return
	}
	c.places[conn] = c.quiet.PushBack(conn)
	if c.quiet.Len() <= maxQuiet {
		return
	}
	oldest := c.quiet.Front().Value.(net.Conn)
	c.quiet.Remove(c.quiet.Front())
	delete(c.places, oldest)
	_ = oldest.Close() // its reader sees that
}
