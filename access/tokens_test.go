package access_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"eventsv2/access"
	"eventsv2/eventqueue"
	"eventsv2/eventqueue/audit"
	"eventsv2/test/testenv"
)

var (
	canvas  = eventqueue.CanvasID{0xca, 15: 1}
	another = eventqueue.CanvasID{0xca, 15: 2}
	ada     = audit.Actor{Name: "os:ada", Source: "here", Via: "test"}
)

// TestTokensAreAuditedFromCreationToEnd follows a token from its creation to its end, and has each step in the audit log.
func TestTokensAreAuditedFromCreationToEnd(t *testing.T) {
	t.Parallel()
	pool, ctx := testenv.Pool(t), testenv.Context(t)
	tokens := access.NewTokens("", pool)
	if has, err := tokens.Any(ctx); has || err != nil {
		t.Fatalf("a new database has a token: %v %v", has, err)
	}
	grant := access.Grant{Canvases: []eventqueue.CanvasID{canvas}, Verbs: []access.Verb{access.Read, access.Operate}}
	token, secret, err := tokens.Create(ctx, ada, access.NewToken{Name: "deployments", Grant: grant, For: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(secret, access.Prefix) || len(secret) != len(access.Prefix)+43 {
		t.Errorf("the secret %d bytes long is not of 256 bits", len(secret))
	}
	var stored string
	if err := pool.QueryRow(ctx, `SELECT access_tokens::text || (SELECT string_agg(audit_log::text, '') FROM audit_log) FROM access_tokens`).Scan(&stored); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(stored, secret) || strings.Contains(stored, strings.TrimPrefix(secret, access.Prefix)) {
		t.Error("the database has the secret")
	}
	identity, err := tokens.Identify(ctx, secret)
	if err != nil || identity.Name != "token:deployments" || !identity.May(access.Operate, canvas) || identity.May(access.Operate, another) ||
		identity.May(access.Administer, canvas) || identity.MayEverywhere(access.Read) {
		t.Errorf("the token is %+v, %v", identity, err)
	}
	if has, err := tokens.Any(ctx); !has || err != nil {
		t.Errorf("there is no token: %v", err)
	}
	if revoked, err := tokens.Revoke(ctx, ada, token.ID); err != nil || revoked == nil || revoked.RevokedAt == nil {
		t.Fatalf("revoked %+v: %v", revoked, err)
	}
	if _, err := tokens.Identify(ctx, secret); !errors.Is(err, access.ErrRefused) {
		t.Errorf("a revoked token is answered with %v", err)
	}
	if again, err := tokens.Revoke(ctx, ada, token.ID); again != nil || err != nil {
		t.Errorf("revoked twice: %+v %v", again, err)
	}
	if has, err := tokens.Any(ctx); !has || err != nil {
		t.Errorf("the last token was revoked, and the door that it closed is open again: %v", err)
	}
	entries, err := audit.NewLog("", pool).List(ctx, audit.Filter{Canvases: []eventqueue.CanvasID{canvas}}, 0, 10)
	if err != nil || len(entries) != 2 || entries[0].Action != "revoke_token" || entries[1].Action != "create_token" || entries[1].Name != ada.Name ||
		entries[1].Before != nil || !strings.Contains(string(entries[0].After), "revoked_at") {
		t.Errorf("the audit log has %+v, %v", entries, err)
	}
	if list, err := tokens.List(ctx); err != nil || len(list) != 1 || list[0].Valid() || list[0].CreatedBy != ada.Name {
		t.Errorf("the list is %+v, %v", list, err)
	}
}

// TestEnsureCreatesOneTokenWhileItIsValid is created once while it is valid, by however many at once, and again after its end.
func TestEnsureCreatesOneTokenWhileItIsValid(t *testing.T) {
	t.Parallel()
	pool, ctx := testenv.Pool(t), testenv.Context(t)
	tokens := access.NewTokens("", pool)
	local := access.NewToken{Name: "local", Grant: access.Grant{Verbs: []access.Verb{access.Read}}}
	secrets := make([]string, 2)
	// Nobody writes before both are under way.
	holder, err := pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := holder.Exec(ctx, `LOCK TABLE access_tokens IN SHARE MODE`); err != nil {
		t.Fatal(err)
	}
	var group errgroup.Group
	for i := range secrets {
		group.Go(func() (err error) {
			_, secrets[i], err = tokens.CreateUnlessExists(ctx, ada, local)
			return err
		})
	}
	testenv.Eventually(t, "both wait for the table", func() bool {
		var waiting int
		err := holder.QueryRow(ctx, `SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'access_tokens'::regclass`).Scan(&waiting)
		return err == nil && waiting == len(secrets)
	})
	if err := holder.Rollback(ctx); err != nil {
		t.Fatal(err)
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	made := slices.DeleteFunc(secrets, func(secret string) bool { return secret == "" })
	if len(made) != 1 {
		t.Fatalf("%d were created at once: want one", len(made))
	}
	if identity, err := tokens.Identify(ctx, made[0]); err != nil || identity.Name != "token:local" {
		t.Errorf("the token is of %+v, %v", identity, err)
	}
	if _, secret, err := tokens.CreateUnlessExists(ctx, ada, access.NewToken{Name: "another", Grant: local.Grant}); secret == "" || err != nil {
		t.Errorf("one of another name is not created: %v", err)
	}
	existing, _, err := tokens.CreateUnlessExists(ctx, ada, local)
	if err != nil || existing.Name != "local" || !existing.Valid() {
		t.Fatalf("the one that exists is %+v, %v", existing, err)
	}
	if _, err := tokens.Revoke(ctx, ada, existing.ID); err != nil {
		t.Fatal(err)
	}
	if token, secret, err := tokens.CreateUnlessExists(ctx, ada, local); secret == "" || token.ID == existing.ID || err != nil {
		t.Errorf("after it was revoked, there is no new one: %+v, %v", token, err)
	}
	if _, err := pool.Exec(ctx, `UPDATE access_tokens SET expires_at = clock_timestamp() WHERE name = 'local'`); err != nil {
		t.Fatal(err)
	}
	if _, secret, err := tokens.CreateUnlessExists(ctx, ada, local); secret == "" || err != nil {
		t.Errorf("after it has expired, there is no new one: %v", err)
	}
	if entries, err := audit.NewLog("", pool).List(ctx, audit.Filter{Action: "create_token"}, 0, 10); err != nil || len(entries) != 4 {
		t.Errorf("the audit log has %d rows for 4 tokens, %v", len(entries), err)
	}
}

// TestUnusableTokensAreRefused are refused alike, whatever is wrong with them.
func TestUnusableTokensAreRefused(t *testing.T) {
	t.Parallel()
	pool, ctx := testenv.Pool(t), testenv.Context(t)
	tokens := access.NewTokens("", pool)
	_, secret, err := tokens.Create(ctx, ada, access.NewToken{Name: "old", Grant: access.Grant{Verbs: access.Verbs()}, For: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(ctx, `UPDATE access_tokens SET expires_at = clock_timestamp()`); err != nil {
		t.Fatal(err)
	}
	for name, secret := range map[string]string{
		"expired": secret, "unknown": access.Prefix + strings.Repeat("A", 43), "short": access.Prefix + "A", "empty": "",
		"without prefix": strings.TrimPrefix(secret, access.Prefix), "NUL": access.Prefix + "\x00", "a JWT of nobody": "e30.e30.AA", "long": strings.Repeat("x", 1<<20),
	} {
		a := access.Authenticator{Tokens: tokens}
		if identity, err := a.BySecret(ctx, secret); !errors.Is(err, access.ErrRefused) || identity.Grants != nil {
			t.Errorf("%s: %+v, %v", name, identity, err)
		}
	}
	for name, token := range map[string]access.NewToken{
		"no name":      {Grant: access.Grant{Verbs: access.Verbs()}},
		"control":      {Name: "a\x1b", Grant: access.Grant{Verbs: access.Verbs()}},
		"long":         {Name: strings.Repeat("a", 101), Grant: access.Grant{Verbs: access.Verbs()}},
		"no verb":      {Name: "a"},
		"unknown verb": {Name: "a", Grant: access.Grant{Verbs: []access.Verb{"fly"}}},
		"no canvas":    {Name: "a", Grant: access.Grant{Verbs: access.Verbs(), Canvases: []eventqueue.CanvasID{}}},
		"zero canvas":  {Name: "a", Grant: access.Grant{Verbs: access.Verbs(), Canvases: []eventqueue.CanvasID{{}}}},
		"negative":     {Name: "a", Grant: access.Grant{Verbs: access.Verbs()}, For: -1},
	} {
		if _, secret, err := tokens.Create(ctx, ada, token); err == nil || secret != "" {
			t.Errorf("%s was created", name)
		}
	}
	if token, err := tokens.Get(ctx, uuid.New()); token != nil || err != nil {
		t.Errorf("nobody's token is %+v, %v", token, err)
	}
}

// TestLoopbackIsAdmittedWhileNoAccessIsConfigured lets the machine itself in, and nobody else, for as long as no access is configured.
func TestLoopbackIsAdmittedWhileNoAccessIsConfigured(t *testing.T) {
	t.Parallel()
	pool, ctx := testenv.Pool(t), testenv.Context(t)
	tokens := access.NewTokens("", pool)
	a := &access.Authenticator{Tokens: tokens, Loopback: true}
	request := func(from, host string, header ...string) *http.Request {
		r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil)
		r.RemoteAddr, r.Host = from, host
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		return r
	}
	old := func(r *http.Request) *http.Request {
		r.Proto, r.ProtoMajor, r.ProtoMinor = "HTTP/1.0", 1, 0
		return r
	}
	for name, c := range map[string]struct {
		request *http.Request
		in      bool
	}{
		"the machine":            {request("127.0.0.1:9", "localhost:8080"), true},
		"by IPv6":                {request("[::1]:9", "[::1]:8080"), true},
		"by IPv6, without port":  {request("[::1]:9", "[::1]"), true},
		"mapped":                 {request("[::ffff:127.0.0.1]:9", "127.0.0.1"), true},
		"the network":            {request("10.0.0.7:9", "localhost"), false},
		"a name that leads here": {request("127.0.0.1:9", "evil.example"), false},
		"behind a proxy":         {request("127.0.0.1:9", "localhost", "X-Forwarded-For", "10.0.0.7"), false},
		"behind a proxy that says nothing of whom": {request("127.0.0.1:9", "localhost", "X-Forwarded-For", ""), false},
		"by its Via":          {request("127.0.0.1:9", "localhost", "Via", "1.1 proxy"), false},
		"by its X-Real-IP":    {request("127.0.0.1:9", "localhost", "X-Real-IP", "10.0.0.7"), false},
		"by its scheme":       {request("127.0.0.1:9", "localhost", "X-Forwarded-Proto", "https"), false},
		"by Cloudflare":       {request("127.0.0.1:9", "localhost", "CF-Connecting-IP", "10.0.0.7"), false},
		"by Google":           {request("127.0.0.1:9", "localhost", "X-Cloud-Trace-Context", "1/2"), false},
		"by Forwarded":        {request("127.0.0.1:9", "localhost", "Forwarded", "for=10.0.0.7"), false},
		"by its HTTP/1.0":     {old(request("127.0.0.1:9", "localhost")), false},
		"a browser's headers": {request("127.0.0.1:9", "localhost", "Sec-Fetch-Site", "none", "User-Agent", "x", "Traceparent", "00-1-1-00"), true},
		"no address":          {request("", "localhost"), false},
		"with a wrong token":  {request("127.0.0.1:9", "localhost", "Authorization", "Bearer x"), false},
		"with another scheme": {request("127.0.0.1:9", "localhost", "Authorization", "Basic eA=="), false},
	} {
		identity, err := a.Authenticate(c.request)
		if in := err == nil && identity.MayEverywhere(access.Administer); in != c.in {
			t.Errorf("%s: let in: %v (%v)", name, in, err)
		}
	}
	closed := &access.Authenticator{Tokens: tokens}
	if _, err := closed.Authenticate(request("127.0.0.1:9", "localhost")); !errors.Is(err, access.ErrNoCredentials) {
		t.Errorf("a server that listens elsewhere lets the machine in: %v", err)
	}
	_, secret, err := tokens.Create(ctx, ada, access.NewToken{Name: "first", Grant: access.Grant{Verbs: []access.Verb{access.Read}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Authenticate(request("127.0.0.1:9", "localhost")); !errors.Is(err, access.ErrNoCredentials) {
		t.Errorf("with a token, a request without one is answered with %v", err)
	}
	if identity, err := a.Authenticate(request("10.0.0.7:9", "api.example", "Authorization", "bearer "+secret)); err != nil || !identity.MayEverywhere(access.Read) {
		t.Errorf("the token does not let in: %+v, %v", identity, err)
	}
	twice := request("10.0.0.7:9", "api.example", "Authorization", "Bearer "+secret)
	twice.Header.Add("Authorization", "Bearer "+secret)
	if _, err := a.Authenticate(twice); !errors.Is(err, access.ErrRefused) {
		t.Errorf("two tokens are answered with %v", err)
	}
	over, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := a.BySecret(over, secret); err == nil || errors.Is(err, access.ErrRefused) {
		t.Errorf("a database that does not answer is taken for a refusal: %v", err)
	}
}

// TestTokensMadeByTokensDoNotReplaceAScriptsToken: whoever administers one canvas could give theirs any name.
func TestTokensMadeByTokensDoNotReplaceAScriptsToken(t *testing.T) {
	t.Parallel()
	m, _ := newMakers(t)
	m.child(m.first(0)) // its name is made
	n := access.NewToken{Name: "made", Grant: access.Grant{Verbs: access.Verbs()}}
	for _, creates := range []bool{true, false} {
		if _, secret, err := m.tokens.CreateUnlessExists(m.ctx, ada, n); err != nil || (secret != "") != creates {
			t.Errorf("creates: %t, %v", secret != "", err)
		}
	}
}

// TestGrantsDecideWithoutADatabase decides without a database.
func TestGrantsDecideWithoutADatabase(t *testing.T) {
	t.Parallel()
	identity := access.Identity{Grants: []access.Grant{
		{Verbs: []access.Verb{access.Read}},
		{Verbs: []access.Verb{access.Read, access.Operate}, Canvases: []eventqueue.CanvasID{canvas}},
		{Verbs: []access.Verb{access.Emit, access.Operate}, Canvases: []eventqueue.CanvasID{canvas, another}},
	}}
	if identity.Canvases(access.Read) != nil || len(identity.Canvases(access.Operate)) != 2 {
		t.Errorf("the canvases are %v and %v", identity.Canvases(access.Read), identity.Canvases(access.Operate))
	}
	if none := identity.Canvases(access.Administer); none == nil || len(none) != 0 || identity.MayAnywhere(access.Administer) {
		t.Errorf("of a verb that is not granted: %v", none)
	}
	for name, c := range map[string]struct {
		grant   access.Grant
		exceeds bool
	}{
		"less":           {access.Grant{Verbs: []access.Verb{access.Operate}, Canvases: []eventqueue.CanvasID{another}}, false},
		"another verb":   {access.Grant{Verbs: []access.Verb{access.Administer}, Canvases: []eventqueue.CanvasID{another}}, true},
		"all canvases":   {access.Grant{Verbs: []access.Verb{access.Operate}}, true},
		"another canvas": {access.Grant{Verbs: []access.Verb{access.Operate}, Canvases: []eventqueue.CanvasID{canvas, {9}}}, true},
		"read all":       {access.Grant{Verbs: []access.Verb{access.Read}}, false},
	} {
		if identity.Exceeds(c.grant) != c.exceeds {
			t.Errorf("%s: exceeds: %v", name, !c.exceeds)
		}
	}
	var nobody access.Identity
	if nobody.May(access.Read, canvas) || nobody.MayEverywhere(access.Read) || nobody.Canvases(access.Read) == nil {
		t.Error("nobody may read")
	}
}

// TestLimiterKeysAreIndependent has keys not take from each other.
func TestLimiterKeysAreIndependent(t *testing.T) {
	t.Parallel()
	limiter := access.NewLimiter(1.0/3600, 2)
	for range 2 {
		for range 3 {
			if limiter.Wait("a") != 0 {
				t.Fatal("to ask takes from the budget")
			}
		}
		if wait := limiter.Take("a"); wait != 0 {
			t.Fatalf("within the burst, a waits for %s", wait)
		}
	}
	if limiter.Take("a") == 0 || limiter.Wait("a") == 0 || limiter.Wait("b") != 0 || limiter.Take("b") != 0 {
		t.Error("the budgets are not those of the keys")
	}
}
