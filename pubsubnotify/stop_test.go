package pubsubnotify

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"eventsv2/eventqueue"
)

// late answers a pull just before its time is over, if at all, and nothing else; with gone, what is
// given back is refused then, since the subscription is gone.
func late(answersPulls, gone bool) grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, _, reply any, _ *grpc.ClientConn, _ grpc.UnaryInvoker, _ ...grpc.CallOption) error {
		if response, ok := reply.(*pubsubpb.PullResponse); ok && answersPulls {
			<-time.After(pullTimeout - time.Millisecond)
			response.ReceivedMessages = []*pubsubpb.ReceivedMessage{{AckId: "a", Message: &pubsubpb.PubsubMessage{
				Data: encodeData(eventqueue.Notification{Event: 1}),
			}}}
			return nil
		}
		if gone && strings.HasSuffix(method, "/ModifyAckDeadline") {
			return status.Error(codes.NotFound, "Resource not found")
		}
		<-ctx.Done()
		return ctx.Err()
	}
}

// TestLastPullEndsInTime, with what it gives back, counted from when its caller has
// left: a program waits for it when it stops, beside a grace period that began then.
func TestLastPullEndsInTime(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ answersPulls, gone bool }{
		"nothing is answered": {}, "a pull is answered and giving back is not": {answersPulls: true},
		"the subscription is gone, which nobody makes again": {answersPulls: true, gone: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				config := Config{ProjectID: "project", Topic: "topic", Subscription: "subscription", EmulatorHost: "127.0.0.1:1"}
				config.ClientOptions = []option.ClientOption{option.WithGRPCDialOption(grpc.WithChainUnaryInterceptor(late(c.answersPulls, c.gone)))}
				config.Create = c.gone
				n, err := connected(t.Context(), config.withDefaults())
				if err != nil {
					t.Fatal(err)
				}
				ctx, leave := context.WithCancel(t.Context())
				var pulling sync.WaitGroup
				pulling.Go(func() {
					if _, err := n.Pull(ctx, 1); !errors.Is(err, context.Canceled) {
						t.Errorf("Pull = %v", err)
					}
				})
				synctest.Wait()
				left := time.Now()
				leave()
				pulling.Wait()
				if took := time.Since(left); took != 0 {
					t.Errorf("Pull returned %s after its ctx had ended", took)
				}
				if err := n.Close(); err != nil {
					t.Error(err)
				}
				if took := time.Since(left); took > lastPullTakes {
					t.Errorf("Close took until %s after the last caller had left, want %s", took, lastPullTakes)
				}
			})
		})
	}
}
