package webhook

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// TypeFromBody takes the type of event from the body, which most schemes sign, and
// not from a header, which most do not sign. The first of fields that the body, a JSON
// object, has decides: if its value is a text, the type is that text; if it is anything
// else but null, the type is the name of the field, as given here. Dots lead into
// objects ("event.type"). A body that has none of the fields has no type.
//
//	GitLab: TypeFromBody(v, "object_kind")
//	GitHub: TypeFromBody(v, "comment", "pull_request", "issue", "pusher")
//
// In a message of Pub/Sub it is the data that has the fields. Everything else is left to verifier.
func TypeFromBody(verifier Verifier, fields ...string) (Verifier, error) {
	if verifier == nil {
		return nil, errors.New("webhook.TypeFromBody: verifier must not be nil")
	}
	if len(fields) == 0 {
		return nil, errors.New("webhook.TypeFromBody: name at least one field")
	}
	for _, field := range fields {
		if slices.Contains(strings.Split(field, "."), "") {
			return nil, fmt.Errorf("webhook.TypeFromBody: field %q: write it like object_kind or event.type", field)
		}
	}
	return VerifierFunc(func(r *Request) (Verified, error) {
		verified, err := verifier.Verify(r)
		if err == nil && verified.Reply == nil {
			verified.Type = typeOf(verified.payload(r.Body), fields)
		}
		return verified, err
	}), nil
}

func typeOf(body []byte, fields []string) string {
	for _, field := range fields {
		value := json.RawMessage(body)
		for name := range strings.SplitSeq(field, ".") {
			var object map[string]json.RawMessage
			if json.Unmarshal(value, &object) != nil {
				object = nil
			}
			value = object[name]
		}
		var text *string
		switch {
		case len(value) == 0 || string(value) == "null":
		case json.Unmarshal(value, &text) == nil:
			return *text
		default:
			return field
		}
	}
	return ""
}
