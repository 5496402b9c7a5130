package testenv

import (
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

	mu   sync.Mutex
	open []net.Conn
}

// Break closes the connections that are open.
func (p *TCPProxy) Break() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, conn := range p.open {
		_ = conn.Close()
	}
	p.open = nil
}

func (p *TCPProxy) track(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open = append(p.open, conns...)
}

// Proxy starts one in front of a server, for the time of the test.
func Proxy(t testing.TB, server string) *TCPProxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &TCPProxy{Address: listener.Addr().String()}
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
			p.track(client, backend)
			var dead atomic.Bool
			pipe := func(to, from net.Conn) {
				buffer := make([]byte, 32<<10)
				for {
					n, err := from.Read(buffer)
					if p.Swallow.Load() {
						dead.Store(true)
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
	t.Cleanup(func() {
		_ = listener.Close()
		p.Break()
		serving.Wait()
	})
	return p
}
