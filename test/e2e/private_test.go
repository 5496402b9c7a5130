package e2e_test

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"eventsv2/webhook"
)

// metadataServer is one like those of Cloud Run and GKE. The audience says how it answers.
type metadataServer struct {
	*httptest.Server
	mu    sync.Mutex
	asked map[string]int // how often for a token of an audience
}

const metadataCanary = "canary-of-the-metadata-server"

// identityToken is a JWT of an audience, which ends in so long.
func identityToken(audience string, in time.Duration) string {
	encode := base64.RawURLEncoding.EncodeToString
	return encode([]byte(`{"alg":"RS256"}`)) + "." + encode(fmt.Appendf(nil, `{"aud":%q,"exp":%d}`, audience, time.Now().Add(in).Unix())) + ".c2lnbmF0dXJl"
}

func newMetadataServer(t *testing.T) *metadataServer {
	m := &metadataServer{asked: map[string]int{}}
	left := make(chan struct{})
	m.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Metadata-Flavor", "Google")
		audience := r.URL.Query().Get("audience")
		switch {
		case r.Header.Get("Metadata-Flavor") != "Google":
			http.Error(w, "no metadata for a request without its header", http.StatusForbidden)
			return
		case !strings.HasSuffix(r.URL.Path, "/instance/service-accounts/default/identity"):
			_, _ = io.WriteString(w, "e2e")
			return
		}
		m.mu.Lock()
		m.asked[audience]++
		m.mu.Unlock()
		switch audience {
		case "fails":
			http.Error(w, metadataCanary, http.StatusForbidden)
		case "hangs":
			select {
			case <-r.Context().Done():
			case <-left:
			}
		case "garbage":
			_, _ = io.WriteString(w, metadataCanary)
		default:
			_, _ = io.WriteString(w, identityToken(audience, time.Hour))
		}
	}))
	t.Cleanup(m.Close)
	t.Cleanup(func() { close(left) })
	return m
}

// TestPrivateTargetAuthenticatesTheWorker: the worker as deployed proves itself by an identity token, a header from its environment and
// a signature; a metadata server that fails or hangs makes the run fail, and not the worker; and nothing
// secret is in its log or in the history.
func TestPrivateTargetAuthenticatesTheWorker(t *testing.T) {
	t.Parallel()
	r := newPostgresRig(t, "open")
	metadata := newMetadataServer(t)
	path := filepath.Join(t.TempDir(), "handlers.yaml")
	var file strings.Builder
	file.WriteString("handlers:\n")
	for name, audience := range map[string]string{"works": "{}", "fails": "{audience: fails}", "hangs": "{audience: hangs}", "garbage": "{audience: garbage}", "echo": "{}"} {
		fmt.Fprintf(&file, "  - {module: WORKER, name: %s, modifier: _, url: %q, timeout: 2s, max_retries: 0, auth: {oidc: %s},\n     headers: {X-Api-Key: {env: API_KEY}}, signature: {scheme: standard, secrets: [SIGNING, SIGNING_BEFORE]}}\n",
			name, r.target.URL+"/"+name, audience)
	}
	fmt.Fprintf(&file, "  - {module: WORKER, name: metadata, modifier: _, url: %q, max_retries: 0, headers: {X-Api-Key: {env: API_KEY}}}\n", "http://169.254.169.254/")
	if err := os.WriteFile(path, []byte(file.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if status, output := r.runWords([]string{"worker", "check", path}, ""); status != 0 || !strings.Contains(output, "ok, 6 handlers") {
		t.Errorf("worker check ended with %d:\n%s", status, output)
	}
	old := "whsec_" + base64.StdEncoding.EncodeToString([]byte("canary-of-the-old-signing-secret"))
	environment := map[string]string{"HANDLERS_FILE": path, "GCE_METADATA_HOST": strings.TrimPrefix(metadata.URL, "http://"),
		"API_KEY": "canary-of-the-key", "SIGNING": "whsec_" + base64.StdEncoding.EncodeToString([]byte("canary-of-the-new-signing-secret"))}
	refused := r.start("worker", environment)
	if status := refused.wait(); status == 0 || !strings.Contains(refused.text(), "the variable SIGNING_BEFORE is not set or empty") {
		t.Errorf("without a secret the worker ended with %d", status)
	}
	environment["SIGNING_BEFORE"] = old
	worker := r.start("worker", environment)
	worker.await("worker started")
	r.target.answerWith(func(w http.ResponseWriter, request *http.Request) {
		if request.URL.Path == "/echo" {
			http.Error(w, fmt.Sprint(request.Header), http.StatusBadRequest)
		}
	})
	r.emit(event("works", `{"n": 1.0}`), event("works", `2`), event("fails", `3`), event("hangs", `4`), event("garbage", `5`), event("echo", `6`), event("metadata", `7`))
	r.awaitSQL("five events have failed, and the others have ended", `SELECT (SELECT count(*) FROM event_log WHERE status = 'FAILED') = 5 AND NOT EXISTS (SELECT FROM events_v2)`)

	verifier, err := webhook.Standard(old) // a receiver that does not know the new one yet
	if err != nil {
		t.Fatal(err)
	}
	works := 0
	for _, got := range r.target.await(t, 3) {
		verified, err := verifier.Verify(&webhook.Request{Header: got.header, Body: []byte(got.body), Received: time.Now()})
		if err != nil || verified.Delivery != got.id {
			t.Errorf("event %s: the delivery %q, %v", got.id, verified.Delivery, err)
		}
		if token := got.header.Get("Authorization"); !strings.HasPrefix(token, "Bearer ") || !strings.HasPrefix(token[7:], identityToken(r.target.URL, time.Hour)[:40]) {
			t.Errorf("event %s has no token of the default audience: %s", got.id, token)
		}
		if key := got.header.Get("X-Api-Key"); key != "canary-of-the-key" {
			t.Errorf("event %s has the key %q", got.id, key)
		}
		if got.name == "works" {
			works++
		}
	}
	if works != 2 {
		t.Errorf("%d of 2 events got there", works)
	}
	metadata.mu.Lock()
	if n := metadata.asked[r.target.URL]; n != 1 {
		t.Errorf("%d tokens were asked for in place of 1", n)
	}
	metadata.mu.Unlock()
	for name, want := range map[string]string{
		"fails":    "no identity token for the audience fails: the metadata server answered 403 Forbidden: run the worker with a service account",
		"hangs":    "no identity token for the audience hangs yet: run the worker with a service account",
		"garbage":  "no JWT that ends",
		"echo":     "400 Bad Request: ",
		"metadata": "169.254.169.254 is a link-local, metadata or unspecified address",
	} {
		if text := one[string](r, `SELECT last_error FROM event_log WHERE name = $1`, name); !strings.Contains(text, want) {
			t.Errorf("%s: %s\nwant %s", name, text, want)
		}
	}
	worker.terminate()
	history := one[string](r, `SELECT string_agg(last_error, ' ') FROM event_log`)
	for _, secret := range []string{"canary-of", identityToken("", 0)[:20], "whsec_", old[6:26]} {
		if strings.Contains(worker.text(), secret) || strings.Contains(history, secret) {
			t.Errorf("the log or the history has %s", secret)
		}
	}
}
