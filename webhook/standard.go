package webhook

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
)

func init() { register("standard", Standard) }

// Standard verifies Standard Webhooks with symmetric signatures (v1); the secrets
// are in base64, with or without whsec_. The delivery is webhook-id, the type that
// of the body, if it has one.
func Standard(secrets ...string) (Verifier, error) {
	keys, err := standardKeys(secrets)
	if err != nil {
		return nil, fmt.Errorf("webhook.Standard: %w", err)
	}
	return VerifierFunc(func(r *Request) (verified Verified, err error) {
		if verified.Delivery, err = verifyStandard(r, keys); err != nil {
			return verified, err
		}
		verified.Type = envelopeOf(r.Body).Type
		return verified, nil
	}), nil
}

func standardKeys(secrets []string) (hmacKeys, error) {
	keys := make([]string, len(secrets))
	for i, secret := range secrets {
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
		if err != nil {
			return hmacKeys{}, fmt.Errorf("secret %d is not base64: copy all of it, with or without whsec_", i+1)
		}
		keys[i] = string(key)
	}
	return newKeys(sha256.New, keys)
}

func verifyStandard(r *Request, keys hmacKeys) (id string, err error) {
	id, err = header(r, "Webhook-Id")
	if err != nil {
		return "", err
	}
	if strings.Contains(id, ".") {
		return "", errors.New("the id in Webhook-Id holds a dot")
	}
	timestamp, err := header(r, "Webhook-Timestamp")
	if err != nil {
		return "", err
	}
	text, err := header(r, "Webhook-Signature")
	if err != nil {
		return "", err
	}
	if err := checkTime(r, timestamp); err != nil {
		return "", err
	}
	signatures, err := collect(text, " ", "v1,", base64.StdEncoding.Strict().DecodeString)
	if err != nil {
		return "", err
	}
	return id, keys.check(signatures, signed{before: id + "." + timestamp + ".", body: r.Body})
}
