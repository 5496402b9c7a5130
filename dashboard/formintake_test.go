package dashboard_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"eventsv2/access"
	"eventsv2/dashboard"
	"eventsv2/test/testenv"
)

// counting counts the requests in hand. left gets one for each that is answered.
type counting struct {
	http.Handler
	inHand  atomic.Int64
	entered chan struct{}
	left    chan struct{}
}

func (c *counting) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.inHand.Add(1)
	c.entered <- struct{}{}
	c.Handler.ServeHTTP(w, r)
	c.inHand.Add(-1)
	c.left <- struct{}{}
}

// unending sends the head of a form and a part of its body, and never the rest.
func unending(t *testing.T, server *httptest.Server, path, header string) net.Conn {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(testenv.Context(t), "tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_, err = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: %s\r\nSec-Fetch-Site: same-origin\r\nContent-Type: application/x-www-form-urlencoded\r\n%s\r\n\r\n",
		path, server.Listener.Addr(), header)
	if err == nil {
		rest := "token=evt_"
		if strings.HasPrefix(header, "Transfer-Encoding") {
			rest = "a\r\ntoken=evt_\r\n"
		}
		_, err = io.WriteString(conn, rest)
	}
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

// answered returns the status with which an unending form is answered.
func answered(t *testing.T, conn net.Conn) int {
	t.Helper()
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	return response.StatusCode
}

// sent sends a form over the network, with a token if there is one, and returns the status.
func sent(t *testing.T, server *httptest.Server, path, token string, fields url.Values) int {
	t.Helper()
	r, err := http.NewRequestWithContext(testenv.Context(t), http.MethodPost, server.URL+path, strings.NewReader(fields.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := (&http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	return response.StatusCode
}

// Whoever has no token holds a few megabytes of the program at most, however many connections they open, and keeps nobody from
// logging in.
func TestUnendingLoginsAreBounded(t *testing.T) {
	t.Parallel()
	const opened, most = 400, 4 << 20 / (32 << 10)
	q := newQueue(t)
	_, secret := q.token("nights", access.Grant{Verbs: access.Verbs()})
	pages := q.dashboard(dashboard.Config{Access: &access.Authenticator{Tokens: q.tokens()}})
	pages.SetFormTimeout(time.Hour)
	all := &counting{Handler: pages, entered: make(chan struct{}, opened+2), left: make(chan struct{}, opened+2)}
	server := httptest.NewServer(all)
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	headers := []string{"Content-Length: 4000", "Transfer-Encoding: chunked", "Content-Length: 3900000"}
	var first net.Conn
	ctx := testenv.Context(t)
	for i := range opened {
		conn := unending(t, server, []string{"/login", "/logout"}[i%2], headers[i%3])
		if i == 0 {
			first = conn
		}
		<-all.entered
	}
	if status := sent(t, server, "/login", "", url.Values{"token": {secret}}); status != http.StatusSeeOther {
		t.Errorf("a proper login: status %d", status)
	}
	for all.inHand.Load() > most { // those that were cut off are about to be answered
		select {
		case <-all.left:
		case <-ctx.Done():
			t.Fatalf("%d forms are in hand", all.inHand.Load())
		}
	}
	if status := answered(t, first); status != http.StatusServiceUnavailable {
		t.Errorf("the first of %d is answered with %d", opened, status)
	}
}

// A form that does not come to its end is given up after some seconds, also where the server has no time limits.
func TestSlowLoginIsCutOff(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	pages := q.dashboard(dashboard.Config{Access: &access.Authenticator{Tokens: q.tokens()}})
	pages.SetFormTimeout(time.Millisecond)
	server := served(t, pages)
	if status := answered(t, unending(t, server, "/login", "Content-Length: 100")); status != http.StatusRequestTimeout {
		t.Errorf("status %d", status)
	}
}

// A token that may read is enough to send forms: those that never end keep nobody from making changes.
func TestUnendingFormsAreBounded(t *testing.T) {
	t.Parallel()
	const opened = 20
	q := newQueue(t).seed()
	_, reads := q.token("reads", access.Grant{Verbs: []access.Verb{access.Read}})
	_, all := q.token("all", access.Grant{Verbs: access.Verbs()})
	pages := q.dashboard(dashboard.Config{Queue: q.queue(), Access: &access.Authenticator{Tokens: q.tokens()}})
	pages.SetFormTimeout(time.Hour)
	counted := &counting{Handler: pages, entered: make(chan struct{}, opened+2), left: make(chan struct{}, opened+2)}
	server := httptest.NewServer(counted)
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	var first net.Conn
	for i := range opened {
		conn := unending(t, server, "/events/"+q.ids[0].String()+"/edit", fmt.Sprintf("Content-Length: %d\r\nAuthorization: Bearer %s", 4<<20, reads))
		if i == 0 {
			first = conn
		}
		<-counted.entered
	}
	if status := answered(t, first); status != http.StatusServiceUnavailable {
		t.Errorf("the first of %d is answered with %d", opened, status)
	}
	if status := sent(t, server, "/handler/pause", all, handlerForm(seeded)); status != http.StatusSeeOther {
		t.Errorf("a proper form: status %d", status)
	}
}

// Nothing is read that is longer than any page sends it.
func TestLongFormsAreRefused(t *testing.T) {
	t.Parallel()
	q := newQueue(t).seed()
	_, secret := q.token("nights", access.Grant{Verbs: access.Verbs()})
	b := newBrowser(t, q.dashboard(dashboard.Config{Queue: q.queue(), Access: &access.Authenticator{Tokens: q.tokens()}}))
	b.wants(b.post("/login", url.Values{"token": {secret}, "next": {strings.Repeat("x", 4<<10)}}), http.StatusRequestEntityTooLarge, "4 KiB")
	b.leads(b.post("/login", url.Values{"token": {secret}, "next": {"/" + strings.Repeat("%", 1<<10)}}), "/")
	b.wants(b.post("/logout", url.Values{"x": {strings.Repeat("x", 4<<10)}}), http.StatusRequestEntityTooLarge)
	b.wants(b.post("/handler/pause", handlerForm(seeded, "reason", strings.Repeat("x", 64<<10))), http.StatusRequestEntityTooLarge, "64 KiB")
	b.leads(b.post("/events/"+q.ids[2].String()+"/edit", url.Values{"value": {`"` + strings.Repeat("x", 128<<10) + `"`}, "attributes": {"{}"}}), "/events/"+q.ids[2].String())
	b.wants(b.get("/workers"), 200)
	r := formRequest(testenv.Context(t), "/handler/pause", nil)
	r.Header.Set("Content-Type", "multipart/form-data; boundary=x")
	r.Body, r.ContentLength = io.NopCloser(strings.NewReader("--x--")), 5
	b.wants(b.do(r), http.StatusBadRequest, "cannot be read")
}
