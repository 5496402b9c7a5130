package hostile_test

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"eventsv2/access"
	"eventsv2/test/testenv"
)

// flood is many requests of one kind.
type flood struct {
	path, kind, credentials, body string
	onPort, stalls                bool
}

// TestManyLargeRequestsTakeLittleMemory sends 200 at once, of which some stall before their end until all others were answered.
func TestManyLargeRequestsTakeLittleMemory(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.seed()
	const api, atOnce = "application/json", 200
	reads := "Bearer " + r.token(access.Grant{Verbs: []access.Verb{access.Read}})
	all := "Bearer " + r.token(access.Grant{Verbs: access.Verbs()})
	webhook := "/webhooks/" + canvasA.String() + "/github"
	events := `{"events":` + list(300_000, "{}") + "}"
	kinds := []flood{
		{path: "/v1/events/batch", kind: api, credentials: all, body: events},
		{path: "/v1/events/batch", kind: api, credentials: reads, body: events},
		{path: "/v1/events/batch", kind: api, body: events},
		{path: "/v1/events/batch", kind: api, credentials: all, body: events, stalls: true},
		{path: "/v1/events/batch", kind: api, body: events, stalls: true},
		{path: "/v1/events", kind: api, credentials: all, body: manyKeys(30_000)},
		{path: "/v1/events", kind: api, credentials: all, body: `{"value":` + times(100_000, `{"a":`) + "1" + times(100_000, "}") + "}"},
		{path: "/v1/tokens", kind: api, credentials: all, body: `{"verbs":` + list(6_000, `"wrong"`) + "}"},
		{path: "/login", kind: form, body: times(1_000_000, "x")},
		{path: "/login", kind: form, body: "token=" + times(4_000, "x"), stalls: true},
		{path: "/events/2/edit", kind: form, credentials: all, body: "value=" + times(1_000_000, "v")},
		{path: "/events/2/edit", kind: form, credentials: all, body: "value=" + times(1_000_000, "v"), stalls: true},
		{path: webhook, kind: api, body: times(500_000, "x"), onPort: true},
		{path: webhook, kind: api, body: times(200_000, "x"), onPort: true, stalls: true},
	}
	before := r.memory("VmRSS")
	var answers, stalling sync.WaitGroup
	let := make(chan struct{})
	for i := range atOnce {
		if k := kinds[i%len(kinds)]; k.stalls {
			stalling.Go(func() { r.stall(k, let) })
		} else {
			answers.Go(func() { r.send(k) })
		}
	}
	answers.Wait()
	close(let)
	stalling.Wait()
	if a := r.ask(http.MethodGet, r.health+"/healthz", "", nil); a.status != http.StatusOK {
		t.Errorf("afterwards the worker is not healthy: %d %s", a.status, a.text)
	}
	if most := r.memory("VmHWM"); most >= before+moreMiB {
		t.Errorf("the worker took %d MiB, and %d before", most, before)
	} else {
		t.Logf("the worker took %d MiB, and %d before", most, before)
	}
	r.checkLog()
}

// server is the address that requests of a kind go to.
func (r *rig) server(k flood) string {
	if k.onPort {
		return r.health
	}
	return r.site
}

// send makes a request, and checks that the answer is a small refusal. A connection may be cut off.
func (r *rig) send(k flood) {
	a := r.ask(http.MethodPost, r.server(k)+k.path, k.body, func(h http.Header) {
		h.Set("Content-Type", k.kind)
		if k.credentials != "" {
			h.Set("Authorization", k.credentials)
		}
	})
	if a.status == 0 {
		return
	}
	if wrong := (identity{letIn: k.credentials != ""}).check(route{kind: k.kind}, k.body, a); wrong != "" || a.status < 400 {
		r.t.Errorf("%s with %d bytes %.60q: %s: %d with %d bytes %.300q", k.path, len(k.body), k.body, wrong, a.status, len(a.text), a.text)
	}
}

// stall sends all of a request but its last byte.
func (r *rig) stall(k flood, let <-chan struct{}) {
	connection, err := (&net.Dialer{}).DialContext(testenv.Context(r.t), "tcp", strings.TrimPrefix(r.server(k), "http://"))
	if err != nil {
		r.t.Error(err)
		return
	}
	defer func() { _ = connection.Close() }()
	r.sent.Add(1)
	header := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: %s\r\nContent-Length: %d\r\n", k.path, k.kind, len(k.body))
	if k.credentials != "" {
		header += "Authorization: " + k.credentials + "\r\n"
	}
	_, _ = connection.Write([]byte(header + "\r\n" + k.body[:len(k.body)-1])) // cut off, or not
	<-let
}
