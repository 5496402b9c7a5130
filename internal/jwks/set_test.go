package jwks_test

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"eventsv2/internal/jwks"
)

// issuer serves keys, and counts how often it is asked.
type issuer struct {
	*httptest.Server
	asked  atomic.Int64
	answer atomic.Pointer[http.HandlerFunc]
}

func newIssuer(t *testing.T, answer http.HandlerFunc) (*issuer, *jwks.Set) {
	t.Helper()
	i := &issuer{}
	i.answer.Store(&answer)
	i.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i.asked.Add(1)
		(*i.answer.Load())(w, r)
	}))
	t.Cleanup(i.Close)
	set, err := jwks.New(i.URL + "/keys")
	if err != nil {
		t.Fatal(err)
	}
	return i, set
}

var key = sync.OnceValue(func() *rsa.PrivateKey {
	k, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return k
})

func b64(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// keysOf answers with a key under each id.
func keysOf(cacheControl string, ids ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if cacheControl != "" {
			w.Header().Set("Cache-Control", cacheControl)
		}
		var keys []string
		for _, id := range ids {
			keys = append(keys, jwk(id, ""))
		}
		_, _ = fmt.Fprintf(w, `{"keys": [%s]}`, strings.Join(keys, ","))
	}
}

// jwk is the key under an id; more are further fields.
func jwk(id, more string) string {
	return fmt.Sprintf(`{"kty": "RSA", "kid": %q, "n": %q, "e": "AQAB"%s}`, id, b64(key().N.Bytes()), more)
}

func broken(w http.ResponseWriter, _ *http.Request) {
	http.Error(w, "down", http.StatusServiceUnavailable)
}

// TestKeysAreRetainedForAsLongAsTheAnswerSays, are asked for again after that, and survive an issuer that is down for a day.
func TestKeysAreRetainedForAsLongAsTheAnswerSays(t *testing.T) {
	t.Parallel()
	from, set := newIssuer(t, keysOf("public, max-age=600, must-revalidate", "a"))
	began := time.Now()
	wants := func(id string, after time.Duration, asked int64, want error) {
		t.Helper()
		got, err := set.Key(id, began.Add(after))
		jwks.Await(set)
		if !errors.Is(err, want) || (err == nil) != (got != nil) || got != nil && got.N.Cmp(key().N) != 0 {
			t.Errorf("key %s after %s: %v, %v, want %v", id, after, got, err, want)
		}
		if n := from.asked.Load(); n != asked {
			t.Errorf("key %s after %s: the issuer was asked %d times, want %d", id, after, n, asked)
		}
	}
	wants("a", 0, 1, nil)
	wants("a", 599*time.Second, 1, nil)
	wants("a", 601*time.Second, 2, nil)
	from.answer.Store(new(http.HandlerFunc(broken)))
	wants("a", 1300*time.Second, 3, nil)
	wants("a", 1301*time.Second, 3, nil) // it rests
	wants("b", 1302*time.Second, 3, jwks.ErrUnavailable)
	wants("a", 24*time.Hour, 4, nil)
	wants("a", 25*time.Hour, 5, jwks.ErrUnavailable)
	from.answer.Store(new(keysOf("", "b")))
	wants("b", 25*time.Hour+time.Minute, 6, nil)
	wants("a", 25*time.Hour+2*time.Minute, 7, jwks.ErrUnknown) // it is gone
	wants("b", 25*time.Hour+50*time.Minute, 7, nil)
}

// TestUnknownKeysAreAskedForInBounds: an id that is new is found, and made-up ones cause a request every five seconds at most.
func TestUnknownKeysAreAskedForInBounds(t *testing.T) {
	t.Parallel()
	from, set := newIssuer(t, keysOf("max-age=3600", "a"))
	began := time.Now()
	if _, err := set.Key("a", began); err != nil {
		t.Fatal(err)
	}
	from.answer.Store(new(keysOf("max-age=3600", "a", "b")))
	if _, err := set.Key("b", began.Add(6*time.Second)); err != nil || from.asked.Load() != 2 {
		t.Errorf("a new key: %v, %d requests", err, from.asked.Load())
	}
	for i := range 10_000 {
		if _, err := set.Key(fmt.Sprint("made up ", i), began.Add(7*time.Second)); !errors.Is(err, jwks.ErrUnknown) {
			t.Fatalf("made up: %v", err)
		}
	}
	var wait sync.WaitGroup
	for i := range 50 {
		wait.Go(func() {
			if _, err := set.Key(fmt.Sprint("made up ", i), began.Add(20*time.Second)); !errors.Is(err, jwks.ErrUnknown) {
				t.Errorf("made up: %v", err)
			}
		})
	}
	wait.Wait()
	if n := from.asked.Load(); n != 3 {
		t.Errorf("the issuer was asked %d times, want 3", n)
	}
}

// TestAnswersWithoutKeysAreFailures, whatever is in them.
func TestAnswersWithoutKeysAreFailures(t *testing.T) {
	t.Parallel()
	text := func(body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(body)) }
	}
	set := func(keys string) http.HandlerFunc { return text(`{"keys": [` + keys + `]}`) }
	small, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	for what, answer := range map[string]http.HandlerFunc{
		"down":         broken,
		"no JSON":      text("<html>"),
		"no set":       text(`{"keys": "a"}`),
		"an empty set": set(""),
		"endless":      text(`{"keys": ["` + strings.Repeat("x", 2<<20) + `"]}`),
		"encryption":   set(jwk("a", `, "use": "enc"`)),
		"another hash": set(jwk("a", `, "alg": "RS512"`)),
		"a shared one": set(`{"kty": "oct", "kid": "a", "k": "c2VjcmV0"}`),
		"no id":        set(jwk("", "")),
		"too short":    set(fmt.Sprintf(`{"kty": "RSA", "kid": "a", "n": %q, "e": "AQAB"}`, b64(small.N.Bytes()))),
		"endless bits": set(fmt.Sprintf(`{"kty": "RSA", "kid": "a", "n": %q, "e": "AQAB"}`, b64([]byte(strings.Repeat("x", 2000))))),
		"an even one":  set(fmt.Sprintf(`{"kty": "RSA", "kid": "a", "n": %q, "e": "AQAB"}`, b64(new(big.Int).Lsh(key().N, 1).Bytes()))),
		"exponent 1":   set(fmt.Sprintf(`{"kty": "RSA", "kid": "a", "n": %q, "e": "AQ"}`, b64(key().N.Bytes()))),
		"no base64":    set(`{"kty": "RSA", "kid": "a", "n": "%%", "e": "AQAB"}`),
		"somewhere else": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusFound)
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			_, keys := newIssuer(t, answer)
			if _, err := keys.Key("a", time.Now()); !errors.Is(err, jwks.ErrUnavailable) || len(err.Error()) > 300 {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestAddressesThatAreNotSafeAreRefused: over them, anybody on the way could send keys.
func TestAddressesThatAreNotSafeAreRefused(t *testing.T) {
	t.Parallel()
	for address, good := range map[string]bool{
		"https://www.googleapis.com/oauth2/v3/certs": true, "http://localhost:1/keys": true, "http://127.0.0.1/": true, "http://[::1]:5/k": true,
		"http://example.org/keys": false, "http://localhost.example.org/": false, "ftp://localhost/": false, "": false, "keys": false, "https://": false,
		"https://a:b@example.org/": false, "file:///etc/keys": false,
	} {
		if _, err := jwks.New(address); (err == nil) != good {
			t.Errorf("%q: %v", address, err)
		}
	}
}
