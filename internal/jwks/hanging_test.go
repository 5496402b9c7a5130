package jwks_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"eventsv2/internal/jwks"
)

// line is the way to an issuer that answers at once, or hangs. It works within a bubble of synctest.
type line struct {
	asked atomic.Int64
	hangs atomic.Bool
}

func (l *line) RoundTrip(r *http.Request) (*http.Response, error) {
	l.asked.Add(1)
	if l.hangs.Load() {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	answer := httptest.NewRecorder()
	keysOf("max-age=600", "a")(answer, r)
	return answer.Result(), nil
}

// TestHungIssuerDelaysNobodyWithAUsableKey, and rests for five seconds after each request that it has not answered.
func TestHungIssuerDelaysNobodyWithAUsableKey(t *testing.T) {
	t.Parallel()
	key() // is made by the processor, and not within the bubble
	synctest.Test(t, func(t *testing.T) {
		set, err := jwks.New("https://issuer.example/keys")
		if err != nil {
			t.Fatal(err)
		}
		to := &line{}
		jwks.SetTransport(set, to)
		asks := func(id string, want error, takes time.Duration, asked int64) {
			t.Helper()
			began := time.Now()
			_, err := set.Key(id, began)
			took := time.Since(began)
			synctest.Wait()
			if n := to.asked.Load(); !errors.Is(err, want) || took != takes || n != asked {
				t.Errorf("key %s: %v after %s, and %d requests; want %v after %s, and %d", id, err, took, n, want, takes, asked)
			}
		}
		asks("a", nil, 0, 1)
		to.hangs.Store(true)
		<-time.After(601 * time.Second)
		asks("a", nil, 0, 2)
		asks("a", nil, 0, 2)
		<-time.After(2 * time.Second)
		asks("a", nil, 0, 2)
		asks("b", jwks.ErrUnavailable, 3*time.Second, 2) // it waits for the request that is under way
		<-time.After(4 * time.Second)
		asks("a", nil, 0, 2) // the issuer rests
		asks("b", jwks.ErrUnavailable, 0, 2)
		<-time.After(time.Second)
		asks("a", nil, 0, 3)
		<-time.After(10 * time.Second)
		to.hangs.Store(false)
		asks("a", nil, 0, 4)
		<-time.After(time.Minute)
		asks("b", jwks.ErrUnknown, 0, 5)
	})
}
