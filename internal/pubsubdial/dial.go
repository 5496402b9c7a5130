// Package pubsubdial connects to Google Cloud Pub/Sub, or to an emulator of it.
package pubsubdial

import (
	"context"
	"math"
	"time"

	pubsub "cloud.google.com/go/pubsub/v2/apiv1"
	"google.golang.org/api/option"
	gtransport "google.golang.org/api/transport/grpc"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/keepalive"
)

const (
	// reconnectMax is the longest pause between two attempts to connect.
	reconnectMax = time.Second

	// connectTimeout bounds one attempt to connect.
	connectTimeout = 5 * time.Second

	// keepaliveTime is the shortest interval that servers permit by default. They close
	// a connection that pings more often.
	keepaliveTime = 5 * time.Minute

	// keepaliveTimeout is how long sent data may go without an answer before the
	// connection counts as dead.
	keepaliveTimeout = 10 * time.Second
)

// Dial makes a connection, which the first call opens. An emulator, as host:port, gets no encryption and no credentials; "" means
// Google Cloud Pub/Sub, even if the environment names an emulator. The options of the caller come last. The library's own dial
// function is not used, since it would read PUBSUB_EMULATOR_HOST from the environment.
func Dial(ctx context.Context, emulator string, more []option.ClientOption) (*grpc.ClientConn, error) {
	options := []option.ClientOption{
		option.WithGRPCDialOption(grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: reconnectMax},
			MinConnectTimeout: connectTimeout,
		})),
		option.WithGRPCDialOption(grpc.WithKeepaliveParams(keepalive.ClientParameters{
			Time: keepaliveTime, Timeout: keepaliveTimeout,
		})),
		// Only Pub/Sub limits the size of a message. If the client refused an
		// answer for its size, every further pull would fail in the same way.
		option.WithGRPCDialOption(grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(math.MaxInt32))),
	}
	if emulator != "" {
		options = append(options,
			option.WithEndpoint(emulator),
			option.WithoutAuthentication(),
			option.WithTelemetryDisabled(),
			option.WithGRPCDialOption(grpc.WithNoProxy()))
		return gtransport.DialInsecure(ctx, append(options, more...)...)
	}
	options = append(options,
		option.WithEndpoint("pubsub.googleapis.com:443"),
		option.WithScopes(pubsub.DefaultAuthScopes()...))
	return gtransport.Dial(ctx, append(options, more...)...)
}
