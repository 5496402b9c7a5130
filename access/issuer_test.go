package access_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"eventsv2/access"
	"eventsv2/test/testenv"
)

// issuer is an issuer of OpenID Connect, and the keys of a proxy.
type issuer struct {
	*httptest.Server
	key    *rsa.PrivateKey
	proxy  *ecdsa.PrivateKey
	down   atomic.Bool
	broken atomic.Pointer[http.HandlerFunc] // answers in its place
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	i := &issuer{}
	var err error
	if i.key, err = rsa.GenerateKey(rand.Reader, 2048); err != nil {
		t.Fatal(err)
	}
	if i.proxy, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		t.Fatal(err)
	}
	i.Server = httptest.NewServer(http.HandlerFunc(i.serve))
	t.Cleanup(i.Close)
	return i
}

func (i *issuer) serve(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if broken := i.broken.Load(); broken != nil {
		(*broken)(w, r)
		return
	}
	switch {
	case i.down.Load():
		http.Error(w, "down", http.StatusServiceUnavailable)
	case r.URL.Path == "/.well-known/openid-configuration":
		_ = json.NewEncoder(w).Encode(map[string]any{"issuer": i.URL, "jwks_uri": i.URL + "/keys", "authorization_endpoint": i.URL + "/a",
			"token_endpoint": i.URL + "/t", "id_token_signing_alg_values_supported": []string{"RS256", "HS256", "none"}})
	case r.URL.Path == "/keys":
		point, _ := i.proxy.PublicKey.Bytes()
		_ = json.NewEncoder(w).Encode(map[string]any{"keys": []map[string]string{
			{"kty": "RSA", "kid": "RS256", "alg": "RS256", "use": "sig", "n": b64(i.key.N.Bytes()), "e": b64(big.NewInt(int64(i.key.E)).Bytes())},
			{"kty": "EC", "kid": "ES256", "alg": "ES256", "use": "sig", "crv": "P-256", "x": b64(point[1:33]), "y": b64(point[33:])},
		}})
	}
}

func b64(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// sign makes a JWT with an algorithm, which is also the id of the key.
func (i *issuer) sign(t *testing.T, algorithm string, claims map[string]any) string {
	t.Helper()
	payload, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	text := b64(fmt.Appendf(nil, `{"alg":%q,"kid":%q}`, algorithm, algorithm)) + "." + b64(payload)
	sum := sha256.Sum256([]byte(text))
	var signature []byte
	switch algorithm {
	case "RS256":
		signature, err = rsa.SignPKCS1v15(rand.Reader, i.key, crypto.SHA256, sum[:])
	case "ES256":
		var r, s *big.Int
		r, s, err = ecdsa.Sign(rand.Reader, i.proxy, sum[:])
		if err == nil {
			signature = append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return text + "." + b64(signature)
}

// claims returns the claims of a valid JWT, with some replaced.
func (i *issuer) claims(others ...any) map[string]any {
	claims := map[string]any{"iss": i.URL, "aud": "eventsv2", "sub": "7", "exp": time.Now().Add(time.Hour).Unix(), "email": "ada@example.com", "email_verified": true}
	for n := 0; n < len(others); n += 2 {
		claims[others[n].(string)] = others[n+1]
	}
	return claims
}

// TestIssuersAdmitOnlyTheIdentitiesTheyVouchFor lets in whom an issuer vouches for, and nobody else.
func TestIssuersAdmitOnlyTheIdentitiesTheyVouchFor(t *testing.T) {
	t.Parallel()
	from, tokens, ctx := newIssuer(t), access.NewTokens("", testenv.Pool(t)), testenv.Context(t)
	file := fmt.Sprintf(`
issuers:
- issuer: %s
  audience: eventsv2
  grants:
  - {claim: email, values: [ada@example.com], canvases: all, verbs: [read, operate]}
  - {claim: groups, values: [admins], canvases: [%s], verbs: [administer]}
- iap: true
  audience: /projects/1/apps/x
  grants:
  - {claim: email, values: [eve@example.com], canvases: all, verbs: [read]}
`, from.URL, canvas)
	issuers, err := access.ParseFile([]byte(file))
	if err != nil {
		t.Fatal(err)
	}
	access.SetIAPKeys(issuers[1], from.URL+"/keys")
	a := &access.Authenticator{Tokens: tokens, Issuers: issuers, Loopback: true}
	iap := func(others ...any) map[string]any {
		claims := from.claims("iss", "https://cloud.google.com/iap", "aud", "/projects/1/apps/x", "email", "eve@example.com")
		delete(claims, "email_verified")
		for n := 0; n < len(others); n += 2 {
			claims[others[n].(string)] = others[n+1]
		}
		return claims
	}
	const bearer, proxy = "Authorization", "X-Goog-IAP-JWT-Assertion"
	good := from.sign(t, "RS256", from.claims())
	for name, c := range map[string]struct{ header, jwt, who string }{
		"good":                           {bearer, good, "oidc:ada@example.com"},
		"a group":                        {bearer, from.sign(t, "RS256", from.claims("email", "x@example.com", "groups", []string{"users", "admins"})), "oidc:x@example.com"},
		"a subject like an email":        {bearer, from.sign(t, "RS256", from.claims("sub", "ada@example.com", "email", "", "groups", "admins")), "oidc:sub:ada@example.com"},
		"expired":                        {bearer, from.sign(t, "RS256", from.claims("exp", time.Now().Add(-time.Minute).Unix())), ""},
		"for another audience":           {bearer, from.sign(t, "RS256", from.claims("aud", "other")), ""},
		"of another issuer":              {bearer, from.sign(t, "RS256", from.claims("iss", "https://accounts.google.com")), ""},
		"an email that is not known":     {bearer, from.sign(t, "RS256", from.claims("email", "eve@example.com")), ""},
		"an email that is claimed":       {bearer, from.sign(t, "RS256", from.claims("email_verified", false)), ""},
		"an email as a text":             {bearer, from.sign(t, "RS256", from.claims("email_verified", "true")), ""},
		"without a signature":            {bearer, from.sign(t, "none", from.claims()), ""},
		"with another's signature":       {bearer, good[:len(good)-8] + "AAAAAAAA", ""},
		"of the proxy":                   {proxy, from.sign(t, "ES256", iap()), "oidc:eve@example.com"},
		"of the proxy, elsewhere":        {bearer, from.sign(t, "ES256", iap()), ""},
		"the issuer's as the proxy's":    {proxy, good, ""},
		"of the proxy for another":       {proxy, from.sign(t, "ES256", iap("aud", "/projects/2/apps/x")), ""},
		"of the proxy with a key of RSA": {proxy, from.sign(t, "RS256", iap()), ""},
	} {
		r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil)
		value := c.jwt
		if c.header == bearer {
			value = "Bearer " + value
		}
		r.Header.Set(c.header, value)
		identity, err := a.Authenticate(r)
		if identity.Name != c.who || c.who == "" && !errors.Is(err, access.ErrRefused) {
			t.Errorf("%s: %+v, %v", name, identity, err)
		}
		if name == "a group" && (!identity.May(access.Administer, canvas) || identity.MayAnywhere(access.Read)) {
			t.Errorf("%s may do %+v", name, identity.Grants)
		}
	}
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/", nil)
	r.RemoteAddr = "127.0.0.1:9"
	if _, err := a.Authenticate(r); !errors.Is(err, access.ErrNoCredentials) {
		t.Errorf("with an issuer, the machine itself is let in: %v", err)
	}
}

// TestIssuerOutageIsNoWrongToken is no refusal: who asks has to come again.
func TestIssuerOutageIsNoWrongToken(t *testing.T) {
	t.Parallel()
	from := newIssuer(t)
	from.down.Store(true)
	one, err := access.NewIssuer(from.URL, "eventsv2", []access.Mapping{{Claim: "sub", Values: []string{"7"}, Grant: access.Grant{Verbs: access.Verbs()}}})
	if err != nil {
		t.Fatal(err)
	}
	a := &access.Authenticator{Issuers: []*access.Issuer{one}}
	for range 2 { // the second time it is not asked
		if _, err := a.BySecret(testenv.Context(t), from.sign(t, "RS256", from.claims())); err == nil || errors.Is(err, access.ErrRefused) || !strings.Contains(err.Error(), from.URL) {
			t.Errorf("answered with %v", err)
		}
	}
}

// TestUnreachableKeySetKeepsKnownKeys: the proxy's are asked for at the first JWT, and an issuer's again when it has new ones.
func TestUnreachableKeySetKeepsKnownKeys(t *testing.T) {
	t.Parallel()
	from, ctx := newIssuer(t), testenv.Context(t)
	mappings := []access.Mapping{{Claim: "sub", Values: []string{"7"}, Grant: access.Grant{Verbs: access.Verbs()}}}
	issuer, err := access.NewIssuer(from.URL, "eventsv2", mappings)
	if err != nil {
		t.Fatal(err)
	}
	proxy, err := access.NewIAP("eventsv2", mappings)
	if err != nil {
		t.Fatal(err)
	}
	access.SetIAPKeys(proxy, from.URL+"/keys")
	good := from.sign(t, "RS256", from.claims())
	if _, err := (&access.Authenticator{Issuers: []*access.Issuer{issuer}}).BySecret(ctx, good); err != nil {
		t.Fatal(err)
	}
	rotated := strings.Replace(good, b64([]byte(`{"alg":"RS256","kid":"RS256"}`)), b64([]byte(`{"alg":"RS256","kid":"a-new-one"}`)), 1)
	a := &access.Authenticator{Issuers: []*access.Issuer{issuer, proxy}}
	for name, broken := range map[string]http.HandlerFunc{
		"an error": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) },
		"no keys":  func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("{}")) },
		"a page":   func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>log in to the network")) },
		"more than it reads": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(`"` + strings.Repeat("x", 2<<20) + `"`))
		},
		"a closed connection": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	} {
		from.broken.Store(&broken)
		r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil)
		r.Header.Set("X-Goog-IAP-JWT-Assertion", from.sign(t, "ES256", from.claims("iss", "https://cloud.google.com/iap")))
		_, byProxy := a.Authenticate(r)
		_, byIssuer := a.BySecret(ctx, rotated)
		for _, err := range []error{byProxy, byIssuer} {
			if err == nil || errors.Is(err, access.ErrRefused) || !strings.Contains(err.Error(), "for its keys") {
				t.Errorf("%s: answered with %v", name, err)
			}
		}
	}
	from.broken.Store(nil)
	// The library answers its last request once more until it has forgotten it, which is a moment after the answer.
	testenv.Eventually(t, "a JWT of an unknown key is refused", func() bool {
		_, err := a.BySecret(ctx, rotated)
		return errors.Is(err, access.ErrRefused)
	})
}

// TestIssuerOutageDelaysNoOtherIssuer: who comes by another one is let in, and what is no JWT is refused.
func TestIssuerOutageDelaysNoOtherIssuer(t *testing.T) {
	t.Parallel()
	down, up, ctx := newIssuer(t), newIssuer(t), testenv.Context(t)
	down.down.Store(true)
	a := &access.Authenticator{Tokens: access.NewTokens("", testenv.Pool(t))}
	for _, from := range []*issuer{down, up} {
		one, err := access.NewIssuer(from.URL, "eventsv2", []access.Mapping{{Claim: "email", Values: []string{"ada@example.com"}, Grant: access.Grant{Verbs: access.Verbs()}}})
		if err != nil {
			t.Fatal(err)
		}
		a.Issuers = append(a.Issuers, one)
	}
	if _, err := a.BySecret(ctx, up.sign(t, "RS256", up.claims())); err != nil {
		t.Error(err)
	}
	for _, secret := range []string{"x", "a.b.c", "e30.e30.e30"} {
		if _, err := a.BySecret(ctx, secret); !errors.Is(err, access.ErrRefused) {
			t.Errorf("%q is answered with %v", secret, err)
		}
	}
	long, other := strings.Repeat("x", 300), strings.Repeat("x", 300)+"y"
	keys := map[string]bool{}
	for _, subject := range []string{long, other, long} {
		who, err := a.BySecret(ctx, up.sign(t, "RS256", up.claims("sub", subject)))
		if err != nil || len(who.Key) > 255 {
			t.Errorf("a long subject: a key of %d bytes, %v", len(who.Key), err)
		}
		keys[who.Key] = true
	}
	if len(keys) != 2 {
		t.Errorf("two long subjects have the keys %v", keys)
	}
}

// TestJWTIdentityEndsWithItsToken: a stream ends with them, and so do tokens, unless the file lets these last for longer.
func TestJWTIdentityEndsWithItsToken(t *testing.T) {
	t.Parallel()
	from, ctx := newIssuer(t), testenv.Context(t)
	for file, tokensFor := range map[string]time.Duration{"": 0, "tokens_for: 720h,": 720 * time.Hour} {
		issuers, err := access.ParseFile(fmt.Appendf(nil, "issuers:\n- {issuer: %s, audience: eventsv2, %s grants: [{claim: sub, values: ['7'], canvases: all, verbs: [administer]}]}", from.URL, file))
		if err != nil {
			t.Fatal(err)
		}
		who, err := (&access.Authenticator{Issuers: issuers}).BySecret(ctx, from.sign(t, "RS256", from.claims()))
		if err != nil || who.EndsIn <= 0 || who.EndsIn > time.Hour || who.TokensFor != tokensFor || who.Key != "oidc:"+from.URL+" 7" {
			t.Errorf("%q: %+v, %v", file, who, err)
		}
	}
}

// TestAccessFileReportsEachMistakeWithItsLine reports each mistake with its line.
func TestAccessFileReportsEachMistakeWithItsLine(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"issuers: 7":    "line 1: issuers: is",
		"issuer: x":     `unknown key "issuer"`,
		"":              "list issuers",
		"issuers:\n- 7": "line 2",
		"issuers:\n- {issuer: http://example.com, audience: a, grants: [{claim: sub, values: [x], canvases: all, verbs: [read]}]}":                                                                           "begins with https://",
		"issuers:\n- {issuer: https://example.com, grants: [{claim: sub, values: [x], canvases: all, verbs: [read]}]}":                                                                                       "audience: is missing",
		"issuers:\n- {issuer: https://example.com, audience: a, grants: []}":                                                                                                                                 "grants: there is none",
		"issuers:\n- {issuer: https://example.com, audience: a, grants: [{claim: sub, values: [x], verbs: [read]}]}":                                                                                         "canvases: is missing",
		"issuers:\n- {issuer: https://example.com, audience: a, grants: [{claim: sub, values: [x], canvases: [y], verbs: [read]}]}":                                                                          "is not a uuid",
		"issuers:\n- {issuer: https://example.com, audience: a, grants: [{claim: sub, values: [x], canvases: all, verbs: [fly]}]}":                                                                           `"fly" is unknown`,
		"issuers:\n- {issuer: https://example.com, audience: a, grants: [{claim: sub, values: [x, y, x], canvases: all, verbs: [read]}]}":                                                                    `grants: number 1: values: "x" is there twice`,
		"issuers:\n- {issuer: https://example.com, audience: a, grants: [{claim: sub, values: [x], canvases: all, verbs: [read, emit, read]}]}":                                                              `verbs: read is there twice`,
		"issuers:\n- {issuer: https://example.com, audience: a, grants: [{claim: sub, values: [x], canvases: [00000000-0000-0000-0000-000000000001, 00000000-0000-0000-0000-000000000001], verbs: [read]}]}": `canvases: 00000000-0000-0000-0000-000000000001 is there twice`,
		"issuers:\n- {issuer: https://example.com, audience: a, grants: [{claim: sub, values: [''], canvases: all, verbs: [read]}]}":                                                                         "needs a claim and values",
		"issuers:\n- {issuer: https://example.com, iap: true, audience: a, grants: []}":                                                                                                                      "exclude each other",
		"issuers:\n- {issuer: https://example.com, audience: a, tokens_for: long, grants: [{claim: sub, values: [x], canvases: all, verbs: [read]}]}":                                                        `tokens_for: "long" is no time`,
		"issuers:\n- {issuer: https://example.com, audience: a, tokens_for: 0s, grants: [{claim: sub, values: [x], canvases: all, verbs: [read]}]}":                                                          `tokens_for: "0s" is no time`,
		"issuers:\n- {iap: maybe, audience: a, grants: []}":                                                                                                                                                  "is not true",
	} {
		issuers, err := access.ParseFile(bytes.TrimSpace([]byte(text)))
		if err == nil || issuers != nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, which does not say %q", text, err, want)
		}
	}
}
