package httpapi_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"eventsv2/access"
	"eventsv2/httpapi"
	"eventsv2/test/rig"
	"eventsv2/test/testenv"
)

// with has the client use an API of another configuration.
func (c *client) with(change func(config *httpapi.Config)) {
	c.t.Helper()
	config := httpapi.Config{Store: c.Store, Queue: c.Queue, Bulk: c.bulk, Access: &access.Authenticator{Tokens: c.tokens}, PerSecond: 1000, Logger: testenv.Logger(c.t)}
	change(&config)
	api, err := httpapi.New(config)
	if err != nil {
		c.t.Fatal(err)
	}
	c.api = api
}

// open begins a request with a body on a connection of its own, up to where the server asks for the body.
func (c *client) open(address, token, path, length string) (net.Conn, *bufio.Reader) {
	c.t.Helper()
	connection, err := (&net.Dialer{}).DialContext(testenv.Context(c.t), "tcp", address)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = connection.Close() })
	if _, err := fmt.Fprintf(connection, "POST /v1%s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nExpect: 100-continue\r\n%s\r\n\r\n", path, token, length); err != nil {
		c.t.Fatal(err)
	}
	return connection, bufio.NewReader(connection)
}

// answered checks the beginning of what a server sends, and returns the rest.
func answered(t *testing.T, answer *bufio.Reader, want string) string {
	t.Helper()
	got := make([]byte, len(want))
	if _, err := io.ReadFull(answer, got); err != nil || string(got) != want {
		t.Fatalf("%q, %v, want %q", got, err, want)
	}
	if strings.HasPrefix(want, "HTTP/1.1 100") {
		return ""
	}
	rest, err := io.ReadAll(answer)
	if err != nil {
		t.Fatal(err)
	}
	return string(rest)
}

const asksForBody = "HTTP/1.1 100 Continue\r\n\r\n"

// TestStalledBodyMakesRoom: when a body that does not come takes all memory, one of another token is served, and it is cut off.
func TestStalledBodyMakesRoom(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	c.with(func(config *httpapi.Config) { config.MaxBufferedBytes = 26 << 20 })
	server := httptest.NewServer(c.api)
	t.Cleanup(server.Close)
	address := server.Listener.Addr().String()
	stalling, stalled := c.open(address, c.token(rig.Canvas, access.Emit), "/events", "Content-Length: 8000000")
	answered(t, stalled, asksForBody)
	second, served := c.open(address, c.token(rig.Canvas, access.Emit), "/events", "Content-Length: 7999999")
	answered(t, served, asksForBody)
	if _, err := io.WriteString(stalling, strings.Repeat(" ", 100_000)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(second, `{"unknown":"`+strings.Repeat("x", 7999999-14)+`"}`); err != nil {
		t.Fatal(err)
	}
	if rest := answered(t, stalled, "HTTP/1.1 503 "); !strings.Contains(rest, "\r\nRetry-After: 1\r\n") || !strings.Contains(rest, "application/problem+json") {
		t.Errorf("the stalled one is answered with %q", rest)
	}
	line, err := served.ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "HTTP/1.1 422 ") {
		t.Errorf("the next one is answered with %q, %v", line, err)
	}
}

// TestBodiesOfUnknownLengthAreBounded: small ones leave room for others, larger ones are read as well, and those beyond the limit are refused.
func TestBodiesOfUnknownLengthAreBounded(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	c.with(func(config *httpapi.Config) { config.MaxBufferedBytes = 26 << 20 })
	server := httptest.NewServer(c.api)
	t.Cleanup(server.Close)
	token := c.token(rig.Canvas, access.Emit, access.Administer)
	event := func(n int) string {
		return fmt.Sprintf(`{"canvas_id":%q,"module":"WORKER","name":"greet","value":%q}`, rig.Canvas, strings.Repeat("x", n))
	}
	first, oldest := c.open(server.Listener.Addr().String(), token, "/events", "Transfer-Encoding: chunked")
	answered(t, oldest, asksForBody)
	for range 9 {
		_, next := c.open(server.Listener.Addr().String(), token, "/events", "Transfer-Encoding: chunked")
		answered(t, next, asksForBody)
	}
	if _, err := fmt.Fprintf(first, "%x\r\n%s\r\n0\r\n\r\n", len(event(10)), event(10)); err != nil {
		t.Fatal(err)
	}
	if line, err := oldest.ReadString('\n'); err != nil || !strings.HasPrefix(line, "HTTP/1.1 201 ") {
		t.Errorf("the first of ten small ones is answered with %q, %v", line, err)
	}
	for _, o := range []struct {
		path, body string
		want       int
	}{{"/events", event(10), 201}, {"/events", event(200_000), 201}, {"/events", event(9 << 20), 413}, {"/crons/enable", event(65 << 10), 413}, {"/crons/enable", event(1000), 422}} {
		if got := c.post(server, token, o.path, io.MultiReader(strings.NewReader(o.body))); got != o.want {
			t.Errorf("%s with %d bytes: %d, want %d", o.path, len(o.body), got, o.want)
		}
	}
}

// unread is a body that must not be read before the request is answered.
type unread struct {
	t      *testing.T
	answer *httptest.ResponseRecorder
}

func (u unread) Read([]byte) (int, error) {
	if u.answer.Body.Len() == 0 {
		u.t.Error("the body is read")
	}
	return 0, io.EOF
}

// TestForbiddenBodiesAreNotRead: without the verb, without credentials, with a length beyond the limit, and with an unusable query.
func TestForbiddenBodiesAreNotRead(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	reader, all := c.token(rig.Canvas, access.Read), c.token(rig.Canvas, access.Verbs()...)
	routes, _ := c.routes()
	for _, r := range routes {
		for _, o := range []struct {
			token, query string
			length       int64
			want         int
		}{{reader, "", -1, 403}, {"wrong", "", -1, 401}, {all, "", 8<<20 + 1, 413}, {all, "?a=%00", -1, 400}} {
			w := httptest.NewRecorder()
			request := httptest.NewRequestWithContext(testenv.Context(t), r.method, "http://api.example/v1"+r.path+o.query, unread{t, w})
			request.ContentLength = o.length
			request.Header.Set("Authorization", "Bearer "+o.token)
			c.api.ServeHTTP(w, request)
			if w.Code != o.want {
				t.Errorf("%s %s%s of %d bytes: %d, want %d", r.method, r.path, o.query, o.length, w.Code, o.want)
			}
		}
	}
}

// broken is a connection on which nothing can be written.
type broken struct{ *httptest.ResponseRecorder }

func (broken) Write([]byte) (int, error) { return 0, os.ErrClosed }

// TestAnswersToClosedConnectionsAreLogged at debug, and end neither in a panic nor on the standard error output.
func TestAnswersToClosedConnectionsAreLogged(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	core, logged := observer.New(zap.DebugLevel)
	c.with(func(config *httpapi.Config) { config.Logger = zap.New(core) })
	token := c.token(rig.Canvas, access.Read)
	for i, path := range []string{"/audit", "/events/1", "/events?unknown=1"} {
		r := httptest.NewRequestWithContext(testenv.Context(t), http.MethodGet, "http://api.example/v1"+path, nil)
		r.Header.Set("Authorization", "Bearer "+token)
		c.api.ServeHTTP(broken{httptest.NewRecorder()}, r)
		lines := logged.All()
		if len(lines) != i+1 || lines[i].Level != zap.DebugLevel || !errors.Is(lines[i].Context[0].Interface.(error), os.ErrClosed) {
			t.Errorf("%s: %v", path, lines)
		}
	}
}

// TestRefusedBodyIsReadToItsEnd: a client that sends all of a large body before it reads sees the answer.
func TestRefusedBodyIsReadToItsEnd(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	server := httptest.NewServer(c.api)
	t.Cleanup(server.Close)
	connection, err := (&net.Dialer{}).DialContext(testenv.Context(t), "tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = connection.Close() }()
	const size = 12 << 20
	if _, err := fmt.Fprintf(connection, "POST /v1/events HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", size, strings.Repeat("x", size)); err != nil {
		t.Fatalf("the body is not read: %v", err)
	}
	if line, err := bufio.NewReader(connection).ReadString('\n'); err != nil || !strings.HasPrefix(line, "HTTP/1.1 401 ") {
		t.Errorf("it is answered with %q, %v", line, err)
	}
}
