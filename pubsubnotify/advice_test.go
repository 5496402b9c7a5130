package pubsubnotify

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// TestErrorSaysWhatToDo, and its advice, which anybody may read, says so without a name.
func TestErrorSaysWhatToDo(t *testing.T) {
	t.Parallel()
	config := Config{ProjectID: "secret-project", Topic: "secret-topic", Subscription: "secret-subscription", EmulatorHost: "secret-host:1"}
	cloud := config
	cloud.EmulatorHost = ""
	over, stop := context.WithDeadline(t.Context(), time.Now())
	defer stop()
	const gone = "the topic or the subscription is gone"
	for name, c := range map[string]struct {
		ctx    context.Context
		config Config
		code   codes.Code
		text   []string
		advice string
	}{
		"Unavailable": {config: cloud, code: codes.Unavailable,
			text:   []string{"Google Cloud Pub/Sub does not answer; check that it runs"},
			advice: "it does not answer: check that it runs and can be reached"},
		"Unavailable emulator": {config: config, code: codes.Unavailable,
			text:   []string{"the Pub/Sub emulator at secret-host:1 does not answer; check that it runs"},
			advice: "it does not answer: check that it runs and can be reached"},
		"DeadlineExceeded": {config: config, code: codes.DeadlineExceeded,
			text:   []string{"secret-host:1 does not answer; check that it runs"},
			advice: "it does not answer: check that it runs and can be reached"},
		"the caller's deadline": {ctx: over, config: config, code: codes.Canceled,
			text:   []string{"secret-host:1 does not answer; check that it runs"},
			advice: "it does not answer: check that it runs and can be reached"},
		"PermissionDenied": {config: config, code: codes.PermissionDenied,
			text:   []string{"grant it roles/pubsub.publisher in project secret-project"},
			advice: "a right is missing: grant roles/pubsub.publisher"},
		"Unauthenticated": {config: config, code: codes.Unauthenticated,
			text:   []string{"credentials of a service account of project secret-project"},
			advice: "it does not know the program: give it credentials"},
		"NotFound": {config: config, code: codes.NotFound,
			text: []string{gone, "PUBSUB_CREATE=true", "gcloud pubsub topics create secret-topic --project=secret-project",
				"gcloud pubsub subscriptions create secret-subscription --project=secret-project --topic=secret-topic"},
			advice: gone + ": have them made again"},
		"ResourceExhausted": {config: config, code: codes.ResourceExhausted,
			text:   []string{"a quota of project secret-project is exhausted; raise it"},
			advice: "a quota is exhausted: raise it"},
		"Internal": {config: config, code: codes.Internal, advice: "it refuses a call"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			if c.ctx != nil {
				ctx = c.ctx
			}
			answer := status.Error(c.code, "secret-topic of secret-project at secret-host:1 said no")
			err := explain(ctx, c.config, "publish to "+c.config.topicPath(), rolePublisher, answer)
			cause := answer
			if c.ctx != nil {
				cause = c.ctx.Err()
			}
			for _, want := range append(c.text, "publish to projects/secret-project/topics/secret-topic", cause.Error()) {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error is %q, want %q in it", err, want)
				}
			}
			if !errors.Is(err, cause) {
				t.Errorf("%v does not wrap %v", err, cause)
			}
			if got := Advice(err); got != c.advice || strings.Contains(got, "secret") {
				t.Errorf("the advice is %q, want %q", got, c.advice)
			}
		})
	}
}
