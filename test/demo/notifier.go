package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"cloud.google.com/go/pubsub/v2/pstest"

	"eventsv2/pubsubnotify"
	"eventsv2/test/pubsubproxy"
	"eventsv2/test/services"
)

// The values of the option -notifier.
const (
	notifierAuto     = "auto"
	notifierEmulator = "emulator"
	notifierMemory   = "memory"
)

// emulatorVariable is the origin of an emulator that the environment names.
const emulatorVariable = "PUBSUB_EMULATOR_HOST"

// notifier is a Pub/Sub that processes on this machine can reach.
type notifier struct {
	host   string // host:port
	origin string // for the reader
	// lasting means that it existed before the demo and stays after it.
	lasting bool
	stop    func(context.Context) error
}

// openNotifier finds or starts the notifier that the option names.
func openNotifier(ctx context.Context, kind string) (*notifier, error) {
	if kind == notifierMemory {
		return fakeNotifier("the Pub/Sub library's fake server, in this process"), nil
	}
	service, err := services.Emulator(ctx)
	switch {
	case err == nil:
		return &notifier{host: service.URL, origin: "the official Pub/Sub emulator (" + shorten(service.Origin) + ")",
			lasting: service.Origin == emulatorVariable, stop: service.Stop}, nil
	case kind == notifierAuto && errors.Is(err, services.ErrNotFound):
		return fakeNotifier("the Pub/Sub library's fake server, in this process (no official emulator is here)"), nil
	default:
		return nil, err
	}
}

// fakeNotifier listens on the loopback interface.
func fakeNotifier(origin string) *notifier {
	server := pstest.NewServerWithAddress("127.0.0.1:0")
	return &notifier{host: server.Addr, origin: origin, stop: func(context.Context) error { return server.Close() }}
}

// shorten returns the first words of an origin, without the path after them.
func shorten(origin string) string {
	before, _, _ := strings.Cut(origin, " /")
	return strings.TrimSuffix(before, "'s")
}

// deleteTopic deletes the demo's topic and subscription from a notifier that stays after the
// demo.
func deleteTopic(ctx context.Context, config pubsubnotify.Config) error {
	project := "projects/" + config.ProjectID
	err := errors.Join(pubsubproxy.DeleteSubscription(ctx, config.EmulatorHost, project+"/subscriptions/"+config.Subscription),
		pubsubproxy.DeleteTopic(ctx, config.EmulatorHost, project+"/topics/"+config.Topic))
	if err != nil {
		return fmt.Errorf("remove the demo's topic from %s: %w", config.EmulatorHost, err)
	}
	return nil
}
