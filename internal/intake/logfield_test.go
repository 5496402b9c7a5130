package intake_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap/zapcore"

	"eventsv2/internal/intake"
)

// TestRequestIsDescribedWithoutItsQuery, and with no more of the sender's texts than fits a line.
func TestRequestIsDescribedWithoutItsQuery(t *testing.T) {
	t.Parallel()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/webhooks/c/github?token=secret", http.NoBody)
	r.RemoteAddr = "192.0.2.7:4711"
	r.Header.Set("User-Agent", strings.Repeat("a", 1000))
	out := zapcore.NewMapObjectEncoder()
	intake.LogField(r, http.StatusAccepted, 1500*time.Microsecond).AddTo(out)
	want := map[string]any{"httpRequest": map[string]any{"requestMethod": "POST", "requestUrl": "/webhooks/c/github", "status": 202,
		"userAgent": strings.Repeat("a", 200) + "…", "remoteIp": "192.0.2.7", "protocol": "HTTP/1.1", "latency": "0.001500s"}}
	if difference := cmp.Diff(want, out.Fields); difference != "" {
		t.Errorf("(-want +got)\n%s", difference)
	}
}
