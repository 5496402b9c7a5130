package pubsubsource

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"go.uber.org/zap"
	"google.golang.org/api/option"

	"eventsv2/eventqueue"
)

// Config configures a Source.
type Config struct {
	// Subscription is the whole name: projects/my-project/subscriptions/orders-to-events. Required. It is not the subscription of a
	// notifier. Several programs may use it at once.
	Subscription string

	// Canvas and Handler are those of the events. Required.
	Canvas  eventqueue.CanvasID
	Handler eventqueue.HandlerKey

	// EmulatorHost is host:port of an emulator. Default (""): Google Cloud Pub/Sub.
	EmulatorHost string

	// ClientOptions are added to the options of the connection, for example credentials.
	ClientOptions []option.ClientOption

	// Logger gets a warning for each message of which no event can be made, 20 within 10 s, and for each failure. Default
	// (nil): none.
	Logger *zap.Logger
}

var subscriptionName = regexp.MustCompile(`^projects/([^/\s]+)/subscriptions/([A-Za-z][A-Za-z0-9._~+%-]{2,254})$`)

// Validate returns an error that names every field with an invalid value.
func (c Config) Validate() error {
	var problems []error
	if !subscriptionName.MatchString(c.Subscription) {
		problems = append(problems, fmt.Errorf("subscription %q: give its whole name, like projects/my-project/subscriptions/orders-to-events", c.Subscription))
	}
	if c.Canvas == (eventqueue.CanvasID{}) {
		problems = append(problems, errors.New("canvas is missing: give the one that the events are for"))
	}
	if field, err := eventqueue.CheckHandler(c.Handler); err != nil {
		problems = append(problems, fmt.Errorf("%s of the handler %w", field, err))
	}
	return errors.Join(problems...)
}

// flags are those of gcloud that name the subscription.
func (c Config) flags() string {
	parts := subscriptionName.FindStringSubmatch(c.Subscription)
	return parts[2] + " --project=" + parts[1]
}

// short is a text for the log that others have chosen.
func short(text string) string {
	const most = 200
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
