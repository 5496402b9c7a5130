package httptarget

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/webhook"
)

// tokenUntil is a JWT that ends then; nobody here checks its signature.
func tokenUntil(ends time.Time, name string) string {
	encode := base64.RawURLEncoding.EncodeToString
	return encode([]byte(`{"alg":"RS256"}`)) + "." + encode(fmt.Appendf(nil, `{"exp":%d}`, ends.Unix())) + "." + name
}

// TestTokenIsCachedUntilShortlyBeforeExpiry: its end is read from the token, since the
// metadata server hands out one that is used up by half.
func TestTokenIsCachedUntilShortlyBeforeExpiry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		tokens := newIDTokens(func(_ context.Context, audience string) (string, error) {
			asked++
			return tokenUntil(time.Now().Add(20*time.Minute), fmt.Sprint(audience, asked)), nil
		})
		for _, step := range []struct {
			wait time.Duration
			want string
		}{{0, "a1"}, {14 * time.Minute, "a1"}, {2 * time.Minute, "a2"}, {0, "a2"}} {
			time.Sleep(step.wait)
			if token, err := tokens.Token(t.Context(), "a"); err != nil || !strings.HasSuffix(token, "."+step.want) {
				t.Errorf("after %s: %s, %v; want that of %s", step.wait, token, err, step.want)
			}
		}
		if token, err := tokens.Token(t.Context(), "b"); err != nil || !strings.HasSuffix(token, ".b3") {
			t.Errorf("another audience: %s, %v", token, err)
		}
		used, _ := tokens.Token(t.Context(), "a")
		tokens.Refused("a", "another")
		if token, _ := tokens.Token(t.Context(), "a"); token != used {
			t.Error("a token was dropped that nobody has refused")
		}
		tokens.Refused("a", used)
		if token, _ := tokens.Token(t.Context(), "a"); token == used {
			t.Error("a refused token is used again")
		}
	})
}

// TestWaitForATokenEndsWithItsContext: whoever waits leaves when their run ends, one request serves all,
// and what failed is asked for again.
func TestWaitForATokenEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		answer := make(chan error)
		tokens := newIDTokens(func(ctx context.Context, _ string) (string, error) {
			asked.Add(1)
			select {
			case err := <-answer:
				return tokenUntil(time.Now().Add(time.Hour), "t"), err
			case <-ctx.Done():
				return "", ctx.Err()
			}
		})
		run, cancel := context.WithTimeoutCause(t.Context(), 3*time.Second, eventqueue.ErrTimeout)
		defer cancel()
		began := time.Now()
		_, err := tokens.Token(run, "a")
		if !errors.Is(err, eventqueue.ErrTimeout) || !strings.Contains(err.Error(), "GOOGLE_APPLICATION_CREDENTIALS") || time.Since(began) != 3*time.Second {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
		var waiting sync.WaitGroup
		for range 5 {
			waiting.Go(func() {
				if _, err := tokens.Token(t.Context(), "a"); err == nil || !strings.Contains(err.Error(), "broken") {
					t.Errorf("got %v", err)
				}
			})
		}
		synctest.Wait()
		answer <- errors.New("broken")
		waiting.Wait()
		if n := asked.Load(); n != 1 {
			t.Errorf("%d requests for one token", n)
		}
		go func() { answer <- nil }()
		if _, err := tokens.Token(t.Context(), "a"); err != nil {
			t.Errorf("after a failure: %v", err)
		}
		// A server that hangs for ever is left in the end.
		began = time.Now()
		if _, err := tokens.Token(t.Context(), "b"); !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, errTokenHangs) || time.Since(began) > time.Minute {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
	})
}

// TestHangingTokenServerIsAskedAgain, also through a library that does not heed its context.
func TestHangingTokenServerIsAskedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		let := make(chan struct{})
		var answers atomic.Bool
		tokens := newIDTokens(func(context.Context, string) (string, error) {
			if !answers.Load() {
				<-let
			}
			return tokenUntil(time.Now().Add(time.Hour), "t"), nil
		})
		began := time.Now()
		run, cancel := context.WithTimeout(t.Context(), 2*fetchTakes) // for the first one alone
		defer cancel()
		if _, err := tokens.Token(run, "a"); !errors.Is(err, errTokenHangs) || time.Since(began) != fetchTakes {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
		answers.Store(true)
		run, cancel = context.WithTimeout(t.Context(), fetchTakes)
		defer cancel()
		if _, err := tokens.Token(run, "a"); err != nil {
			t.Errorf("once it answers: %v", err)
		}
		close(let)
	})
}

func TestInvalidTokenIsRefused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "s3cret", "s3cret.s3cret.s3cret", "e30.e30.e30", tokenUntil(time.Now().Add(time.Hour), "a\nb")} {
		tokens := newIDTokens(func(context.Context, string) (string, error) { return text, nil })
		_, err := tokens.Token(testContext(t), "a")
		if err == nil || !strings.Contains(err.Error(), "no JWT that ends") || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// proving is a target that proves itself in every way, and a server for it.
func proving(t *testing.T, tokens *IDTokens, handler http.HandlerFunc) *Target {
	t.Helper()
	_, server := serve(t, handler)
	client := NewClient()
	t.Cleanup(client.CloseIdleConnections)
	target, err := New(Config{URL: server.URL, Client: client, Audience: "https://shop.example.com", IDTokens: tokens,
		Header: http.Header{"X-Api-Key": {"s3cret-key"}}, SigningSecrets: []string{signingSecret}})
	if err != nil {
		t.Fatal(err)
	}
	return target
}

const signingSecret = "whsec_c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0"

// TestSignedRequestsVerifyWithWebhook: the receiver verifies the signature with package webhook.
func TestSignedRequestsVerifyWithWebhook(t *testing.T) {
	t.Parallel()
	token := tokenUntil(time.Now().Add(time.Hour), "token")
	verifier, err := webhook.Standard(signingSecret)
	if err != nil {
		t.Fatal(err)
	}
	target := proving(t, newIDTokens(func(context.Context, string) (string, error) { return token, nil }), func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		verified, err := verifier.Verify(&webhook.Request{Header: r.Header, Body: body, Received: time.Now()})
		switch {
		case err != nil:
			http.Error(w, err.Error(), http.StatusBadRequest)
		case verified.Delivery != r.Header.Get("ce-id"):
			http.Error(w, "the delivery is "+verified.Delivery, http.StatusBadRequest)
		case r.Header.Get("Authorization") != "Bearer "+token:
			http.Error(w, "no token", http.StatusBadRequest)
		case r.Header.Get("X-Api-Key") != "s3cret-key":
			http.Error(w, "no key", http.StatusBadRequest)
		}
	})
	if err := target.Handle(testContext(t), testRun()); err != nil {
		t.Error(err)
	}
}

// TestRejectedTokenIsReplaced: a 401 is retried with another token, and ends no event.
func TestRejectedTokenIsReplaced(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	target := proving(t, newIDTokens(func(context.Context, string) (string, error) {
		return tokenUntil(time.Now().Add(time.Hour), fmt.Sprint("token", asked.Add(1))), nil
	}), func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.Header.Get("Authorization"), "token2") {
			w.WriteHeader(http.StatusUnauthorized)
		}
	})
	err := target.Handle(testContext(t), testRun())
	if outcomeOf(err) != retry || !strings.Contains(err.Error(), "auth.oidc.audience") {
		t.Errorf("the first run: %v", err)
	}
	if err := target.Handle(testContext(t), testRun()); err != nil {
		t.Errorf("the second run: %v", err)
	}
}

// TestSecretsInAnswersAreRedacted: some servers answer a bad request with what it was.
func TestSecretsInAnswersAreRedacted(t *testing.T) {
	t.Parallel()
	token := tokenUntil(time.Now().Add(time.Hour), "token")
	tokens := newIDTokens(func(context.Context, string) (string, error) { return token, nil })
	for name, answer := range map[string]func(r *http.Request) string{
		"the header":      func(r *http.Request) string { return r.Header.Get("Authorization") + " " + r.Header.Get("X-Api-Key") },
		"a cut token":     func(r *http.Request) string { return strings.Repeat("x", 180) + r.Header.Get("Authorization") },
		"a cut key":       func(*http.Request) string { return strings.Repeat("x", 191) + "s3cret-key and more" },
		"the whole token": func(*http.Request) string { return token },
	} {
		target := proving(t, tokens, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", "/s3cret-key")
			w.WriteHeader(http.StatusFound)
			_, _ = io.WriteString(w, answer(r))
		})
		err := target.Handle(testContext(t), testRun())
		if err == nil || strings.Contains(err.Error(), "s3cret") || strings.Contains(err.Error(), token[:12]) || !strings.Contains(err.Error(), redacted) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSignaturesInAnswersAreRedacted have none of them in the error: whoever may read errors could send the event again.
func TestSignaturesInAnswersAreRedacted(t *testing.T) {
	t.Parallel()
	var sent []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent = strings.Fields(r.Header.Get("Webhook-Signature"))
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, "you sent "+strings.Join(sent, " "))
	}))
	t.Cleanup(server.Close)
	target, err := New(Config{URL: server.URL, SigningSecrets: []string{"c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0", "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV1"}})
	if err != nil {
		t.Fatal(err)
	}
	err = target.Handle(testContext(t), testRun())
	if len(sent) != 2 || err == nil || !strings.Contains(err.Error(), redacted) {
		t.Fatalf("%d signatures, %v", len(sent), err)
	}
	for _, one := range sent {
		if strings.Contains(err.Error(), strings.TrimPrefix(one, "v1,")[:leastSecret]) {
			t.Errorf("the error has a signature: %v", err)
		}
	}
}

func TestUnsendableCredentialsAreRefused(t *testing.T) {
	t.Parallel()
	for want, config := range map[string]Config{
		"Audience: URL is not https":           {URL: "http://example.com", Audience: "a"},
		"Audience: URL has a user":             {URL: "https://u:s3cret@example.com", Audience: "a"},
		"Header: Authorization is set twice":   {URL: "https://u:s3cret@example.com", Header: http.Header{"authorization": {"s3cret"}}},
		"Header: the value of X-A holds":       {URL: "https://example.com", Header: http.Header{"X-A": {"s3cret\n"}}},
		"Header: ce-id begins with Ce-":        {URL: "https://example.com", Header: http.Header{"ce-id": {"s3cret"}}},
		"SigningSecrets: webhook.NewStandardS": {URL: "https://example.com", SigningSecrets: []string{"s3cret!"}},
	} {
		_, err := New(config)
		if err == nil || !strings.HasPrefix(err.Error(), "httptarget.New: "+want) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// TestHandlersFileSetsTheTokenAudience: with the default audience, and one of its own.
func TestHandlersFileSetsTheTokenAudience(t *testing.T) {
	t.Parallel()
	file, err := Parse("f", []byte(`
handlers:
  - {module: M, name: a, modifier: _, url: "https://shop.example.com:8443/push?x=1", auth: {oidc: {}}}
  - {module: M, name: b, modifier: _, url: "http://127.0.0.1/push", auth: {oidc: {audience: x}}, headers: {x-api-key: {env: KEY}}, signature: {scheme: standard, secrets: [S, S_BEFORE]}}
`))
	if err != nil {
		t.Fatal(err)
	}
	if a := file.Entries[0].Audience; a != "https://shop.example.com:8443" {
		t.Errorf("the default audience is %s", a)
	}
	config, err := file.Entries[1].config(Shared{Secret: func(variable string) (string, error) { return "of " + variable, nil }})
	if got := fmt.Sprint(config.Audience, config.Header, config.SigningSecrets, err); got != "xmap[X-Api-Key:[of KEY]] [of S of S_BEFORE] <nil>" {
		t.Errorf("got %s", got)
	}
	err = file.Register(eventqueue.NewHandlers(), Shared{Secret: func(variable string) (string, error) {
		return "", fmt.Errorf("the variable %s is not set", variable)
	}})
	if err == nil || err.Error() != "f:4: the variable KEY is not set" {
		t.Errorf("got %v", err)
	}
}
