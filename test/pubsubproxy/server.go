package pubsubproxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path"
	"sync"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
)

// Server is a proxy between programs and a Pub/Sub server that can make each method fail
// on its own. It supports calls with one request and one answer. It is safe for concurrent
// use.
type Server struct {
	listener net.Listener
	server   *grpc.Server
	upstream *grpc.ClientConn
	served   chan struct{}

	mu         sync.Mutex
	behaviours map[string]Behaviour
	calls      map[string]int
	answered   map[string]int
}

// Behaviour handles a call; pass passes it on to the server.
type Behaviour func(ctx context.Context, pass func() error) error

// EveryMethod sets the behaviour of the methods that have none of their own.
const EveryMethod = ""

// Open listens on a free port of the loopback interface and passes all calls on to the
// server at host:port. Both connections are unencrypted, as with an emulator.
func Open(ctx context.Context, upstream string) (*Server, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for calls of Pub/Sub: %w", err)
	}
	conn, err := grpc.NewClient("passthrough:///"+upstream, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithNoProxy(), grpc.WithDefaultCallOptions(grpc.ForceCodecV2(rawCodec{}), grpc.MaxCallRecvMsgSize(1<<30)))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("connect to Pub/Sub at %s: %w", upstream, err), listener.Close())
	}
	b := &Server{listener: listener, upstream: conn, served: make(chan struct{}),
		behaviours: map[string]Behaviour{}, calls: map[string]int{}, answered: map[string]int{}}
	b.server = grpc.NewServer(grpc.ForceServerCodecV2(rawCodec{}), grpc.UnknownServiceHandler(b.serve), grpc.MaxRecvMsgSize(1<<30))
	go func() {
		defer close(b.served)
		_ = b.server.Serve(listener) // ends with Close
	}()
	return b, nil
}

// Address returns the address that programs connect to.
func (b *Server) Address() string { return b.listener.Addr().String() }

// Set sets the behaviour of a method, such as Publish or Pull, for later calls; nil lets
// them pass. Calls that hang already continue to hang until their callers give up.
func (b *Server) Set(method string, behaviour Behaviour) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.behaviours[method] = behaviour
}

// Heal lets all calls pass again.
func (b *Server) Heal() {
	b.mu.Lock()
	defer b.mu.Unlock()
	clear(b.behaviours)
}

// Calls returns how often a method was called.
func (b *Server) Calls(method string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.calls[method]
}

// Answered returns how often a method had an answer with message ids or messages. An empty
// answer, such as that of a pull without messages, does not count.
func (b *Server) Answered(method string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.answered[method]
}

// Close ends all calls and the listener.
func (b *Server) Close() error {
	b.server.Stop()
	<-b.served
	return b.upstream.Close()
}

func (b *Server) serve(_ any, stream grpc.ServerStream) error {
	full, _ := grpc.MethodFromServerStream(stream)
	method := path.Base(full)
	var request, answer rawFrame
	if err := stream.RecvMsg(&request); err != nil {
		return err
	}
	b.mu.Lock()
	b.calls[method]++
	behaviour := b.behaviours[method]
	if behaviour == nil {
		behaviour = b.behaviours[EveryMethod]
	}
	b.mu.Unlock()
	pass := func() error { return b.upstream.Invoke(stream.Context(), full, &request, &answer) }
	if behaviour == nil {
		behaviour = Pass
	}
	if err := behaviour(stream.Context(), pass); err != nil {
		return err
	}
	if len(answer.data) > 0 {
		b.mu.Lock()
		b.answered[method]++
		b.mu.Unlock()
	}
	return stream.SendMsg(&answer)
}

// Pass passes the call on.
func Pass(_ context.Context, pass func() error) error { return pass() }

// Hang neither passes the call on nor answers it.
func Hang(ctx context.Context, _ func() error) error {
	<-ctx.Done()
	return status.FromContextError(ctx.Err()).Err()
}

// LoseAnswer passes the call on and never answers.
func LoseAnswer(ctx context.Context, pass func() error) error {
	_ = pass() // the result is lost
	return Hang(ctx, nil)
}

// Refuse answers with an error.
func Refuse(code codes.Code, message string) Behaviour {
	return func(context.Context, func() error) error { return status.Error(code, message) }
}

// First applies the behaviour to the first n calls, and lets all others pass.
func First(n int, behaviour Behaviour) Behaviour {
	var mu sync.Mutex
	return func(ctx context.Context, pass func() error) error {
		mu.Lock()
		n--
		now := n >= 0
		mu.Unlock()
		if now {
			return behaviour(ctx, pass)
		}
		return pass()
	}
}

// DeleteTopic deletes a topic of the server at host:port. It is no error if the topic does
// not exist.
func DeleteTopic(ctx context.Context, server, topic string) error {
	return without(server, func(conn *grpc.ClientConn) error {
		_, err := pubsubpb.NewPublisherClient(conn).DeleteTopic(ctx, &pubsubpb.DeleteTopicRequest{Topic: topic})
		return err
	})
}

// DeleteSubscription deletes a subscription in the same way.
func DeleteSubscription(ctx context.Context, server, subscription string) error {
	return without(server, func(conn *grpc.ClientConn) error {
		_, err := pubsubpb.NewSubscriberClient(conn).DeleteSubscription(ctx, &pubsubpb.DeleteSubscriptionRequest{Subscription: subscription})
		return err
	})
}

// without calls a server directly and not through a proxy. A resource that does not exist
// is no error.
func without(server string, remove func(*grpc.ClientConn) error) error {
	conn, err := grpc.NewClient("passthrough:///"+server, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithNoProxy())
	if err != nil {
		return fmt.Errorf("connect to Pub/Sub at %s: %w", server, err)
	}
	err = remove(conn)
	if status.Code(err) == codes.NotFound {
		err = nil
	}
	return errors.Join(err, conn.Close())
}

// rawFrame is a message that is not decoded.
type rawFrame struct{ data []byte }

// rawCodec passes messages on unchanged.
type rawCodec struct{}

func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	frame, ok := v.(*rawFrame)
	if !ok {
		return nil, fmt.Errorf("a message of type %T, and not a raw one", v)
	}
	return mem.BufferSlice{mem.SliceBuffer(frame.data)}, nil
}

func (rawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	frame, ok := v.(*rawFrame)
	if !ok {
		return fmt.Errorf("a message of type %T, and not a raw one", v)
	}
	frame.data = data.Materialize()
	return nil
}

func (rawCodec) Name() string { return "proto" }
