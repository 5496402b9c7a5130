package webhook

import "fmt"

func init() { registerTokens("cloud-scheduler", CloudScheduler) }

// CloudScheduler verifies the token of a job of Google's Cloud Scheduler. The value is the body, or null if it is empty.
// The type is the name of the job, X-CloudScheduler-JobName, and the delivery that with X-CloudScheduler-ScheduleTime, which
// is the same whenever the job tries again.
//
// Nothing but the sender is proved: the token signs neither the body nor the headers.
func CloudScheduler(config OIDC) (Verifier, error) {
	tokens, err := newTokens(config)
	if err != nil {
		return nil, fmt.Errorf("webhook.CloudScheduler: %w", err)
	}
	return VerifierFunc(func(r *Request) (verified Verified, err error) {
		if err := tokens.check(r); err != nil {
			return verified, err
		}
		if verified.Type, err = header(r, "X-CloudScheduler-JobName"); err != nil {
			return Verified{}, fmt.Errorf("%w: no job of Cloud Scheduler: %w", ErrUnusable, err)
		}
		due, err := header(r, "X-CloudScheduler-ScheduleTime")
		if err != nil {
			return Verified{}, fmt.Errorf("%w: no job of Cloud Scheduler: %w", ErrUnusable, err)
		}
		verified.Delivery = verified.Type + " " + due
		verified.Value = orNull(r.Body)
		return verified, nil
	}), nil
}
