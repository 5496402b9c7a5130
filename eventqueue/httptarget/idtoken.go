package httptarget

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"cloud.google.com/go/compute/metadata"
	"golang.org/x/oauth2"
	"google.golang.org/api/idtoken"
)

const (
	// endsEarly is how long before its end a token is not used any more: the request and
	// the clock of the target need some of it.
	endsEarly = 5 * time.Minute

	// fetchTakes bounds getting a token, even if no request waits for it any more.
	fetchTakes = 30 * time.Second
)

// IDTokens gets identity tokens of Google (OIDC) for the service account that the program
// runs as: from the file that GOOGLE_APPLICATION_CREDENTIALS names, or from the metadata
// server of Cloud Run, GKE or Compute Engine, which GCE_METADATA_HOST can replace. A token
// is kept until five minutes before its end, whenever that is. It is safe for
// concurrent use.
type IDTokens struct {
	fetch func(ctx context.Context, audience string) (string, error)

	mu         sync.Mutex
	byAudience map[string]*heldToken
}

// heldToken is the token of an audience.
type heldToken struct {
	token   string
	until   time.Time
	request *tokenRequest // nil: none under way
}

// tokenRequest is one request for a token, for all that wait for it.
type tokenRequest struct {
	done  chan struct{} // closed when token and err are set
	token string
	err   error
}

// NewIDTokens makes IDTokens. It asks for nothing yet.
func NewIDTokens() *IDTokens { return newIDTokens(fetchIDToken) }

func newIDTokens(fetch func(ctx context.Context, audience string) (string, error)) *IDTokens {
	return &IDTokens{fetch: fetch, byAudience: map[string]*heldToken{}}
}

// Token returns a token for an audience. It blocks while one is asked for, until ctx
// ends; all that wait for the same audience share one request. The error says what to do,
// and never contains a token.
func (t *IDTokens) Token(ctx context.Context, audience string) (string, error) {
	t.mu.Lock()
	held := t.byAudience[audience]
	if held == nil {
		held = &heldToken{}
		t.byAudience[audience] = held
	}
	if time.Now().Before(held.until) {
		defer t.mu.Unlock()
		return held.token, nil
	}
	request := held.request
	if request == nil {
		request = &tokenRequest{done: make(chan struct{})}
		held.request = request
		// Not bounded by ctx: others wait for the same token.
		go t.ask(context.WithoutCancel(ctx), audience, held, request)
	}
	t.mu.Unlock()
	select {
	case <-request.done:
		return request.token, request.err
	case <-ctx.Done():
		return "", fmt.Errorf("no identity token for the audience %s yet: %s: %w", audience, tokenAdvice, context.Cause(ctx))
	}
}

// ask gets a token and hands it to all that wait for it.
func (t *IDTokens) ask(ctx context.Context, audience string, held *heldToken, request *tokenRequest) {
	ctx, cancel := context.WithTimeoutCause(ctx, fetchTakes, errTokenHangs)
	defer cancel()
	token, err := t.bounded(ctx, audience)
	var ends time.Time
	if err == nil {
		ends, err = endOf(token)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	held.request = nil
	if err == nil {
		held.token, held.until, request.token = token, ends.Add(-endsEarly), token
	} else {
		request.err = fmt.Errorf("no identity token for the audience %s: %w", audience, err)
	}
	close(request.done)
}

// bounded is fetch, and ends when ctx does: the libraries that fetch asks do not all heed it.
func (t *IDTokens) bounded(ctx context.Context, audience string) (string, error) {
	type fetched struct {
		token string
		err   error
	}
	done := make(chan fetched, 1)
	go func() {
		token, err := t.fetch(ctx, audience)
		done <- fetched{token, err}
	}()
	select {
	case f := <-done:
		return f.token, f.err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

var errTokenHangs = fmt.Errorf("the server that makes them has not answered for %s: %s", fetchTakes, tokenAdvice)

// Refused has the next Token ask for a new one, since a target has refused this one.
func (t *IDTokens) Refused(audience, token string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if held := t.byAudience[audience]; held != nil && held.token == token {
		held.until = time.Time{}
	}
}

// tokenAdvice is the remedy for a missing token.
const tokenAdvice = "run the worker with a service account whose metadata server answers (Cloud Run, Compute Engine, Workload Identity of GKE), " +
	"or let GOOGLE_APPLICATION_CREDENTIALS name the key file of one"

// endOf reads when a token ends. The metadata server hands out the same token for most of
// an hour, so that its end is not an hour from now. The error contains no part of it.
func endOf(token string) (time.Time, error) {
	parts := strings.Split(token, ".")
	var claims struct {
		Ends int64 `json:"exp"`
	}
	if len(parts) == 3 {
		if payload, err := base64.RawURLEncoding.DecodeString(parts[1]); err == nil {
			_ = json.Unmarshal(payload, &claims) // then there is no end
		}
	}
	if claims.Ends <= 0 || !validHeaderValue(token) {
		return time.Time{}, errors.New("what was sent in place of one is no JWT that ends: " + tokenAdvice)
	}
	return time.Unix(claims.Ends, 0), nil
}

// fetchIDToken asks for a new token.
func fetchIDToken(ctx context.Context, audience string) (string, error) {
	// The library asks for the token of a key file without ctx.
	source, err := idtoken.NewTokenSource(context.WithValue(ctx, oauth2.HTTPClient, &http.Client{Timeout: fetchTakes}), audience)
	if err != nil {
		if metadata.OnGCEWithContext(ctx) {
			return "", explainToken(err)
		}
		// Whether there is a metadata server is remembered for ever after one look, and
		// that of a new pod in GKE begins to answer some seconds later.
		token, direct := metadata.GetWithContext(ctx, "instance/service-accounts/default/identity?"+
			url.Values{"audience": {audience}, "format": {"full"}}.Encode())
		if direct != nil {
			return "", explainToken(err)
		}
		return token, nil
	}
	token, err := source.Token() // the one that it has just got
	if err != nil {
		return "", explainToken(err)
	}
	return token.AccessToken, nil
}

// explainToken says why there is no token, without what the servers have sent.
func explainToken(err error) error {
	var answered *metadata.Error
	var undefined metadata.NotDefinedError
	var unreachable *url.Error
	switch {
	case errors.As(err, &answered):
		return fmt.Errorf("the metadata server answered %d %s: %s", answered.Code, http.StatusText(answered.Code), tokenAdvice)
	case errors.As(err, &undefined):
		return errors.New("the metadata server knows no service account: " + tokenAdvice)
	case errors.As(err, &unreachable):
		return fmt.Errorf("the server that makes them does not answer (%w): %s", unreachable.Err, tokenAdvice)
	default:
		first, _, _ := strings.Cut(err.Error(), "\n") // what follows is the answer of a server
		return fmt.Errorf("%s: %s", first, tokenAdvice)
	}
}
