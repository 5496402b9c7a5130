package e2e_test

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"eventsv2/test/testenv"
)

// TestPushOfPubSubReachesItsTarget, through a worker as it is deployed, once however often the message is delivered, and by the token
// of the right service account only.
func TestPushOfPubSubReachesItsTarget(t *testing.T) {
	t.Parallel()
	r := newPostgresRig(t, "build")
	handlers, err := os.ReadFile(r.environment["HANDLERS_FILE"])
	if err != nil {
		t.Fatal(err)
	}
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	issuer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		b64 := base64.RawURLEncoding.EncodeToString
		_, _ = fmt.Fprintf(w, `{"keys": [{"kty": "RSA", "kid": "1", "n": %q, "e": %q}]}`, b64(key.N.Bytes()), b64(big.NewInt(int64(key.E)).Bytes()))
	}))
	t.Cleanup(issuer.Close)
	path := filepath.Join(t.TempDir(), "handlers.yaml")
	write := func(oidc string) {
		text := string(handlers) + "webhooks:\n  - {source: orders, scheme: pubsub, oidc: {" + oidc + "}, module: WORKER, modifier: _, name: build}\n"
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("audience: https://events.example")
	if status, output := r.runWords([]string{"worker", "check", path}, ""); status == 0 || !strings.Contains(output, "source orders: webhook.PubSub: there are 0 service_accounts") {
		t.Errorf("without service accounts, worker check ended with %d:\n%s", status, output)
	}
	write("audience: https://events.example, service_accounts: [push@p.iam.gserviceaccount.com], issuer: https://issuer.example, keys: " + issuer.URL)
	if status, output := r.runWords([]string{"worker", "check", path}, ""); status != 0 || !strings.Contains(output, "1 sources of webhooks") {
		t.Errorf("worker check ended with %d:\n%s", status, output)
	}
	worker := r.start("worker", map[string]string{"HANDLERS_FILE": path})
	worker.await("worker started")
	port := regexp.MustCompile(`"address":"[^"]*:(\d+)"`).FindStringSubmatch(worker.text())
	if port == nil {
		t.Fatalf("the log names no address:\n%s", worker.text())
	}
	token := func(email string) string {
		unsigned := jwt.NewWithClaims(jwt.SigningMethodRS256, jwt.MapClaims{"iss": "https://issuer.example", "aud": "https://events.example",
			"email": email, "email_verified": true, "exp": time.Now().Add(time.Hour).Unix()})
		unsigned.Header["kid"] = "1"
		text, err := unsigned.SignedString(key)
		if err != nil {
			t.Error(err)
		}
		return text
	}
	post := func(email string, id int) int {
		body := fmt.Sprintf(`{"message": {"messageId": "%d", "data": %q}, "subscription": "projects/p/subscriptions/s"}`, id,
			base64.StdEncoding.EncodeToString(fmt.Appendf(nil, `{ "n": %d }`, id)))
		request, err := http.NewRequestWithContext(testenv.Context(t), http.MethodPost,
			"http://127.0.0.1:"+port[1]+"/webhooks/"+canvas.String()+"/orders?x=y", strings.NewReader(body))
		if err != nil {
			t.Error(err)
			return 0
		}
		request.Header.Set("Authorization", "Bearer "+token(email))
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Error(err)
			return 0
		}
		_ = answer.Body.Close()
		return answer.StatusCode
	}
	var wait sync.WaitGroup
	for i := range 12 {
		wait.Go(func() {
			if status := post("push@p.iam.gserviceaccount.com", i%3); status != http.StatusOK {
				t.Errorf("a genuine request is answered with %d", status)
			}
		})
	}
	wait.Wait()
	if status := post("push@other.iam.gserviceaccount.com", 4); status != http.StatusUnauthorized {
		t.Errorf("another service account is answered with %d", status)
	}
	seen := map[string]bool{}
	for _, request := range r.target.await(t, 3) {
		if seen[request.body] || !regexp.MustCompile(`^\{ "n": [0-2] \}$`).MatchString(request.body) {
			t.Errorf("the target got %s", request.body)
		}
		seen[request.body] = true
	}
	if status := worker.terminate(); status != 0 {
		t.Errorf("the worker ended with %d after SIGTERM", status)
	}
	if text := worker.text(); strings.Contains(text, "Bearer") || !strings.Contains(text, `push@other.iam.gserviceaccount.com`) {
		t.Errorf("the log has a token, or does not say whose was refused:\n%s", text)
	}
}
