package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"cloud.google.com/go/pubsub/v2/pstest"

	"eventsv2/pubsubnotify"
	"eventsv2/test/halfbroker"
	"eventsv2/test/services"
)

// The values of the option -notifier.
const (
	doorbellAuto     = "auto"
	doorbellEmulator = "emulator"
	doorbellMemory   = "memory"
)

// emulatorVariable is the origin of an emulator that the environment names.
const emulatorVariable = "PUBSUB_EMULATOR_HOST"

// notifier is a Pub/Sub that processes on this machine can reach.
type doorbell struct {
	host   string // host:port
	origin string // for the reader
	// lasting says that it was there before the demo and will be there after it.
	lasting bool
	stop    func(context.Context) error
}

// openDoorbell finds or starts what the option asks for.
func openDoorbell(ctx context.Context, kind string) (*doorbell, error) {
	if kind == doorbellMemory {
		return fakeDoorbell("the Pub/Sub library's fake server, in this process"), nil
	}
	service, err := services.Emulator(ctx)
	switch {
	case err == nil:
		return &doorbell{host: service.URL, origin: "the official Pub/Sub emulator (" + shorten(service.Origin) + ")",
			lasting: service.Origin == emulatorVariable, stop: service.Stop}, nil
	case kind == doorbellAuto && errors.Is(err, services.ErrNotFound):
		return fakeDoorbell("the Pub/Sub library's fake server, in this process (no official emulator is here)"), nil
	default:
		return nil, err
	}
}

// fakeDoorbell listens on the loopback interface.
func fakeDoorbell(origin string) *doorbell {
	server := pstest.NewServerWithAddress("127.0.0.1:0")
	return &doorbell{host: server.Addr, origin: origin, stop: func(context.Context) error { return server.Close() }}
}

// shorten keeps the first words of an origin, without the path behind them.
func shorten(origin string) string {
	before, _, _ := strings.Cut(origin, " /")
	return strings.TrimSuffix(before, "'s")
}

// deleteTopic removes the demo's topic and subscription from a notifier that
// goes on without the demo.
func deleteTopic(ctx context.Context, config pubsubnotify.Config) error {
	project := "projects/" + config.ProjectID
	err := errors.Join(halfbroker.DeleteSubscription(ctx, config.EmulatorHost, project+"/subscriptions/"+config.Subscription),
		halfbroker.DeleteTopic(ctx, config.EmulatorHost, project+"/topics/"+config.Topic))
	if err != nil {
		return fmt.Errorf("remove the demo's topic from %s: %w", config.EmulatorHost, err)
	}
	return nil
}
