package access

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/coreos/go-oidc/v3/oidc"
)

// maxKeysBytes bounds what an issuer says of itself, and its keys.
const maxKeysBytes = 1 << 20

// keysError is the failure to get the keys of an issuer, which says nothing about a JWT.
type keysError struct{ err error }

func (e *keysError) Error() string { return e.err.Error() }
func (e *keysError) Unwrap() error { return e.err }

// keysTransport turns each answer that has no keys into a keysError: the library would take it for a JWT that is not valid.
type keysTransport struct{ http.RoundTripper }

func (t keysTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := t.RoundTripper.RoundTrip(r)
	if err != nil {
		return nil, &keysError{err}
	}
	if answer.StatusCode/100 == 3 && answer.Header.Get("Location") != "" {
		return answer, nil // the client follows it
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxKeysBytes+1))
	err = errors.Join(err, answer.Body.Close())
	switch {
	case err != nil:
		return nil, &keysError{err}
	case answer.StatusCode != http.StatusOK:
		return nil, &keysError{fmt.Errorf("the answer is %s", answer.Status)}
	case len(body) > maxKeysBytes:
		return nil, &keysError{fmt.Errorf("the answer is longer than %d bytes", maxKeysBytes)}
	case !hasKeys(body):
		return nil, &keysError{errors.New("the answer has no keys")}
	}
	answer.Body = io.NopCloser(bytes.NewReader(body))
	return answer, nil
}

// hasKeys reports whether an answer has keys, or says where they are.
func hasKeys(body []byte) bool {
	var document struct {
		Keys  []json.RawMessage `json:"keys"`
		Where string            `json:"jwks_uri"`
	}
	return json.Unmarshal(body, &document) == nil && (len(document.Keys) > 0 || document.Where != "")
}

type keysFailureKey struct{}

// withKeysFailure returns where watchedKeys notes a keysError, which the verifier turns into text.
func withKeysFailure(ctx context.Context) (context.Context, *error) {
	var failure error
	return context.WithValue(ctx, keysFailureKey{}, &failure), &failure
}

// watchedKeys are the keys of an issuer.
type watchedKeys struct{ oidc.KeySet }

func (k watchedKeys) VerifySignature(ctx context.Context, jwt string) ([]byte, error) {
	payload, err := k.KeySet.VerifySignature(ctx, jwt)
	var failed *keysError
	if noted, is := ctx.Value(keysFailureKey{}).(*error); is && (errors.As(err, &failed) || ctx.Err() != nil) {
		*noted = err
	}
	return payload, err
}
