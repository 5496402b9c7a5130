package service_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"eventsv2/internal/service"
	"eventsv2/test/testenv"
)

// webServer is a program that works until it is stopped.
type webServer struct {
	address string
	logs    *observer.ObservedLogs
	stop    context.CancelFunc
	ended   chan error
}

// serveWebhooks starts one that is ready.
func serveWebhooks(t *testing.T, webhooks http.HandlerFunc) *webServer {
	t.Helper()
	return startServer(t, func(context.Context) error { return nil }, webhooks)
}

// startServer starts one on a free port.
func startServer(t *testing.T, ready func(context.Context) error, webhooks http.Handler) *webServer {
	t.Helper()
	core, logs := observer.New(zap.InfoLevel)
	ctx, stop := context.WithCancel(testenv.Context(t))
	t.Cleanup(stop)
	s := &webServer{logs: logs, stop: stop, ended: make(chan error, 1)}
	working := make(chan struct{})
	go func() {
		s.ended <- service.RunWithWebhooks(ctx, 0, ready, webhooks, zap.New(core), func(ctx context.Context) error {
			close(working)
			<-ctx.Done()
			return nil
		})
	}()
	select {
	case <-working:
	case err := <-s.ended:
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(fmt.Sprint(logs.FilterMessage("health endpoints listen").All()[0].ContextMap()["address"]))
	if err != nil {
		t.Fatal(err)
	}
	s.address = net.JoinHostPort("127.0.0.1", port)
	return s
}

// send opens a connection and sends the text of a request.
func (s *webServer) send(t *testing.T, request string) net.Conn {
	t.Helper()
	connection, err := (&net.Dialer{}).DialContext(testenv.Context(t), "tcp", s.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	// A server that has read enough may answer and close before all of it is sent.
	_, _ = io.WriteString(connection, request)
	return connection
}

func TestReadiness(t *testing.T) {
	t.Parallel()
	s := startServer(t, func(context.Context) error { return errors.New("no database") }, nil)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for path, want := range map[string]int{"/healthz": 200, "/readyz": 503, "/": 404} {
		response, err := client.Get("http://" + s.address + path)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("%s answers %d, want %d", path, response.StatusCode, want)
		}
		if strings.Contains(string(body), "database") {
			t.Errorf("%s tells strangers: %s", path, body)
		}
	}
	s.stop()
	if err := <-s.ended; err != nil {
		t.Error(err)
	}
}

// TestASenderDoesNotHoldUpTheEnd: who is still sending when the program stops is cut
// off, and the program ends as if nobody had been there.
func TestASenderDoesNotHoldUpTheEnd(t *testing.T) {
	t.Parallel()
	reading, read := make(chan struct{}), make(chan error, 1)
	s := serveWebhooks(t, func(_ http.ResponseWriter, r *http.Request) {
		close(reading)
		_, err := io.ReadAll(r.Body)
		read <- err
	})
	s.send(t, "POST /webhooks/a/b HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 10\r\n\r\n12345")
	<-reading
	s.stop()
	if err := <-s.ended; err != nil {
		t.Errorf("the program ended with: %v", err)
	}
	if err := <-read; err == nil {
		t.Error("half a body was read to its end")
	}
	if n := s.logs.FilterMessage("requests were cut off").Len(); n != 1 {
		t.Errorf("the log says %d times that somebody was cut off: %v", n, s.logs.All())
	}
}

// TestAnswersAreGivenBeforeTheEnd to those whose request was there.
func TestAnswersAreGivenBeforeTheEnd(t *testing.T) {
	t.Parallel()
	begun, proceed := make(chan struct{}), make(chan struct{})
	s := serveWebhooks(t, func(w http.ResponseWriter, _ *http.Request) {
		close(begun)
		<-proceed
		w.WriteHeader(http.StatusNoContent)
	})
	connection := s.send(t, "POST /webhooks/a/b HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
	<-begun
	s.stop()
	close(proceed)
	answer, err := io.ReadAll(connection)
	if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 204 ") {
		t.Errorf("the answer is %q, %v", answer, err)
	}
	if err := <-s.ended; err != nil {
		t.Error(err)
	}
}

// TestTheWholePathIsTheHandlers, as it came, and so are many headers: nobody else
// answers for it.
func TestTheWholePathIsTheHandlers(t *testing.T) {
	t.Parallel()
	s := serveWebhooks(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Saw", fmt.Sprint(r.URL.Path, " ", len(r.Header.Values("X-Sig"))))
		w.WriteHeader(http.StatusTeapot)
	})
	signature := "X-Sig: sha256=" + strings.Repeat("0", 64) + "\r\n"
	for path, c := range map[string]struct {
		more, want string
	}{
		"/webhooks/a/b":      {"", "/webhooks/a/b 0"},
		"/webhooks//b":       {"", "/webhooks//b 0"},
		"/webhooks/a/../b":   {"", "/webhooks/a/../b 0"},
		"/webhooks":          {"", "/webhooks 0"},
		"/webhooks/":         {"", "/webhooks/ 0"},
		"/webhooks/many":     {strings.Repeat(signature, 10_000), "/webhooks/many 10000"},
		"/webhooks/long":     {"X-Sig: " + strings.Repeat(signature[7:78]+",", 10_000) + "\r\n", "/webhooks/long 1"},
		"/webhooks/%2e%2e/a": {"", "/webhooks/../a 0"},
	} {
		connection := s.send(t, "POST "+path+" HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 0\r\n"+c.more+"\r\n")
		answer, err := io.ReadAll(connection)
		if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 418 ") || !strings.Contains(string(answer), "\r\nSaw: "+c.want+"\r\n") {
			t.Errorf("%s: %.200q, %v", path, answer, err)
		}
	}
	s.stop()
	if err := <-s.ended; err != nil {
		t.Error(err)
	}
}
