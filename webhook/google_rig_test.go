package webhook_test

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"eventsv2/webhook"
)

const (
	issuerName = "https://issuer.example"
	audience   = "https://events.example"
	sender     = "push@my-project.iam.gserviceaccount.com"
)

// issuer is a local issuer of OpenID Connect, in place of Google's.
type issuer struct {
	*httptest.Server
	down  atomic.Bool
	hangs atomic.Bool
}

// signingKey is made once: that takes long.
var signingKey = sync.OnceValue(func() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
})

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	i := &issuer{}
	b64 := base64.RawURLEncoding.EncodeToString
	i.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if i.hangs.Load() {
			<-r.Context().Done()
			return
		}
		if i.down.Load() {
			http.Error(w, "down", http.StatusServiceUnavailable)
			return
		}
		public := signingKey().PublicKey
		_, _ = fmt.Fprintf(w, `{"keys": [{"kty": "RSA", "kid": "k1", "use": "sig", "alg": "RS256", "n": %q, "e": %q}]}`,
			b64(public.N.Bytes()), b64(big.NewInt(int64(public.E)).Bytes()))
	}))
	t.Cleanup(i.Close)
	return i
}

// accepts is the configuration of a source that accepts this issuer's tokens for one service account.
func (i *issuer) accepts() webhook.OIDC {
	return webhook.OIDC{Audience: audience, ServiceAccounts: []string{"other@my-project.iam.gserviceaccount.com", sender}, Issuer: issuerName, Keys: i.URL}
}

// said are the claims of a good token, with some replaced; nil leaves one out.
func said(others ...any) jwt.MapClaims {
	claims := jwt.MapClaims{"iss": issuerName, "aud": audience, "azp": "1", "sub": "1", "email": sender, "email_verified": true,
		"iat": now.Unix(), "exp": now.Add(time.Hour).Unix()}
	for n := 0; n < len(others); n += 2 {
		claims[others[n].(string)] = others[n+1]
		if others[n+1] == nil {
			delete(claims, others[n].(string))
		}
	}
	return claims
}

// token signs claims; key is what the method needs.
func token(t *testing.T, method jwt.SigningMethod, kid any, key any, claims jwt.MapClaims) string {
	t.Helper()
	unsigned := jwt.NewWithClaims(method, claims)
	if kid != nil {
		unsigned.Header["kid"] = kid
	}
	signed, err := unsigned.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

// good is a token that the source accepts.
func good(t *testing.T) string {
	t.Helper()
	return token(t, jwt.SigningMethodRS256, "k1", signingKey(), said())
}

// carrying is a header with a token, and further names and values.
func carrying(token string, pairs ...string) http.Header {
	return headers(append([]string{"Authorization", "Bearer " + token, "Content-Type", "application/json"}, pairs...)...)
}

// google is one of the schemes of Google's.
type google struct {
	name   string
	make   func(webhook.OIDC) (webhook.Verifier, error)
	header []string // of a good request, beside the token
	body   string
}

func googles() []google {
	return []google{
		{"pubsub", webhook.PubSub, nil, `{"message": {"data": "eyJhIjogMX0=", "messageId": "17"}, "subscription": "projects/p/subscriptions/s"}`},
		{"eventarc", webhook.Eventarc, []string{"ce-id", "17", "ce-source", "//storage.googleapis.com/projects/_/buckets/b", "ce-type", "google.cloud.storage.object.v1.finalized",
			"ce-specversion", "1.0"}, `{"a": 1}`},
		{"cloud-scheduler", webhook.CloudScheduler, []string{"X-CloudScheduler", "true", "X-CloudScheduler-JobName", "nightly", "X-CloudScheduler-ScheduleTime", "2026-11-29T02:00:00Z"}, `{"a": 1}`},
	}
}
