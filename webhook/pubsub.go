package webhook

import (
	"encoding/json"
	"fmt"

	"eventsv2/internal/pubsubmessage"
)

func init() { registerTokens("pubsub", PubSub) }

// PubSub verifies the token of a push subscription of Google Cloud Pub/Sub, which wraps a message in JSON. The value is
// the data of the message, or null if it has none. Its attributes are those of the event, with keys in lower case and _ for
// what an attribute cannot have in its key, and its ordering key is that of the event. The delivery is the message in its
// subscription, the type its attribute ce-type or, without that, eventType.
//
// Nothing but the sender is proved: the token signs neither the body nor the headers.
func PubSub(config OIDC) (Verifier, error) {
	tokens, err := newTokens(config)
	if err != nil {
		return nil, fmt.Errorf("webhook.PubSub: %w", err)
	}
	return VerifierFunc(func(r *Request) (Verified, error) {
		if err := tokens.check(r); err != nil {
			return Verified{}, err
		}
		m, err := pushed(r.Body)
		if err != nil {
			return Verified{}, fmt.Errorf("%w: %w", ErrUnusable, err)
		}
		return Verified{Delivery: m.Delivery(), Type: m.Type(), Value: m.Value(), OrderingKey: m.EventOrderingKey(), Attributes: m.EventAttributes()}, nil
	}), nil
}

// pushed reads the message of a body.
func pushed(body []byte) (m pubsubmessage.Message, err error) {
	var push struct {
		Subscription string `json:"subscription"`
		Message      struct {
			ID          string            `json:"messageId"`
			Data        []byte            `json:"data"`
			Attributes  map[string]string `json:"attributes"`
			OrderingKey string            `json:"orderingKey"`
		} `json:"message"`
	}
	if err := json.Unmarshal(body, &push); err != nil || push.Message.ID == "" || push.Subscription == "" {
		return m, fmt.Errorf("the body is no message that Pub/Sub has wrapped: let the subscription push without --push-no-wrapper")
	}
	return pubsubmessage.Message{Subscription: push.Subscription, ID: push.Message.ID, Data: push.Message.Data,
		Attributes: push.Message.Attributes, OrderingKey: push.Message.OrderingKey}, nil
}
