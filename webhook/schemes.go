package webhook

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"strings"
)

// GitHub verifies X-Hub-Signature-256. The type is X-GitHub-Event, the delivery
// X-GitHub-Delivery, which a redelivery by hand repeats. The scheme has no time
// stamp: who has recorded a request can send it again under another delivery id.
func GitHub(secrets ...string) (Verifier, error) {
	return NewHMAC(HMAC{Secrets: secrets, Header: "X-Hub-Signature-256", Prefix: "sha256=",
		IDHeader: "X-GitHub-Delivery", TypeHeader: "X-GitHub-Event"})
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
		// Of their hashes, so that the time does not depend on the length.
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

// GitLab verifies webhooks that GitLab signs with a signing token, which is done as
// Standard Webhooks says. The type is X-Gitlab-Event.
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
	return id, keys.check(signatures, id, ".", timestamp, ".", string(r.Body))
}

// collect reads the signatures of one version out of a list. Others are left out:
// they are older or newer than what is known here.
func collect(list, separator, version string, decode func(string) ([]byte, error)) ([][]byte, error) {
	var signatures [][]byte
	for text := range strings.SplitSeq(list, separator) {
		encoded, ok := strings.CutPrefix(text, version)
		if !ok {
			continue
		}
		signature, err := decode(encoded)
		if err != nil {
			return nil, errors.New("a signature is not in the encoding that is expected")
		}
		signatures = append(signatures, signature)
	}
	if len(signatures) == 0 {
		return nil, fmt.Errorf("there is no signature of version %s", strings.Trim(version, ",="))
	}
	return signatures, nil
}

// Stripe verifies Stripe-Signature. Delivery and type are id and type of the event
// in the body.
func Stripe(secrets ...string) (Verifier, error) {
	keys, err := newKeys(sha256.New, secrets)
	if err != nil {
		return nil, fmt.Errorf("webhook.Stripe: %w", err)
	}
	return VerifierFunc(func(r *Request) (verified Verified, err error) {
		list, err := header(r, "Stripe-Signature")
		if err != nil {
			return verified, err
		}
		var times []string
		for text := range strings.SplitSeq(list, ",") {
			if t, ok := strings.CutPrefix(text, "t="); ok {
				times = append(times, t)
			}
		}
		if len(times) != 1 {
			return verified, fmt.Errorf("the header Stripe-Signature has %d time stamps", len(times))
		}
		if err := checkTime(r, times[0]); err != nil {
			return verified, err
		}
		signatures, err := collect(list, ",", "v1=", hex.DecodeString)
		if err != nil {
			return verified, err
		}
		if err := keys.check(signatures, times[0], ".", string(r.Body)); err != nil {
			return verified, err
		}
		e := envelopeOf(r.Body)
		if e.ID == "" {
			return verified, errors.New("the body is genuine and no event: it has no id")
		}
		return Verified{Delivery: e.ID, Type: e.Type}, nil
	}), nil
}

// Slack verifies X-Slack-Signature, and answers the challenge with which Slack
// tries an address. Of the Events API the delivery is event_id, and the type that of
// the event. Commands and interactions, which are forms and no JSON, have neither: cast
// them with a function.
func Slack(secrets ...string) (Verifier, error) {
	verifier, err := NewHMAC(HMAC{Secrets: secrets, Header: "X-Slack-Signature", Prefix: "v0=",
		Signed: "v0:{timestamp}:{body}", TimestampHeader: "X-Slack-Request-Timestamp"})
	if err != nil {
		return nil, fmt.Errorf("webhook.Slack: %w", err)
	}
	return VerifierFunc(func(r *Request) (verified Verified, err error) {
		if verified, err = verifier.Verify(r); err != nil {
			return verified, err
		}
		if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err == nil && kind == "application/x-www-form-urlencoded" {
			return verified, nil
		}
		var body struct {
			Type      string `json:"type"`
			Challenge string `json:"challenge"`
			EventID   string `json:"event_id"`
			Event     struct {
				Type string `json:"type"`
			} `json:"event"`
		}
		if err := json.Unmarshal(r.Body, &body); err != nil {
			return verified, errors.New("the body is genuine and no event: it is not the JSON that Slack sends")
		}
		if body.Type == "url_verification" {
			return Verified{Type: body.Type, Reply: []byte(body.Challenge)}, nil
		}
		verified.Delivery, verified.Type = body.EventID, body.Event.Type
		if verified.Type == "" {
			verified.Type = body.Type
		}
		return verified, nil
	}), nil
}

// envelope is what many senders have around their data.
type envelope struct {
	ID   string `json:"id"`
	Type string `json:"type"`
}

// envelopeOf reads it from a body that is genuine. What is no such thing has none.
func envelopeOf(body []byte) (e envelope) {
	if json.Unmarshal(body, &e) != nil {
		return envelope{}
	}
	return e
}
