package httpapi_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"eventsv2/access"
	"eventsv2/httpapi"
	"eventsv2/test/rig"
	"eventsv2/test/testenv"
)

// status reads the status of an answer.
func status(t *testing.T, answer *bufio.Reader) string {
	t.Helper()
	line, err := answer.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(line)[1]
}

// batch is a batch of greetings of about a number of KiB.
func batch(kib int) string {
	event := fmt.Sprintf(`{"canvas_id":%q,"module":"WORKER","name":"greet","value":%q}`, rig.Canvas, strings.Repeat("x", 64<<10))
	return `{"events":[` + strings.Repeat(event+",", kib/64-1) + event + `]}`
}

// TestStallingSenderDelaysNoOther: one token has large bodies that stall, more than may be in hand, and small ones with large
// headers. Those of another token are read meanwhile.
func TestStallingSenderDelaysNoOther(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	server := httptest.NewServer(c.api)
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	address := server.Listener.Addr().String()
	stalls, honest := c.token(rig.Canvas, access.Emit), c.token(rig.Canvas, access.Emit)
	slow, slowAnswer := c.open(address, honest, "/events", "Content-Length: 60000")
	answered(t, slowAnswer, asksForBody)
	honestBatch := func() {
		if code := c.post(server, honest, "/events/batch", strings.NewReader(batch(1024))); code != http.StatusCreated {
			t.Errorf("a batch of another token is answered with %d", code)
		}
	}
	refused := make(chan string, 8)
	for range cap(refused) {
		large, answer := c.open(address, stalls, "/events", "Transfer-Encoding: chunked")
		answered(t, answer, asksForBody)
		if _, err := fmt.Fprintf(large, "%x\r\n%s\r\n", 64<<10+1, strings.Repeat(" ", 64<<10+1)); err != nil {
			t.Fatal(err)
		}
		go func() {
			line, _ := answer.ReadString('\n')
			refused <- line
		}()
	}
	// When the turn of one has not come, another one has had it for as long.
	if line := <-refused; !strings.HasPrefix(line, "HTTP/1.1 503 ") {
		t.Errorf("one whose turn does not come is answered with %q", line)
	}
	honestBatch()
	for range 80 {
		_, answer := c.open(address, stalls, "/events", "Content-Length: 60000"+strings.Repeat("\r\nA: b", 5000))
		answered(t, answer, asksForBody)
	}
	honestBatch()
	if _, err := io.WriteString(slow, `{"unknown":"`+strings.Repeat("x", 60000-14)+`"}`); err != nil {
		t.Fatal(err)
	}
	if got := status(t, slowAnswer); got != "422" {
		t.Errorf("a slow one of another token is answered with %s", got)
	}
}

// post sends a body over the network, and returns the status.
func (c *client) post(server *httptest.Server, token, path string, body io.Reader) int {
	c.t.Helper()
	r, err := http.NewRequestWithContext(testenv.Context(c.t), http.MethodPost, server.URL+"/v1"+path, body)
	if err != nil {
		c.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		c.t.Fatal(err)
	}
	_ = answer.Body.Close()
	return answer.StatusCode
}

// panicking is a body that ends in a panic.
type panicking struct{ io.Reader }

func (p panicking) Read(b []byte) (int, error) {
	n, err := p.Reader.Read(b)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	return n, nil
}

// TestPanicWhileReadingFreesTheMemory of a large body, so that the next one has it.
func TestPanicWhileReadingFreesTheMemory(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	c.with(func(config *httpapi.Config) { config.MaxBufferedBytes = 26 << 20 })
	token := c.token(rig.Canvas, access.Emit)
	r := httptest.NewRequestWithContext(testenv.Context(t), http.MethodPost, "http://api.example/v1/events/batch", panicking{strings.NewReader(batch(128))})
	r.Header.Set("Authorization", "Bearer "+token)
	func() {
		defer func() { _ = recover() }()
		c.api.ServeHTTP(httptest.NewRecorder(), r)
		t.Error("the panic is lost")
	}()
	if w := c.send(token, http.MethodPost, "/events/batch", batch(6<<10)); w.Code != http.StatusCreated {
		t.Errorf("the next one is answered with %d: %s", w.Code, w.Body)
	}
}
