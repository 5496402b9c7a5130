package testenv

import (
	"bytes"
	"net"
	"sync"
	"sync/atomic"
	"testing"
)

// TCPProxy stands between a program and a server.
type TCPProxy struct {
	Address string
	// Refuse closes new connections at once.
	Refuse atomic.Bool
	// Swallow accepts what is sent and never delivers it, on the connections of that
	// time for good.
	Swallow atomic.Bool

	mu      sync.Mutex
	open    []net.Conn
	routes  []*route
	lose    *loss  // nil: no answer is to be lost
	shunned []byte // the text of connections that are abandoned; nil: none are
}

// route is the connection to the server that belongs to one of a client.
type route struct {
	server    net.Conn
	sent      []byte // by the client, its beginning
	abandoned bool
}

// keptOfRoute is how much of what a client has sent Abandon can look for a text in.
const keptOfRoute = 64 << 10

// Abandon ends the server's side of the connections on which the client has sent a text, or sends it before Restore is called,
// and leaves the client's side open for good: what is sent there is taken, and nothing comes. It returns how many of the
// present ones it has ended. The text must not be split over two packets.
func (p *TCPProxy) Abandon(text string) (abandoned int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shunned = []byte(text)
	for _, r := range p.routes {
		if !r.abandoned && bytes.Contains(r.sent, p.shunned) {
			r.abandoned = true
			_ = r.server.Close()
			abandoned++
		}
	}
	return abandoned
}

// Restore has new connections work again.
func (p *TCPProxy) Restore() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shunned = nil
}

// abandons notes what the client sends, and reports whether the connection is abandoned.
func (p *TCPProxy) abandons(r *route, sent []byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	r.sent = append(r.sent, sent[:min(len(sent), keptOfRoute-len(r.sent))]...)
	if !r.abandoned && p.shunned != nil && bytes.Contains(sent, p.shunned) {
		r.abandoned = true
		_ = r.server.Close()
	}
	return r.abandoned
}

// loss is of one answer of the server.
type loss struct {
	text   []byte
	silent bool
	done   chan struct{}
}

// Lose has the next answer of the server that contains the text not arrive, and closes the
// channel then. The connection of that answer is closed or, if the loss is silent, delivers nothing any
// more, in either direction. The text must not be split over two packets.
func (p *TCPProxy) Lose(text string, silent bool) (lost <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lose = &loss{[]byte(text), silent, make(chan struct{})}
	return p.lose.done
}

// loses returns what becomes of an answer: nil if it arrives.
func (p *TCPProxy) loses(answer []byte) *loss {
	p.mu.Lock()
	defer p.mu.Unlock()
	lose := p.lose
	if lose == nil || !bytes.Contains(answer, lose.text) {
		return nil
	}
	p.lose = nil
	close(lose.done)
	return lose
}

// Break closes the connections that are open.
func (p *TCPProxy) Break() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, conn := range p.open {
		_ = conn.Close()
	}
	p.open, p.routes = nil, nil
}

func (p *TCPProxy) track(client, server net.Conn) *route {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open = append(p.open, client, server)
	r := &route{server: server}
	p.routes = append(p.routes, r)
	return r
}

// Proxy starts one in front of a server, for the time of the test.
func Proxy(t testing.TB, server string) *TCPProxy {
	t.Helper()
	p, stop, err := OpenProxy(server)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return p
}

// OpenProxy starts one until stop is called, for a program that is no test.
func OpenProxy(server string) (p *TCPProxy, stop func(), err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	p = &TCPProxy{Address: listener.Addr().String()}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return // the test has ended
			}
			if p.Refuse.Load() {
				_ = client.Close()
				continue
			}
			backend, err := net.Dial("tcp", server)
			if err != nil {
				_ = client.Close()
				continue
			}
			route := p.track(client, backend)
			var dead atomic.Bool
			pipe := func(to, from net.Conn) {
				buffer := make([]byte, 32<<10)
				for {
					n, err := from.Read(buffer)
					if from == client && p.abandons(route, buffer[:n]) && err == nil {
						continue // it is accepted, and not answered
					}
					if from == backend && p.abandons(route, nil) {
						return
					}
					if p.Swallow.Load() {
						dead.Store(true)
					}
					if from == backend {
						if lose := p.loses(buffer[:n]); lose != nil {
							dead.Store(true)
							if !lose.silent {
								_ = client.Close()
							}
						}
					}
					if !dead.Load() {
						_, _ = to.Write(buffer[:n])
					}
					if err != nil {
						_ = to.Close()
						return
					}
				}
			}
			serving.Go(func() { pipe(backend, client) })
			serving.Go(func() { pipe(client, backend) })
		}
	})
	return p, func() {
		_ = listener.Close()
		p.Break()
		serving.Wait()
	}, nil
}
