package setup

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/caarlos0/env/v11"

	"eventsv2/eventqueue"
	"eventsv2/pubsubnotify"
)

// Config is the configuration of the programs. Every field is one variable of
// the environment; docs/configuration.md is rendered from the tags.
type Config struct {
	DatabaseURL      string `env:"DATABASE_URL" used:"all" desc:"Postgres, as a URL or as keywords and values. Required."`
	DatabaseMaxConns int32  `env:"DATABASE_MAX_CONNS" envDefault:"10" used:"all" desc:"Largest number of connections in the pool. In addition, a worker has one connection for heartbeats and, with NOTIFIER=postgres, one that listens; a cron process has one that listens."`

	Notifier string `env:"NOTIFIER" envDefault:"pubsub" used:"all" desc:"The notifier: pubsub, or postgres, which needs no Pub/Sub and ignores the variables PUBSUB_…. It must be the same for all programs of a database."`

	ProjectID    string `env:"PUBSUB_PROJECT_ID" used:"all" desc:"Google Cloud project of topic and subscription. Required; only with the emulator the default is \"local\"."`
	Topic        string `env:"PUBSUB_TOPIC" envDefault:"events-v2" used:"all" desc:"Id of the topic."`
	Subscription string `env:"PUBSUB_SUBSCRIPTION" envDefault:"events-v2-workers" used:"all" desc:"Id of the pull subscription that all workers share."`
	Create       bool   `env:"PUBSUB_CREATE" envDefault:"false" used:"all" desc:"Create topic and subscription if they are missing, with the right settings."`
	EmulatorHost string `env:"PUBSUB_EMULATOR_HOST" used:"all" desc:"host:port of a Pub/Sub emulator. Empty: Google Cloud Pub/Sub."`

	MaxValueBytes  int           `env:"MAX_VALUE_BYTES" envDefault:"262144" used:"all" desc:"Largest value of an event, in bytes."`
	MaxDelay       time.Duration `env:"MAX_DELAY" envDefault:"8784h" used:"all" desc:"Longest delay of an event; at most 878400h, a hundred years."`
	PublishTimeout time.Duration `env:"PUBLISH_TIMEOUT" envDefault:"2s" used:"all" desc:"How long an emit waits, at most, until its notification is published. The event is accepted in any case."`

	LockTimeout time.Duration `env:"LOCK_TIMEOUT" used:"worker, cron" desc:"How long a lock is valid without being renewed, from 1s to 720h. It is a setting in the database: the first program that starts sets it (to 1m if this is empty), and a program with another value does not start. Set it to at least four times what a claim takes: a worker whose claims have no answer within half of it runs nothing, and warns. Empty: the setting in the database. See eventctl settings."`

	HandlersFile  string        `env:"HANDLERS_FILE" used:"worker" desc:"YAML file that maps handlers to HTTP targets. Required."`
	LinkLocal     bool          `env:"TARGET_LINK_LOCAL" envDefault:"false" used:"worker" desc:"Allow targets at link-local, unspecified and multicast addresses and at the metadata servers of clouds. If it is false, the events of such a target are FAILED at once, whatever name resolves to the address."`
	Concurrency   int           `env:"WORKER_CONCURRENCY" envDefault:"500" used:"worker" desc:"How many events a worker runs at once, at most, and so how many requests to targets are open. Below 500 the number of statements per event rises."`
	ClaimBatch    int           `env:"WORKER_CLAIM_BATCH" envDefault:"500" used:"worker" desc:"How many notifications one claim statement handles, at most; up to 1000."`
	Heartbeat     time.Duration `env:"WORKER_HEARTBEAT" used:"worker" desc:"Interval in which the locks of running events are renewed; at most half of LOCK_TIMEOUT. Empty: a quarter of it."`
	GracePeriod   time.Duration `env:"WORKER_GRACE_PERIOD" envDefault:"8s" used:"worker" desc:"How long running handlers may continue after SIGTERM; 0 is not at all. Stopping takes up to 2 s more (up to 5 s when nothing runs, for the last pull), so set it 2 s below what the platform allows (Cloud Run: 10 s). With NOTIFIER=postgres closing takes up to 2 s in addition, so set it 4 s below."`
	MaxEvents     int           `env:"WORKER_MAX_EVENTS" envDefault:"0" used:"worker" desc:"The worker ends, with status 0, after this number of events; 0 is no bound. The flag --max-events overrides it."`
	TTL           time.Duration `env:"WORKER_TTL" envDefault:"0s" used:"worker" desc:"The worker stops after this time, as after SIGTERM, and ends with status 0; 0 is no bound. The flag --ttl overrides it."`
	RetainHistory bool          `env:"RETAIN_HISTORY" envDefault:"false" used:"worker" desc:"Retain completed events in event_log. Failed events are always retained."`

	RelayInterval  time.Duration `env:"RELAY_INTERVAL" envDefault:"30s" used:"cron" desc:"Interval of the relay's passes. A commit that leaves a notification pending wakes the relay earlier."`
	RelayQuiet     time.Duration `env:"RELAY_QUIET" envDefault:"1m" used:"cron" desc:"How long after its last notification a due event that nobody runs counts as having lost it."`
	RelayPerSecond int           `env:"RELAY_PER_SECOND" envDefault:"20000" used:"cron" desc:"How many notifications one relay publishes per second, at most. What exceeds that stays pending, and is published canvas by canvas."`

	HistoryCompletedFor time.Duration `env:"HISTORY_COMPLETED_FOR" used:"cron" desc:"How long completed events stay in event_log, for example 72h. Empty: for ever."`
	HistoryFailedFor    time.Duration `env:"HISTORY_FAILED_FOR" used:"cron" desc:"How long failed events stay in event_log, for example 2160h. A deleted event cannot be retried. Empty: for ever."`
	HistoryInterval     time.Duration `env:"HISTORY_INTERVAL" envDefault:"1h" used:"cron" desc:"Interval in which old history is deleted."`
	HistoryPerSecond    int           `env:"HISTORY_PER_SECOND" envDefault:"20000" used:"cron" desc:"How many entries of event_log one cron process reads, and so deletes, per second, at most."`

	Port     int    `env:"PORT" envDefault:"8080" used:"worker, cron" desc:"Port of /healthz and /readyz, and of /webhooks/ in a worker with sources of webhooks. 0 is any free port."`
	LogLevel string `env:"LOG_LEVEL" envDefault:"info" used:"all" desc:"debug, info, warn or error."`
	LogStyle string `env:"LOG_FORMAT" envDefault:"json" used:"all" desc:"json (with Google's severity) or console."`
}

// The values of NOTIFIER.
const (
	notifierPubSub   = "pubsub"
	notifierPostgres = "postgres"
)

// UsesPubSub reports whether the notifier is Pub/Sub.
func (c Config) UsesPubSub() bool { return c.Notifier == notifierPubSub }

// Load reads the configuration from an environment, given as a map. Its error names every
// variable with an invalid value.
func Load(environment map[string]string) (Config, error) {
	var c Config
	if environment == nil {
		environment = map[string]string{} // for nil the library would use the environment of the process
	}
	if err := env.ParseWithOptions(&c, env.Options{Environment: environment}); err != nil {
		return c, fmt.Errorf("configuration: %w", clean(err))
	}
	if c.EmulatorHost != "" && c.ProjectID == "" {
		c.ProjectID = "local"
	}
	return c, c.validate()
}

// clean turns the library's list into one line that names the variables.
func clean(err error) error {
	var list env.AggregateError
	if !errors.As(err, &list) {
		return err
	}
	var problems []string
	for _, e := range list.Errors {
		var parse env.ParseError
		if errors.As(e, &parse) {
			problems = append(problems, fmt.Sprintf("%s: %v", variable(parse.Name), parse.Err))
			continue
		}
		problems = append(problems, e.Error())
	}
	return errors.New(strings.Join(problems, "; "))
}

func (c Config) validate() error {
	var problems []error
	required := func(name, value string) {
		if value == "" {
			problems = append(problems, fmt.Errorf("%s is not set", name))
		}
	}
	atLeast := func(name string, d, least time.Duration) {
		if d < least {
			problems = append(problems, fmt.Errorf("%s is %s: it must be at least %s", name, d, least))
		}
	}
	atMost := func(name string, d, most time.Duration) {
		if d > most {
			problems = append(problems, fmt.Errorf("%s is %s: it must be at most %s", name, d, most))
		}
	}
	required("DATABASE_URL", c.DatabaseURL)
	if c.Notifier != notifierPubSub && c.Notifier != notifierPostgres {
		problems = append(problems, fmt.Errorf("NOTIFIER is %q: it must be %s or %s", c.Notifier, notifierPubSub, notifierPostgres))
	}
	atLeast("MAX_DELAY", c.MaxDelay, time.Second)
	atLeast("PUBLISH_TIMEOUT", c.PublishTimeout, time.Millisecond)
	if c.LockTimeout != 0 {
		atLeast("LOCK_TIMEOUT", c.LockTimeout, time.Second)
		atMost("LOCK_TIMEOUT", c.LockTimeout, 720*time.Hour)
		atMost("WORKER_HEARTBEAT", c.Heartbeat, c.LockTimeout/2)
	}
	atLeast("WORKER_HEARTBEAT", c.Heartbeat, 0)
	atLeast("WORKER_GRACE_PERIOD", c.GracePeriod, 0)
	atLeast("WORKER_TTL", c.TTL, 0)
	if c.MaxEvents < 0 {
		problems = append(problems, fmt.Errorf("WORKER_MAX_EVENTS is %d: it must not be negative; 0 is no bound", c.MaxEvents))
	}
	atLeast("RELAY_INTERVAL", c.RelayInterval, 100*time.Millisecond)
	atMost("RELAY_INTERVAL", c.RelayInterval, 4*time.Minute)
	atLeast("RELAY_QUIET", c.RelayQuiet, 100*time.Millisecond)
	atLeast("HISTORY_COMPLETED_FOR", c.HistoryCompletedFor, 0)
	atLeast("HISTORY_FAILED_FOR", c.HistoryFailedFor, 0)
	atLeast("HISTORY_INTERVAL", c.HistoryInterval, time.Second)
	if c.ClaimBatch > eventqueue.MaxPublish {
		problems = append(problems, fmt.Errorf("WORKER_CLAIM_BATCH is %d: it must be at most %d", c.ClaimBatch, eventqueue.MaxPublish))
	}
	for name, n := range map[string]int{"DATABASE_MAX_CONNS": int(c.DatabaseMaxConns), "MAX_VALUE_BYTES": c.MaxValueBytes,
		"WORKER_CONCURRENCY": c.Concurrency, "WORKER_CLAIM_BATCH": c.ClaimBatch, "RELAY_PER_SECOND": c.RelayPerSecond,
		"HISTORY_PER_SECOND": c.HistoryPerSecond} {
		if n <= 0 {
			problems = append(problems, fmt.Errorf("%s is %d: it must be positive", name, n))
		}
	}
	if c.Port < 0 || c.Port > 65535 {
		problems = append(problems, fmt.Errorf("PORT is %d: it must be from 0 to 65535", c.Port))
	}
	if len(problems) > 0 {
		return fmt.Errorf("configuration: %w", errors.Join(problems...))
	}
	return nil
}

// PubSub returns the part of the configuration that pubsubnotify needs.
func (c Config) PubSub() pubsubnotify.Config {
	return pubsubnotify.Config{ProjectID: c.ProjectID, Topic: c.Topic, Subscription: c.Subscription,
		Create: c.Create, EmulatorHost: c.EmulatorHost}
}

// Limits returns the part of the configuration that limits emitted events.
func (c Config) Limits() eventqueue.Limits {
	return eventqueue.Limits{MaxValueBytes: c.MaxValueBytes, MaxDelay: c.MaxDelay}
}
