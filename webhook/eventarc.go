package webhook

import (
	"fmt"

	"eventsv2/eventqueue"
)

func init() { registerTokens("eventarc", Eventarc) }

// Eventarc verifies the token of a trigger of Google's Eventarc, which sends a CloudEvent in binary mode. The value is the
// body, or null if it is empty. The delivery is ce-source and ce-id, which identify a CloudEvent, the type ce-type. These, ce-subject and ce-time
// are attributes of the event, but for those that are too long for one.
//
// Nothing but the sender is proved: the token signs neither the body nor the headers.
func Eventarc(config OIDC) (Verifier, error) {
	tokens, err := newTokens(config)
	if err != nil {
		return nil, fmt.Errorf("webhook.Eventarc: %w", err)
	}
	return VerifierFunc(func(r *Request) (verified Verified, err error) {
		if err := tokens.check(r); err != nil {
			return verified, err
		}
		var version, id, source string
		for _, part := range []struct {
			name string
			into *string
		}{{"ce-specversion", &version}, {"ce-id", &id}, {"ce-source", &source}, {"ce-type", &verified.Type}} {
			if *part.into, err = header(r, part.name); err != nil {
				return Verified{}, fmt.Errorf("%w: no CloudEvent in binary mode: %w", ErrUnusable, err)
			}
		}
		if version != "1.0" {
			return Verified{}, fmt.Errorf("%w: the CloudEvent is of version %q: it must be 1.0", ErrUnusable, short(version))
		}
		verified.Delivery = source + " " + id
		verified.Value = orNull(r.Body)
		verified.Attributes = map[string]string{}
		for _, name := range []string{"ce-id", "ce-source", "ce-type", "ce-subject", "ce-time"} {
			if value := r.Header.Get(name); value != "" && eventqueue.CheckAttribute(name, value) == nil {
				verified.Attributes[name] = value
			}
		}
		return verified, nil
	}), nil
}

// orNull is a body as a value: an empty one is null.
func orNull(body []byte) []byte {
	if len(body) == 0 {
		return []byte("null")
	}
	return body
}
