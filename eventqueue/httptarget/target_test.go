package httptarget

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"eventsv2/eventqueue"
)

func TestAnswersBecomeOutcomes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name       string
		status     int
		retryAfter string
		body       string
		want       string
		text       string
	}{
		{name: "ok", status: 200, body: "fine", want: completed},
		{name: "no content", status: 204, want: completed},
		{name: "bad request", status: 400, body: "no\tsuch\x00 field \xff", want: permanent, text: "400 Bad Request: no such field \uFFFD"},
		{name: "not found", status: 404, want: permanent, text: "404 Not Found"},
		{name: "time-out", status: 408, want: retry, text: "408 Request Timeout"},
		{name: "busy", status: 429, retryAfter: "7", want: "snoozed for 7s", text: "429 Too Many Requests"},
		{name: "busy, says no time", status: 429, want: retry, text: "429 Too Many Requests"},
		{name: "down", status: 503, retryAfter: "2", want: "snoozed for 2s", text: "503 Service Unavailable"},
		{name: "down, says nonsense", status: 503, retryAfter: "soon", want: retry, text: "503 Service Unavailable"},
		{name: "broken", status: 500, body: strings.Repeat("ü", 1000), want: retry, text: strings.Repeat("ü", 100) + "…"},
		{name: "unknown status", status: 799, want: retry, text: "799"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			target, _ := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				if c.retryAfter != "" {
					w.Header().Set("Retry-After", c.retryAfter)
				}
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.body)
			})
			err := target.Handle(testContext(t), testRun())
			if got := outcomeOf(err); got != c.want {
				t.Fatalf("%s, want %s: %v", got, c.want, err)
			}
			if err != nil && (!strings.Contains(err.Error(), c.text) || !strings.HasPrefix(err.Error(), "POST http://")) {
				t.Errorf("the error does not say %q: %s", c.text, err)
			}
		})
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	t.Parallel()
	var visits atomic.Int32
	_, elsewhere := serve(t, func(http.ResponseWriter, *http.Request) { visits.Add(1) })
	for _, status := range []int{301, 302, 303, 307, 308} {
		target, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL+"/there", status)
		})
		err := target.Handle(testContext(t), testRun())
		if outcomeOf(err) != permanent || !strings.Contains(err.Error(), elsewhere.URL+"/there") {
			t.Errorf("%d: %v", status, err)
		}
	}
	if n := visits.Load(); n != 0 {
		t.Errorf("%d redirects were followed", n)
	}
}

func TestRefusedConnectionIsRetried(t *testing.T) {
	t.Parallel()
	err := targetFor(t, "http://"+refusingAddress(t)+"/push").Handle(testContext(t), testRun())
	if outcomeOf(err) != retry || !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("got %v", err)
	}
}

// refusingAddress is a port that is taken, so that nobody else gets it, but at
// which nobody listens.
func refusingAddress(t *testing.T) string {
	t.Helper()
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(socket) })
	if err := syscall.Bind(socket, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	name, err := syscall.Getsockname(socket)
	if err != nil {
		t.Fatal(err)
	}
	in4 := name.(*syscall.SockaddrInet4)
	return (&net.TCPAddr{IP: in4.Addr[:], Port: in4.Port}).String()
}

func TestHangingServerIsLeftWhenTheContextEnds(t *testing.T) {
	t.Parallel()
	for _, cause := range []error{eventqueue.ErrTimeout, eventqueue.ErrLockLost, eventqueue.ErrStopping} {
		t.Run(cause.Error(), func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancelCause(testContext(t))
			defer cancel(nil)
			left := make(chan struct{})
			target, _ := serve(t, func(_ http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				cancel(cause)
				<-r.Context().Done()
				close(left)
			})
			err := target.Handle(ctx, testRun())
			if outcomeOf(err) != retry || !errors.Is(err, cause) {
				t.Errorf("got %v", err)
			}
			await(t, "the end of the request", left)
		})
	}
}

// hijack takes the connection over, writes text and leaves the connection to
// then.
func hijack(text string, then func(net.Conn)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(err)
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, text)
		then(conn)
	}
}

func TestCutConnectionIsRetried(t *testing.T) {
	t.Parallel()
	cut := func(net.Conn) {}
	for _, c := range []struct{ name, text, want string }{
		{"before the answer", "", retry},
		{"in the status", "HTTP/1.1 2", retry},
		{"in the headers", "HTTP/1.1 200 OK\r\nContent-Le", retry},
		{"in the body of a success", "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nbegin", completed},
		{"in the body of a failure", "HTTP/1.1 404 Gone Fishing\r\nContent-Length: 1000\r\n\r\nbegin", permanent},
		{"in a chunk", "HTTP/1.1 500 Oops\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nbeg", retry},
		{"no HTTP at all", "\x00\xff SSH-2.0\r\n\r\n", retry},
		{"headers without end", "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 128<<10), retry},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			target, _ := serve(t, hijack(c.text, cut))
			if err := target.Handle(testContext(t), testRun()); outcomeOf(err) != c.want {
				t.Errorf("want %s, got %v", c.want, err)
			}
		})
	}
}

// TestErrorsOfEncryptedEventsHaveNothingThatTheTargetSent: it may repeat the value.
func TestErrorsOfEncryptedEventsHaveNothingThatTheTargetSent(t *testing.T) {
	t.Parallel()
	const canary = "ada@example.com"
	for name, text := range map[string]string{
		"text":          "HTTP/1.1 500 Oops\r\nContent-Length: 15\r\n\r\n" + canary,
		"redirect":      "HTTP/1.1 303 See Other\r\nLocation: /customers/" + canary + "\r\nContent-Length: 0\r\n\r\n",
		"no HTTP":       "HTTP/1.1 " + canary + "\r\n\r\n",
		"broken header": "HTTP/1.1 200 OK\r\n" + canary + "\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			target, _ := serve(t, hijack(text, func(net.Conn) {}))
			run := testRun()
			if err := target.Handle(testContext(t), run); err == nil || !strings.Contains(err.Error(), canary) {
				t.Errorf("of an event in the clear: %v", err)
			}
			run.Encrypted = true
			if err := target.Handle(testContext(t), run); err == nil || strings.Contains(err.Error(), canary) || !strings.Contains(err.Error(), "may repeat the value, which is encrypted") {
				t.Errorf("of an encrypted one: %v", err)
			}
		})
	}
}

// untilClosed returns when the other side has closed the connection.
func untilClosed(done chan<- struct{}) func(net.Conn) {
	return func(conn net.Conn) {
		_, _ = io.Copy(io.Discard, conn)
		close(done)
	}
}

func TestBodyThatNeverEndsHoldsNothingUp(t *testing.T) {
	t.Parallel()
	for name, head := range map[string]string{
		"success":             "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nbegin",
		"failure":             "HTTP/1.1 500 Oops\r\nContent-Length: 1000\r\n\r\nbegin",
		"switching protocols": "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\nbegin",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			closed := make(chan struct{})
			target, _ := serve(t, hijack(head, untilClosed(closed)))
			target.bodyTime = 1
			want := retry
			if name == "success" {
				want = completed
			}
			// The context has no deadline: only bodyTime ends the reading.
			if err := target.Handle(t.Context(), testRun()); outcomeOf(err) != want {
				t.Errorf("want %s, got %v", want, err)
			}
			await(t, "the end of the connection", closed)
		})
	}
}

func TestGiantBodyIsNotRead(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]string{200: completed, 500: retry} {
		ended := make(chan struct{})
		target, _ := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			defer close(ended)
			w.WriteHeader(status)
			for chunk := bytes.Repeat([]byte("x"), 64<<10); ; {
				if _, err := w.Write(chunk); err != nil {
					return
				}
			}
		})
		if err := target.Handle(testContext(t), testRun()); outcomeOf(err) != want {
			t.Errorf("%d: want %s, got %v", status, want, err)
		}
		await(t, "the end of the giant answer", ended)
	}
}

func TestConnectionsAreReused(t *testing.T) {
	t.Parallel()
	var opened atomic.Int32
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Ce-Retries") == "1" {
			w.WriteHeader(http.StatusInternalServerError)
		}
		_, _ = w.Write(bytes.Repeat([]byte("x"), drainBytes-1))
	}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			opened.Add(1)
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	target := targetFor(t, server.URL)
	for i := range 10 {
		run := testRun()
		run.Retries = i % 2
		if err := target.Handle(testContext(t), run); (err == nil) != (i%2 == 0) {
			t.Fatal(err)
		}
	}
	if n := opened.Load(); n != 1 {
		t.Errorf("%d connections were opened for ten events, one after the other", n)
	}
}

func TestCredentialsAreSentAndNeverPrinted(t *testing.T) {
	t.Parallel()
	_, server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "me" || password != "s3cret" || r.FormValue("token") != "s3cret" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		w.WriteHeader(http.StatusTeapot)
	})
	withSecrets := func(address string) string { return "http://me:s3cret@" + address + "/p?token=s3cret" }
	target := targetFor(t, withSecrets(strings.TrimPrefix(server.URL, "http://")))
	err := target.Handle(testContext(t), testRun())
	if err == nil || !strings.Contains(err.Error(), "418") {
		t.Errorf("the credentials did not arrive: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, text := range []string{
		err.Error(),
		target.String(),
		target.Handle(ended, testRun()).Error(),
		targetFor(t, withSecrets(refusingAddress(t))).Handle(testContext(t), testRun()).Error(),
		targetFor(t, withSecrets("no-such-host.invalid")).Handle(testContext(t), testRun()).Error(),
	} {
		if strings.Contains(text, "s3cret") || strings.Contains(text, "me:") {
			t.Errorf("a secret is printed: %s", text)
		}
	}
}

func TestNewRefusesBadURLsWithoutRepeatingThem(t *testing.T) {
	t.Parallel()
	for _, text := range badURLs {
		target, err := New(Config{URL: text})
		if err == nil {
			t.Errorf("%q was accepted as %s", text, target)
			continue
		}
		if strings.Contains(err.Error(), "s3cret") || !strings.Contains(err.Error(), "URL") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

var badURLs = []string{
	"", "example.com/push", "/push", "//example.com/push", "http://", "http:///push", "http://:80/", "https:example.com",
	"ftp://example.com", "unix:///socket", "file:///push", "http://exa mple.com", " http://example.com",
	"http://example.com:http/", "http://example.com:0/", "http://example.com:65536/", "http://[::1", "http://example.com/%zz",
	"http://example.com/#part", "http://example.com/\n", "me:s3cret@example.com", "http://me:s3#cret@example.com",
	"http://me:s3cret/@example.com", "http://me:s3cret @example.com",
}

func TestNewAcceptsGoodURLs(t *testing.T) {
	t.Parallel()
	for text, shown := range map[string]string{
		"http://example.com":             "http://example.com",
		"HTTPS://Example.com:8443/a%2Fb": "https://Example.com:8443/a%2Fb",
		"http://[::1]:80/?":              "http://[::1]:80/",
		"http://me:x@10.0.0.1/p?q=1":     "http://10.0.0.1/p?…",
		"https://bücher.example/ü":       "https://b%C3%BCcher.example/%C3%BC",
	} {
		target, err := New(Config{URL: text})
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if target.String() != shown {
			t.Errorf("%s is shown as %s, want %s", text, target, shown)
		}
	}
}
