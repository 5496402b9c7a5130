package webhook

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
)

func init() {
	register("gitlab", GitLab)
	register("gitlab-token", GitLabToken)
}

// GitLab verifies webhooks that GitLab signs with a signing token, by the rules of
// Standard Webhooks. The type is X-Gitlab-Event, which is not signed; TypeFromBody
// with object_kind takes it from the body.
func GitLab(tokens ...string) (Verifier, error) {
	keys, err := standardKeys(tokens)
	if err != nil {
		return nil, fmt.Errorf("webhook.GitLab: %w", err)
	}
	return VerifierFunc(func(r *Request) (verified Verified, err error) {
		if verified.Delivery, err = verifyStandard(r, keys); err != nil {
			return verified, err
		}
		verified.Type, err = header(r, "X-Gitlab-Event")
		return verified, err
	}), nil
}

// GitLabToken compares X-Gitlab-Token with the secret tokens. The type is
// X-Gitlab-Event, the delivery Idempotency-Key or, from older versions,
// X-Gitlab-Event-UUID. Nothing is signed: prefer GitLab.
func GitLabToken(tokens ...string) (Verifier, error) {
	if err := checkSecrets(tokens); err != nil {
		return nil, fmt.Errorf("webhook.GitLabToken: %w", err)
	}
	return VerifierFunc(func(r *Request) (verified Verified, err error) {
		got, err := header(r, "X-Gitlab-Token")
		if err != nil {
			return verified, err
		}
		// The hashes are compared, so that the time does not depend on the length.
		sum, equal := sha256.Sum256([]byte(got)), 0
		for _, token := range tokens {
			want := sha256.Sum256([]byte(token))
			equal |= subtle.ConstantTimeCompare(sum[:], want[:])
		}
		if equal == 0 {
			return verified, errors.New("the token in X-Gitlab-Token is none of the secrets")
		}
		if verified.Type, err = header(r, "X-Gitlab-Event"); err != nil {
			return verified, err
		}
		if verified.Delivery, err = header(r, "Idempotency-Key"); err != nil {
			verified.Delivery, err = header(r, "X-Gitlab-Event-UUID")
		}
		return verified, err
	}), nil
}
