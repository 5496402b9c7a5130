package service_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"eventsv2/eventqueue"
	"eventsv2/service"
	"eventsv2/test/testenv"
	"eventsv2/webhook"
	"eventsv2/webhook/received"
)

// A program counts what its sources receive, with the schemes of its handlers file, and hands that in when it stops.
func TestWebhookRequestsAreCountedBySource(t *testing.T) {
	t.Parallel()
	ctx, pool := testenv.Context(t), testenv.Pool(t)
	file := filepath.Join(t.TempDir(), "handlers.yaml")
	if err := os.WriteFile(file, []byte("handlers: [{module: M, name: n, modifier: _, url: http://a}]\n"+
		"webhooks: [{source: shop, scheme: github, secrets: [A], module: M, modifier: _, name: n}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := service.Open(ctx, service.Config{Pool: pool, HandlersFile: file, Secret: secretsIn(map[string]string{"A": "secret"}), Logger: testenv.Logger(t)})
	if err != nil {
		t.Fatal(err)
	}
	handler, err := s.Health()
	if err != nil {
		t.Fatal(err)
	}
	request := httptest.NewRequestWithContext(ctx, http.MethodPost, "/webhooks/"+eventqueue.CanvasID{7}.String()+"/shop", strings.NewReader(`{}`))
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, request)
	if answer.Code != http.StatusUnauthorized {
		t.Errorf("status %d", answer.Code)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	sources, err := received.NewReader("", pool).Sources(ctx)
	if err != nil || len(sources) != 1 || sources[0].Scheme != "github" || sources[0].Hour[webhook.BadSignature] != 1 || len(sources[0].Refusals) != 1 {
		t.Errorf("%+v, %v", sources, err)
	}
}
