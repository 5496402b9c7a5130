package pubsubnotify

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"go.uber.org/zap"
	"google.golang.org/api/option"
)

// Config configures a Notifier or a Publisher: its topic and its subscription.
type Config struct {
	// ProjectID is the Google Cloud project of both. Required.
	ProjectID string

	// Topic is the id of the topic, without the project. Required.
	Topic string

	// Subscription is the id of the pull subscription to the topic, without the
	// project. Required. All workers share it.
	Subscription string

	// Create makes New create the topic and the subscription if they are missing. If a
	// later call finds that they no longer exist, that call fails and creates them again.
	Create bool

	// EmulatorHost is host:port of an emulator. The connection to it has no encryption
	// and no credentials. Empty means Google Cloud Pub/Sub, even if the environment
	// names an emulator.
	EmulatorHost string

	// Logger gets a warning for each message that is no notification. Default (nil):
	// none.
	Logger *zap.Logger

	// ClientOptions are added to the options of the connection, for example
	// credentials or another endpoint. They override the package's own options.
	ClientOptions []option.ClientOption
}

func (c Config) withDefaults() Config {
	if c.Logger == nil {
		c.Logger = zap.NewNop()
	}
	return c
}

// resourceID matches the ids that Pub/Sub accepts for topics and subscriptions.
var resourceID = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9._~+%-]{2,254}$`)

// Configured reports whether a configuration that names no notifier means Pub/Sub: it names a project or an
// emulator.
func (c Config) Configured() bool { return c.ProjectID != "" || c.EmulatorHost != "" }

// Validate returns an error that names every field with an invalid value.
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
