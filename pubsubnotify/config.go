package pubsubnotify

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"go.uber.org/zap"
	"google.golang.org/api/option"
)

// Config says where a Notifier finds its topic and its subscription.
type Config struct {
	// ProjectID is the Google Cloud project of both. Required.
	ProjectID string

	// Topic is the id of the topic, without the project. Required.
	Topic string

	// Subscription is the id of the pull subscription to the topic, without the
	// project. Required. All workers share it.
	Subscription string

	// Create has New make the topic and the subscription if they are missing. They
	// are also made again when a later call finds them gone; that call fails, and
	// the next one finds them.
	Create bool

	// EmulatorHost is host:port of an emulator, which is spoken to without
	// encryption and without credentials. Empty means Google Cloud Pub/Sub,
	// whatever the environment says.
	EmulatorHost string

	// Logger gets a warning for each message that is no notification. Nil means
	// no logs.
	Logger *zap.Logger

	// ClientOptions are added to the options of the connection, for example
	// credentials or another endpoint. They come last and so win.
	ClientOptions []option.ClientOption
}

func (c Config) withDefaults() Config {
	if c.Logger == nil {
		c.Logger = zap.NewNop()
	}
	return c
}

// resourceID is Pub/Sub's rule for the ids of topics and subscriptions.
var resourceID = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9._~+%-]{2,254}$`)

// Validate reports every field that is wrong, by its name.
func (c Config) Validate() error {
	var problems []error
	if c.ProjectID == "" || strings.ContainsAny(c.ProjectID, "/ \t\n") {
		problems = append(problems, fmt.Errorf("ProjectID %q: give the id of a Google Cloud project, such as my-project", c.ProjectID))
	}
	for _, id := range []struct{ field, value string }{{"Topic", c.Topic}, {"Subscription", c.Subscription}} {
		if !resourceID.MatchString(id.value) || strings.HasPrefix(id.value, "goog") {
			problems = append(problems, fmt.Errorf("%s %q: give an id without its project, of 3 to 255 letters, digits and -._~+%%, which begins with a letter and not with goog",
				id.field, id.value))
		}
	}
	if c.EmulatorHost != "" && (!strings.Contains(c.EmulatorHost, ":") || strings.Contains(c.EmulatorHost, "/")) {
		problems = append(problems, fmt.Errorf("EmulatorHost %q: give host:port without a scheme, such as localhost:8085", c.EmulatorHost))
	}
	if err := errors.Join(problems...); err != nil {
		return fmt.Errorf("pubsubnotify config: %w", err)
	}
	return nil
}

func (c Config) topicPath() string {
	return "projects/" + c.ProjectID + "/topics/" + c.Topic
}

func (c Config) subscriptionPath() string {
	return "projects/" + c.ProjectID + "/subscriptions/" + c.Subscription
}
