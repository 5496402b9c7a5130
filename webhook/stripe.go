package webhook

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

func init() { register("stripe", Stripe) }

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
		if err := keys.check(signatures, signed{before: times[0] + ".", body: r.Body}); err != nil {
			return verified, err
		}
		e := envelopeOf(r.Body)
		if e.ID == "" {
			return verified, errors.New("the body is genuine and no event: it has no id")
		}
		return Verified{Delivery: e.ID, Type: e.Type}, nil
	}), nil
}
