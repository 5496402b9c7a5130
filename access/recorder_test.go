package access_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"eventsv2/access"
	"eventsv2/eventqueue/audit"
	"eventsv2/test/testenv"
)

// TestRecorderBoundsEntries: each refusal is counted, one sender does not fill a log, and a flood hides no log-in.
func TestRecorderBoundsEntries(t *testing.T) {
	t.Parallel()
	pool, ctx := testenv.Pool(t), testenv.Context(t)
	tokens, log := access.NewTokens("", pool), audit.NewLog("", pool)
	_, secret, err := tokens.Create(ctx, ada, access.NewToken{Name: "known", Grant: access.Grant{Verbs: []access.Verb{access.Read}}})
	if err != nil {
		t.Fatal(err)
	}
	sessions, err := access.NewSessions(tokens, nil, 1e12)
	if err != nil {
		t.Fatal(err)
	}
	var counted atomic.Int64
	core, lines := observer.New(zap.InfoLevel)
	recorder := access.NewRecorder("", pool, zap.New(core), func(via string, status int) {
		if via == "api" && (status == http.StatusUnauthorized || status == http.StatusForbidden) {
			counted.Add(1)
		}
	})
	a := &access.Authenticator{Tokens: tokens}
	handler := recorder.Watch("api", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := a.Authenticate(r); err != nil {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		switch r.URL.Path {
		case "/login":
			if _, _, err := sessions.Begin(r.Context(), secret); err != nil {
				t.Error(err)
			}
		case "/forbidden":
			w.WriteHeader(http.StatusForbidden)
		}
	}))
	send := func(from, token, path string) {
		r := httptest.NewRequestWithContext(ctx, http.MethodGet, path, nil)
		r.RemoteAddr = from + ":9"
		r.Header.Set("Authorization", "Bearer "+token)
		handler.ServeHTTP(httptest.NewRecorder(), r)
	}
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- recorder.Run(running) }()

	send("192.0.2.1", "wrong", "/first")
	testenv.Eventually(t, "the first refusal is in the audit log at once", func() bool {
		entries, err := log.List(ctx, audit.Filter{Action: "refuse"}, 0, 10)
		return err == nil && len(entries) == 1 && entries[0].Name == "unknown" && entries[0].Source == "192.0.2.1" && strings.Contains(string(entries[0].Target), "GET /first")
	})
	for range 500 {
		send("192.0.2.1", "wrong", "/"+strings.Repeat("x", 10_000))
	}
	for n := range 100 {
		send(fmt.Sprintf("192.0.2.%d", n+1), "wrong", "/")
	}
	send("192.0.2.1", secret, "/forbidden")
	send("192.0.2.1", secret, "/login")
	send("192.0.2.1", secret, "/read")
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}

	if n := counted.Load(); n != 602 {
		t.Errorf("%d refusals were counted, want 602", n)
	}
	entries, err := log.List(ctx, audit.Filter{}, 0, 500)
	if err != nil {
		t.Fatal(err)
	}
	requests, rows, named := map[string]int{}, 0, false
	for _, e := range entries {
		var target struct{ Requests int }
		if err := json.Unmarshal(e.Target, &target); err != nil || len(e.Target) > 1000 {
			t.Errorf("the entry has %d bytes: %v", len(e.Target), err)
		}
		requests[e.Action] += target.Requests
		named = named || e.Action == "log_in" && e.Name == "token:known" && e.Source == "192.0.2.1"
		rows++
	}
	if requests["refuse"] != 602 || requests["log_in"] != 1 || !named || rows > 50 {
		t.Errorf("%d rows have %v requests, want 602 refused ones and a log-in of token:known (%t) in a few rows", rows, requests, named)
	}
	if lines.Len() > 50 || lines.FilterMessage("refused requests").Len() == 0 {
		t.Errorf("the log has %d lines", lines.Len())
	}
}

// TestRecorderNamesIdentities in the audit log.
func TestRecorderNamesIdentities(t *testing.T) {
	t.Parallel()
	pool, ctx := testenv.Pool(t), testenv.Context(t)
	tokens := access.NewTokens("", pool)
	token, secret, err := tokens.Create(ctx, ada, access.NewToken{Name: "known", Grant: access.Grant{Verbs: []access.Verb{access.Read}}})
	if err != nil {
		t.Fatal(err)
	}
	sessions, err := access.NewSessions(tokens, nil, 1e12)
	if err != nil {
		t.Fatal(err)
	}
	recorder := access.NewRecorder("", pool, nil, nil)
	var session string
	handler := recorder.Watch("dashboard", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/login" {
			session, _, err = sessions.Begin(r.Context(), secret)
		} else if _, err = sessions.Identify(r.Context(), session); err == nil {
			w.WriteHeader(http.StatusForbidden)
		}
	}))
	for _, path := range []string{"/login", "/block"} {
		handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodPost, path, nil))
		if err != nil {
			t.Fatal(err)
		}
	}
	over, cancel := context.WithCancel(ctx)
	cancel()
	if err := recorder.Run(over); err != nil {
		t.Fatal(err)
	}
	for action, first := range map[string]string{"log_in": "POST /login", "refuse": "POST /block"} {
		entries, err := audit.NewLog("", pool).List(ctx, audit.Filter{Action: action}, 0, 10)
		if err != nil || len(entries) != 1 || entries[0].Name != "token:known" || entries[0].Key != "token:"+token.ID.String() || entries[0].Via != "dashboard" ||
			!strings.Contains(string(entries[0].Target), first) {
			t.Errorf("%s: the log has %+v, %v", action, entries, err)
		}
	}
}
