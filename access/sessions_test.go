package access_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"eventsv2/access"
	"eventsv2/test/testenv"
)

// TestSessionsEndWithTheirToken has a session let in whom its token lets in, in every program with the key, until the session
// or the token ends.
func TestSessionsEndWithTheirToken(t *testing.T) {
	t.Parallel()
	pool, ctx := testenv.Pool(t), testenv.Context(t)
	tokens := access.NewTokens("", pool)
	token, secret, err := tokens.Create(ctx, ada, access.NewToken{Name: "browser", Grant: access.Grant{Verbs: []access.Verb{access.Read}}})
	if err != nil {
		t.Fatal(err)
	}
	sessions := func(key []byte, lasts time.Duration) *access.Sessions {
		s, err := access.NewSessions(tokens, key, lasts)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	begin := func(s *access.Sessions) string {
		session, who, err := s.Begin(ctx, secret)
		if err != nil || who.Name != "token:browser" {
			t.Fatalf("%+v: %v", who, err)
		}
		if strings.Contains(session, secret) {
			t.Fatal("the session shows the token")
		}
		return session
	}
	key := []byte(strings.Repeat("k", access.MinSessionKeyBytes))
	shared, same, alone := sessions(key, time.Hour), sessions(key, time.Hour), sessions(nil, time.Hour)
	session := begin(shared)
	for _, s := range []*access.Sessions{shared, same} {
		if who, err := s.Identify(ctx, session); err != nil || who.Name != "token:browser" || !who.MayEverywhere(access.Read) || who.MayAnywhere(access.Operate) {
			t.Errorf("%+v: %v", who, err)
		}
	}
	refused := func(s *access.Sessions, session, what string) {
		t.Helper()
		if who, err := s.Identify(ctx, session); !errors.Is(err, access.ErrRefused) {
			t.Errorf("%s lets in %+v: %v", what, who, err)
		}
	}
	short := sessions(key, time.Nanosecond)
	refused(alone, session, "another key")
	refused(short, begin(short), "a session that has ended")
	for what, wrong := range map[string]string{"nothing": "", "a token": secret, "no base64": "?", "a changed session": "A" + session[1:] + "A", "a long one": strings.Repeat("A", 1<<20)} {
		refused(shared, wrong, what)
	}
	if _, _, err := shared.Begin(ctx, access.Prefix+strings.Repeat("A", 43)); !errors.Is(err, access.ErrRefused) {
		t.Errorf("an unknown token: %v", err)
	}
	if _, err := tokens.Revoke(ctx, ada, token.ID); err != nil {
		t.Fatal(err)
	}
	refused(shared, session, "the session of a revoked token")
	for _, lasts := range []time.Duration{0, -time.Second} {
		if _, err := access.NewSessions(tokens, nil, lasts); err == nil {
			t.Errorf("sessions last %s", lasts)
		}
	}
	if _, err := access.NewSessions(tokens, key[1:], time.Hour); err == nil || !strings.Contains(err.Error(), "31 bytes") {
		t.Errorf("a short key: %v", err)
	}
}

// A session that is logged out lets nobody in, in no program with the key; others with the token go on.
func TestEndedSessionsAreRefused(t *testing.T) {
	t.Parallel()
	pool, ctx := testenv.Pool(t), testenv.Context(t)
	tokens := access.NewTokens("", pool)
	_, secret, err := tokens.Create(ctx, ada, access.NewToken{Name: "browser", Grant: access.Grant{Verbs: []access.Verb{access.Read}}})
	if err != nil {
		t.Fatal(err)
	}
	var programs []*access.Sessions
	for range 2 {
		s, err := access.NewSessions(tokens, []byte(strings.Repeat("k", access.MinSessionKeyBytes)), time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		programs = append(programs, s)
	}
	var sessions, keys []string
	for range 2 {
		session, _, err := programs[0].Begin(ctx, secret)
		if err != nil {
			t.Fatal(err)
		}
		sessions, keys = append(sessions, session), append(keys, programs[1].Key(session))
	}
	stored := func() (n int) {
		if err := pool.QueryRow(ctx, `SELECT count(*) FROM ended_sessions`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	for _, session := range []string{sessions[0], sessions[0], "", secret, sessions[0] + "A"} {
		if err := programs[0].End(ctx, session); err != nil {
			t.Fatal(err)
		}
	}
	if n := stored(); n != 1 {
		t.Errorf("%d sessions are stored, want 1", n)
	}
	for _, program := range programs {
		if who, err := program.Identify(ctx, sessions[0]); !errors.Is(err, access.ErrRefused) {
			t.Errorf("a session that was logged out lets in %+v: %v", who, err)
		}
		if _, err := program.Identify(ctx, sessions[1]); err != nil {
			t.Errorf("the other session: %v", err)
		}
	}
	if ended, err := tokens.Ended(ctx, append(keys, "oidc:ada")); err != nil || len(ended) != 1 || ended[0] != keys[0] {
		t.Errorf("of %v have ended %v: %v", keys, ended, err)
	}
	if _, err := pool.Exec(ctx, `UPDATE ended_sessions SET ends_at = now() - interval '2 hours'`); err != nil {
		t.Fatal(err)
	}
	if err := programs[0].End(ctx, sessions[1]); err != nil || stored() != 1 {
		t.Errorf("a session that would have ended by itself is still stored: %v", err)
	}
}
