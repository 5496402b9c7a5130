package httptarget

import (
	"bufio"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// rawServer answers the requests of each connection as its script says, so that nothing depends
// on when the client notices what.
type rawServer struct {
	url string

	mu     sync.Mutex
	bodies []string
}

// step is the server's reaction to the next request of a connection: it reads it, and answers,
// or ends the connection.
type step string

const (
	answer200   step = "answer"
	answerClose step = "answer and close"
	closeUnread step = "close"
	resetUnread step = "reset"
)

// startRaw starts a server whose nth connection does the steps of the nth script; those after
// the last script answer everything.
func startRaw(t *testing.T, scripts ...[]step) *rawServer {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &rawServer{url: "http://" + listener.Addr().String()}
	var serving sync.WaitGroup
	serving.Go(func() {
		for n := 0; ; n++ {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			var script []step
			if n < len(scripts) {
				script = scripts[n]
			}
			serving.Go(func() { server.serve(connection.(*net.TCPConn), script) })
		}
	})
	t.Cleanup(serving.Wait)
	t.Cleanup(func() { _ = listener.Close() })
	return server
}

func (s *rawServer) serve(connection *net.TCPConn, script []step) {
	defer connection.Close()
	reader := bufio.NewReader(connection)
	for n := 0; ; n++ {
		request, err := http.ReadRequest(reader)
		if err != nil {
			return
		}
		body, _ := io.ReadAll(request.Body)
		s.mu.Lock()
		s.bodies = append(s.bodies, string(body))
		s.mu.Unlock()
		next := answer200
		if n < len(script) {
			next = script[n]
		}
		switch next {
		case closeUnread:
			return
		case resetUnread:
			_ = connection.SetLinger(0)
			return
		case answer200, answerClose:
		}
		_, _ = io.WriteString(connection, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		if next == answerClose {
			return
		}
	}
}

func (s *rawServer) requests() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.bodies)
}

func TestUsedConnectionThatBreaksCostsNoAttempt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		breaks step
	}{{"closed", closeUnread}, {"reset", resetUnread}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			server := startRaw(t, []step{answer200, c.breaks}, []step{answer200})
			target := targetFor(t, server.url)
			for range 2 {
				if err := target.Handle(testContext(t), testRun()); err != nil {
					t.Fatal(err)
				}
			}
			if n := server.requests(); n != 3 {
				t.Fatalf("%d requests, want the second one twice", n)
			}
			if server.bodies[2] != string(testRun().Value) {
				t.Errorf("the repeated request had the body %q", server.bodies[2])
			}
		})
	}
}

// The client may or may not have noticed the end when it sends the next request.
func TestConnectionsThatEndAfterTheirAnswerCostNoAttempt(t *testing.T) {
	t.Parallel()
	var scripts [][]step
	for range 200 {
		scripts = append(scripts, []step{answerClose})
	}
	target := targetFor(t, startRaw(t, scripts...).url)
	for range 100 {
		if err := target.Handle(testContext(t), testRun()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestNewConnectionThatBreaksIsAFailedAttempt(t *testing.T) {
	t.Parallel()
	server := startRaw(t, []step{closeUnread})
	err := targetFor(t, server.url).Handle(testContext(t), testRun())
	if outcomeOf(err) != retry || server.requests() != 1 {
		t.Errorf("%d requests, and %v", server.requests(), err)
	}
}

// A request that ends the process of its target must not go to all connections that rest.
func TestRequestThatBreaksConnectionsIsSentTwiceAtMost(t *testing.T) {
	t.Parallel()
	const resting = 8
	arrived, answer := make(chan struct{}, resting), make(chan struct{})
	var breaking atomic.Bool
	var broke atomic.Int32
	target, _ := serve(t, func(_ http.ResponseWriter, _ *http.Request) {
		if breaking.Load() {
			broke.Add(1)
			panic(http.ErrAbortHandler)
		}
		arrived <- struct{}{}
		<-answer
	})
	var first sync.WaitGroup
	for range resting {
		first.Go(func() {
			if err := target.Handle(testContext(t), testRun()); err != nil {
				t.Error(err)
			}
		})
	}
	for range resting {
		await(t, "a request", arrived)
	}
	close(answer)
	first.Wait()
	breaking.Store(true)
	if err := target.Handle(testContext(t), testRun()); outcomeOf(err) != retry {
		t.Errorf("got %v", err)
	}
	if n := broke.Load(); n > 2 {
		t.Errorf("the request was sent %d times", n)
	}
}

func TestBrokenHTTP2ConnectionCostsNoAttempt(t *testing.T) {
	t.Parallel()
	var requests atomic.Int32
	var action atomic.Pointer[func()]
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 2 {
			t.Errorf("the request came by %s", r.Proto)
		}
		requests.Add(1)
		if do := action.Swap(nil); do != nil {
			(*do)()
		}
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	client := NewClient(IdleTimeout(time.Hour))
	t.Cleanup(client.CloseIdleConnections)
	transport := client.Transport.(*renewing).pooled.Clone()
	transport.TLSClientConfig = &tls.Config{RootCAs: server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs}
	client.Transport = newRenewing(transport)
	target, err := New(Config{URL: server.URL, Client: client})
	if err != nil {
		t.Fatal(err)
	}
	handle := func() error { return target.Handle(testContext(t), testRun()) }
	if err := handle(); err != nil {
		t.Fatal(err)
	}
	closeAll := server.CloseClientConnections
	action.Store(&closeAll)
	if err := handle(); err != nil || requests.Load() != 3 {
		t.Errorf("a connection that broke: %d requests, want 3: %v", requests.Load(), err)
	}
	if err := handle(); err != nil {
		t.Fatal(err)
	}
	before := requests.Load()
	abort := func() { panic(http.ErrAbortHandler) }
	action.Store(&abort)
	if err := handle(); outcomeOf(err) != retry || requests.Load() != before+1 {
		t.Errorf("a stream that was reset: %d requests, want %d: %v", requests.Load(), before+1, err)
	}
}
