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

	mu   sync.Mutex
	open []net.Conn
	lose *loss // nil: no answer is to be lost
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
			p.track(client, backend)
			var dead atomic.Bool
			pipe := func(to, from net.Conn) {
				buffer := make([]byte, 32<<10)
				for {
					n, err := from.Read(buffer)
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
