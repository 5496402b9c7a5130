package webhook

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
)

func init() { register("slack", Slack) }

// Slack verifies X-Slack-Signature, and answers the challenge with which Slack checks
// an address. For the Events API the delivery is event_id, and the type is from the
// event. Commands and interactions are forms, not JSON. The body decides which it is,
// because the Content-Type is not signed. Forms have no type, and are identified by the
// signed text. Cast them with a function.
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
		if !json.Valid(r.Body) {
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
			return verified, errors.New("the body is genuine and no event: it is JSON of another form than Slack sends")
		}
		if body.Type == "url_verification" {
			return Verified{Type: body.Type, Reply: []byte(body.Challenge)}, nil
		}
		verified.Delivery = cmp.Or(body.EventID, verified.Delivery)
		verified.Type = cmp.Or(body.Event.Type, body.Type)
		return verified, nil
	}), nil
}
