package e2e_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"eventsv2/test/testenv"
)

// TestWebhookReachesItsTarget, through a worker as it is deployed, once for all the
// times that it is delivered; and a forgery goes nowhere.
func TestWebhookReachesItsTarget(t *testing.T) {
	t.Parallel()
	r := newRig(t, "build")
	handlers, err := os.ReadFile(r.environment["HANDLERS_FILE"])
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "handlers.yaml")
	text := string(handlers) + "webhooks:\n  - {source: github, scheme: github, secrets: [OLD, NEW], module: WORKER, modifier: _, names: {push: build}}\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	refused := r.start("worker", map[string]string{"HANDLERS_FILE": path, "NEW": "hush"})
	if status := refused.wait(); status == 0 || !strings.Contains(refused.text(), "the variable OLD is not set or empty") {
		t.Errorf("without a secret the worker ended with %d", status)
	}
	worker := r.start("worker", map[string]string{"HANDLERS_FILE": path, "OLD": "before", "NEW": "hush", "RETAIN_HISTORY": "true", "OTEL_METRICS_EXPORTER": "prometheus"})
	worker.await("worker started")
	port := regexp.MustCompile(`"address":"[^"]*:(\d+)"`).FindStringSubmatch(worker.text())
	if port == nil {
		t.Fatalf("the log names no address:\n%s", worker.text())
	}
	post := func(body, secret, kind string) int {
		mac := hmac.New(sha256.New, []byte(secret))
		_, _ = mac.Write([]byte(body))
		request, err := http.NewRequestWithContext(testenv.Context(t), http.MethodPost,
			"http://127.0.0.1:"+port[1]+"/webhooks/"+canvas.String()+"/github", strings.NewReader(body))
		if err != nil {
			t.Error(err)
			return 0
		}
		request.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)))
		request.Header.Set("X-GitHub-Delivery", "delivery of "+body)
		request.Header.Set("X-GitHub-Event", kind)
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Error(err)
			return 0
		}
		_ = answer.Body.Close()
		return answer.StatusCode
	}
	var wait sync.WaitGroup
	for i := range 20 {
		wait.Go(func() {
			if status := post(fmt.Sprintf(`{ "n": %d }`, i%4), []string{"before", "hush"}[i%2], "push"); status != http.StatusOK {
				t.Errorf("a genuine request is answered with %d", status)
			}
		})
	}
	wait.Wait()
	if status := post(`{ "n": 5 }`, "guess", "push"); status != http.StatusUnauthorized {
		t.Errorf("a forgery is answered with %d", status)
	}
	if status := post(`{ "n": 6 }`, "hush", "ping"); status != http.StatusOK {
		t.Errorf("a type that nobody wants is answered with %d", status)
	}
	testenv.Eventually(t, "/metrics has what became of the requests", func() bool {
		_, text := worker.scrape()
		received := series(t, text)
		of := func(outcome string) float64 {
			return received[`eventsv2_webhooks_received_total{outcome="`+outcome+`"}`]
		}
		return of("accepted") == 4 && of("duplicate") == 16 && of("bad signature") == 1 && of("ignored") == 1
	})
	r.target.await(t, 4)
	r.awaitSQL("all have ended", `SELECT count(*) = 4 FROM event_log WHERE status = 'COMPLETED'`)
	// The deliveries are known after the end of their events as well.
	if status := post(`{ "n": 0 }`, "hush", "push"); status != http.StatusOK {
		t.Errorf("a late repeat is answered with %d", status)
	}
	if n := one[int](r, `SELECT count(*) FROM events_v2`); n != 0 {
		t.Errorf("%d events of a late repeat", n)
	}
	seen := map[string]bool{}
	for _, request := range r.target.await(t, 4) {
		if request.name != "build" || seen[request.body] {
			t.Errorf("the target got %s %s once more than it should", request.name, request.body)
		}
		seen[request.body] = true
	}
	if status := worker.terminate(); status != 0 {
		t.Errorf("the worker ended with %d after SIGTERM", status)
	}
	if strings.Contains(worker.text(), "hush") || !strings.Contains(worker.text(), "webhook refused") {
		t.Errorf("the log has a secret, or no refusal:\n%s", worker.text())
	}
}
