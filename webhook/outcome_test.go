package webhook_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/webhook"
)

// Each request to a source is observed once with what became of it, and one to no source is not.
func TestEachRequestIsObservedOnce(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var seen []string
	verify := func(r *webhook.Request) (v webhook.Verified, err error) {
		if strings.Contains(string(r.Body), "forged") {
			return v, fmt.Errorf("it is forged")
		}
		if strings.Contains(string(r.Body), "challenge") {
			v.Reply = []byte("yes")
		}
		v.Delivery = string(r.Body)
		return v, nil
	}
	limited := eventqueue.CanvasID{9}
	stripe, err := webhook.Stripe("secret")
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t, webhook.Config{MaxBodyBytes: 100, Sources: []webhook.Source{
		{Name: "shop", Verifier: webhook.VerifierFunc(verify), Cast: webhook.ToHandler(key), RefuseOverLimit: true},
		{Name: "timed", Verifier: stripe, Cast: webhook.ToHandler(key)},
	}, Check: func(_ context.Context, canvas eventqueue.CanvasID) (time.Duration, error) {
		if canvas == limited {
			return time.Second, nil
		}
		return 0, nil
	}, Observe: func(source webhook.Source, outcome webhook.Outcome, refused error) {
		mu.Lock()
		defer mu.Unlock()
		if outcome.Refused() != (refused != nil) {
			t.Errorf("%s: %v", outcome, refused)
		}
		seen = append(seen, source.Name+" "+string(outcome))
	}})
	for _, c := range []struct{ path, body, want string }{
		{canvas.String() + "/shop", "1", "shop accepted"},
		{canvas.String() + "/shop", "1", "shop duplicate"},
		{canvas.String() + "/shop", `"challenge"`, "shop ignored"},
		{canvas.String() + "/shop", "forged", "shop bad signature"},
		{canvas.String() + "/shop", "no JSON", "shop malformed"},
		{canvas.String() + "/shop", strings.Repeat("1", 101), "shop too large"},
		{limited.String() + "/shop", "2", "shop over its limit"},
		{canvas.String() + "/timed", "3", "timed too old"},
		{canvas.String() + "/nobody", "1", ""},
		{"x/shop", "1", ""},
	} {
		seen = nil
		request := httptest.NewRequest(http.MethodPost, "/webhooks/"+c.path, strings.NewReader(c.body))
		request.Header.Set("Stripe-Signature", fmt.Sprintf("t=%d,v1=00", now.Add(-time.Hour).Unix()))
		r.handler.ServeHTTP(httptest.NewRecorder(), request)
		if strings.Join(seen, ", ") != c.want {
			t.Errorf("%s %.20s: %q, want %q", c.path, c.body, seen, c.want)
		}
	}
}
