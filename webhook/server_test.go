package webhook_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/test/testenv"
	"eventsv2/webhook"
)

// serve starts a real server with a source that trusts everybody.
func serve(t *testing.T, config webhook.Config) (r *rig, address string) {
	t.Helper()
	config.Sources = []webhook.Source{source(webhook.ToHandler(key))}
	r = newRig(t, config)
	server := httptest.NewServer(r.handler)
	t.Cleanup(server.Close)
	return r, strings.TrimPrefix(server.URL, "http://")
}

// TestOversizedBodyIsRefused, announced or not.
func TestOversizedBodyIsRefused(t *testing.T) {
	t.Parallel()
	r, address := serve(t, webhook.Config{MaxBodyBytes: 1000})
	body := func(size int) string { return `"` + strings.Repeat("x", size-2) + `"` }
	for _, c := range []struct {
		body   io.Reader
		status int
	}{
		{strings.NewReader(body(1000)), 200},
		{strings.NewReader(body(1001)), 413},
		{struct{ io.Reader }{strings.NewReader(body(1000))}, 200}, // chunked, without a length
		{struct{ io.Reader }{strings.NewReader(body(1001))}, 413},
		{struct{ io.Reader }{strings.NewReader(body(1 << 20))}, 413},
		{http.NoBody, 400},
	} {
		request, err := http.NewRequestWithContext(testenv.Context(t), http.MethodPost, "http://"+address+"/webhooks/"+canvas.String()+"/hook", c.body)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		rest, _ := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if answer.StatusCode != c.status || len(rest) > 0 {
			t.Errorf("length %d: status %d, want %d; %q; %v", request.ContentLength, answer.StatusCode, c.status, rest, r.reasons())
		}
	}
	if n := len(r.events()); n != 2 {
		t.Errorf("%d events, want 2", n)
	}
}

// TestCompressedBodyIsNotUnpacked: what is signed are the bytes as they come.
func TestCompressedBodyIsNotUnpacked(t *testing.T) {
	t.Parallel()
	verifier, err := webhook.GitHub("first")
	r := of(t, verifier, err)
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = w.Write([]byte(`{}`))
	_ = w.Close()
	h := headers("X-Hub-Signature-256", "sha256="+hexSum("first", packed.String()), "X-GitHub-Delivery", "d", "X-GitHub-Event", "push")
	r.refuses("gzip that nobody announces", http.StatusBadRequest, h, packed.Bytes())
	h.Set("Content-Encoding", "gzip")
	r.refuses("gzip", http.StatusUnsupportedMediaType, h, packed.Bytes())
	h.Set("X-Hub-Signature-256", "sha256="+hexSum("first", "{}"))
	r.refuses("gzip with a signature of what is in it", http.StatusUnsupportedMediaType, h, packed.Bytes())
}

// TestSlowAndBrokenClientsAreCutOff, and leave nothing.
func TestSlowAndBrokenClientsAreCutOff(t *testing.T) {
	t.Parallel()
	r, address := serve(t, webhook.Config{ReadTimeout: 50 * time.Millisecond})
	for what, half := range map[string]string{
		"half a body":              "Content-Length: 10\r\n\r\n12345",
		"half a chunk":             "Transfer-Encoding: chunked\r\n\r\nA\r\n12345",
		"a body that is not there": "Content-Length: 10\r\n\r\n",
	} {
		connection, err := (&net.Dialer{}).DialContext(testenv.Context(t), "tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		_, err = fmt.Fprintf(connection, "POST /webhooks/%s/hook HTTP/1.1\r\nHost: x\r\n%s", canvas, half)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := io.ReadAll(connection) // until it is cut off
		if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 408 ") {
			t.Errorf("%s: %q, %v", what, answer, err)
		}
		_ = connection.Close()
	}
	if n := len(r.events()); n != 0 {
		t.Errorf("%d events of halves", n)
	}
}

// TestAnnouncedOversizedBodyIsNotRead: the answer comes before the body.
func TestAnnouncedOversizedBodyIsNotRead(t *testing.T) {
	t.Parallel()
	_, address := serve(t, webhook.Config{MaxBodyBytes: 1000, ReadTimeout: time.Hour})
	connection, err := (&net.Dialer{}).DialContext(testenv.Context(t), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = connection.Close() }()
	_ = connection.SetDeadline(time.Now().Add(2 * time.Minute))
	if _, err := fmt.Fprintf(connection, "POST /webhooks/%s/hook HTTP/1.1\r\nHost: x\r\nContent-Length: 1001\r\n\r\n", canvas); err != nil {
		t.Fatal(err)
	}
	if answer, err := bufio.NewReader(connection).ReadString('\n'); err != nil || !strings.HasPrefix(answer, "HTTP/1.1 413 ") {
		t.Errorf("%q, %v", answer, err)
	}
}

// TestOldestStalledBodyMakesRoom: stalled bodies use up the memory; then the next sender
// is served, and the body that began first is cut off.
func TestOldestStalledBodyMakesRoom(t *testing.T) {
	t.Parallel()
	const size = 200_000
	r, address := serve(t, webhook.Config{MaxBodyBytes: size, MaxBufferedBytes: 2*size + 100_000, ReadTimeout: time.Hour})
	var stalled []net.Conn
	for i := range 3 {
		connection, err := (&net.Dialer{}).DialContext(testenv.Context(t), "tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = connection.Close() }()
		if _, err := fmt.Fprintf(connection, "POST /webhooks/%s/hook HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n", canvas, size); err != nil {
			t.Fatal(err)
		}
		// It is being read when the server has asked for it.
		if answer, err := bufio.NewReader(connection).ReadString('\n'); err != nil || answer != "HTTP/1.1 100 Continue\r\n" {
			t.Fatalf("%d: %q, %v", i, answer, err)
		}
		stalled = append(stalled, connection)
	}
	body := `"` + strings.Repeat("x", size-2) + `"`
	for range 2 {
		answer, err := http.Post("http://"+address+"/webhooks/"+canvas.String()+"/hook", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if _ = answer.Body.Close(); answer.StatusCode != http.StatusOK {
			t.Errorf("a body that comes at once is answered with %d: %v", answer.StatusCode, r.reasons())
		}
	}
	// The last one was not in the way of any.
	if _, err := io.WriteString(stalled[2], body); err != nil {
		t.Fatal(err)
	}
	if answer, err := bufio.NewReader(stalled[2]).ReadString('2'); err != nil || !strings.Contains(answer, "HTTP/1.1 2") {
		t.Fatalf("the one that had room: %q, %v", answer, err)
	}
	for i, connection := range stalled[:2] {
		answer, err := io.ReadAll(connection)
		if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 503 ") || !strings.Contains(string(answer), "\r\nRetry-After: 1\r\n") {
			t.Errorf("stalled %d: %q, %v", i, answer, err)
		}
	}
}

// TestRequestIsRefusedWhileAllMemoryIsInUse: bodies that have been read keep their room
// until they are answered, and give it back then.
func TestRequestIsRefusedWhileAllMemoryIsInUse(t *testing.T) {
	t.Parallel()
	casting, proceed := make(chan struct{}), make(chan struct{})
	r := newRig(t, webhook.Config{MaxBodyBytes: 100, MaxBufferedBytes: 70_000, Sources: []webhook.Source{source(func(_ context.Context, r *webhook.Request) ([]eventqueue.NewEvent, error) {
		if string(r.Body) == "held" {
			casting <- struct{}{}
			<-proceed
		}
		return nil, nil
	})}})
	for range 3 {
		statuses := make(chan int, 2)
		for range 2 {
			go func() { statuses <- r.post(nil, []byte("held")).Code }()
			select {
			case <-casting:
			case status := <-statuses:
				t.Fatalf("there is no room for one of two: %d", status)
			}
		}
		r.refuses("a third", http.StatusServiceUnavailable, nil, []byte("1"))
		for range 2 {
			proceed <- struct{}{}
			if status := <-statuses; status != http.StatusOK {
				t.Errorf("one of two: %d", status)
			}
		}
	}
}
