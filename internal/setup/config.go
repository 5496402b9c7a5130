package setup

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caarlos0/env/v11"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/pgsession"
	"eventsv2/pubsubnotify"
)

// Config is the configuration of the programs. Every field is one variable of
// the environment; docs/configuration.md is rendered from the tags.
type Config struct {
	DatabaseURL      string `env:"DATABASE_URL" used:"all" desc:"Postgres, as a URL or as keywords and values. Required."`
	DatabaseMaxConns int32  `env:"DATABASE_MAX_CONNS" envDefault:"10" used:"all" desc:"Largest number of connections in the pool. In addition, a worker has one connection for heartbeats and, with NOTIFIER=postgres, one that listens; a cron process has one that listens."`

	DatabasePasswordFile string `env:"DATABASE_PASSWORD_FILE" used:"all" desc:"File with the password of DATABASE_URL's user, such as a mounted secret. It is read for each new connection, so that a changed password needs no restart. Empty: the password is in DATABASE_URL."`

	CloudSQLInstance string `env:"CLOUDSQL_INSTANCE" used:"all" desc:"Connection name of a Cloud SQL instance, project:region:instance, to connect to it without a proxy; DATABASE_URL then gives the user and the database, such as postgres://worker%40my-project.iam@/events. Without a password the login is that of the service account (IAM). Empty: the host of DATABASE_URL."`
	CloudSQLIPType   string `env:"CLOUDSQL_IP_TYPE" envDefault:"public" used:"all" desc:"Address of the Cloud SQL instance: public, private or psc (Private Service Connect)."`
	CloudSQLEndpoint string `env:"CLOUDSQL_ADMIN_API_ENDPOINT" used:"all" desc:"URL of the Cloud SQL Admin API. Empty: Google's."`

	Schema pgsession.Schema `env:"EVENTS_SCHEMA" envDefault:"public" used:"all" desc:"Schema of the database that holds the queue. It must be the same for all programs of a queue; search_path does not matter."`
	Canvas string           `env:"EVENTS_CANVAS" used:"eventctl" desc:"Canvas of commands that have no --canvas: its uuid or name. Commands that list, count or change many events then take those of this canvas only. Empty: commands about one canvas need --canvas, the others are about all."`

	Notifier string `env:"NOTIFIER" used:"all" desc:"The notifier: pubsub, or postgres, which needs no Pub/Sub and ignores the variables PUBSUB_…. It must be the same for all programs of a database. Empty: pubsub if PUBSUB_PROJECT_ID or PUBSUB_EMULATOR_HOST is set, and postgres otherwise; commands of eventctl that publish want one of the three."`

	ProjectID    string `env:"PUBSUB_PROJECT_ID" used:"all" desc:"Google Cloud project of topic and subscription. Required with NOTIFIER=pubsub; only with the emulator the default is \"local\"."`
	Topic        string `env:"PUBSUB_TOPIC" envDefault:"events-v2" used:"all" desc:"Id of the topic."`
	Subscription string `env:"PUBSUB_SUBSCRIPTION" envDefault:"events-v2-workers" used:"all" desc:"Id of the pull subscription that all workers share."`
	Create       bool   `env:"PUBSUB_CREATE" envDefault:"false" used:"all" desc:"Create topic and subscription if they are missing, with the right settings."`
	EmulatorHost string `env:"PUBSUB_EMULATOR_HOST" used:"all" desc:"host:port of a Pub/Sub emulator. Empty: Google Cloud Pub/Sub."`

	MaxValueBytes  int           `env:"MAX_VALUE_BYTES" envDefault:"262144" used:"all" desc:"Largest value of an event, in bytes."`
	ValueKeyset    string        `env:"VALUE_KEYSET_FILE" used:"all" desc:"File with a key set of Tink in JSON, such as a mounted secret, with which values are encrypted when they are emitted and opened for handlers. It is read at the start. Empty: values are in the clear, and runs with encrypted ones fail. See encryption.md."`
	EncryptValues  bool          `env:"ENCRYPT_VALUES" envDefault:"true" used:"all" desc:"Whether values are encrypted when they are emitted, with VALUE_KEYSET_FILE. false: they are only opened, as before all workers have the key set."`
	MaxDelay       time.Duration `env:"MAX_DELAY" envDefault:"8784h" used:"all" desc:"Longest delay of an event; at most 878400h, a hundred years."`
	PublishTimeout time.Duration `env:"PUBLISH_TIMEOUT" envDefault:"2s" used:"all" desc:"How long an emit waits, at most, until its notification is published; at most 1m. The event is accepted in any case."`

	LockTimeout time.Duration `env:"LOCK_TIMEOUT" used:"worker, cron" desc:"How long a lock is valid without being renewed, from 1s to 720h. It is a setting in the database: the first program that starts sets it (to 1m if this is empty), and a program with another value does not start. Set it to at least four times what a claim takes: a worker whose claims have no answer within half of it runs nothing, and warns. Empty: the setting in the database. See eventctl settings."`

	HandlersFile  string        `env:"HANDLERS_FILE" used:"worker" desc:"YAML file that maps handlers to HTTP targets. Required."`
	LinkLocal     bool          `env:"TARGET_LINK_LOCAL" envDefault:"false" used:"worker" desc:"Allow targets at link-local, unspecified and multicast addresses and at the metadata servers of clouds. If it is false, the events of such a target are FAILED at once, whatever name resolves to the address."`
	TargetIdle    time.Duration `env:"TARGET_IDLE_TIMEOUT" envDefault:"4s" used:"worker" desc:"How long a connection to a target rests before the worker closes it; at least 1ms. Set it below the shortest idle time-out of your targets: Node and uvicorn have 5 s, gunicorn 2 s. A request that such a connection loses is sent once more, on a new one."`
	Concurrency   int           `env:"WORKER_CONCURRENCY" envDefault:"500" used:"worker" desc:"How many events a worker runs at once, at most, and so how many requests to targets are open. Below 500 the number of statements per event rises."`
	ClaimBatch    int           `env:"WORKER_CLAIM_BATCH" envDefault:"500" used:"worker" desc:"How many notifications one claim statement handles, at most; up to 1000."`
	Heartbeat     time.Duration `env:"WORKER_HEARTBEAT" used:"worker" desc:"Interval in which the locks of running events are renewed; at most half of LOCK_TIMEOUT. Empty: a quarter of it."`
	GracePeriod   time.Duration `env:"WORKER_GRACE_PERIOD" envDefault:"8s" used:"worker" desc:"How long running handlers may continue after SIGTERM; 0 is not at all. Stopping takes up to 2 s more (up to 5 s when nothing runs, for the last pull), so set it 2 s below what the platform allows (Cloud Run: 10 s). With NOTIFIER=postgres closing takes up to 2 s in addition, so set it 4 s below."`
	MaxHung       *int          `env:"WORKER_MAX_HUNG" used:"worker" desc:"How many handlers that do not return though their time is over may go on beside WORKER_CONCURRENCY others: 5 s after the end of its time such a run is given up, and its slot serves another event. 0: none, each holds its slot until it returns. Empty: as many as WORKER_CONCURRENCY, and at least 100."`
	HungLimit     time.Duration `env:"WORKER_HUNG_LIMIT" envDefault:"1m" used:"worker" desc:"/healthz fails when such handlers have held all slots for longer than this, so that the platform restarts the worker; 0: never."`
	MaxEvents     int           `env:"WORKER_MAX_EVENTS" envDefault:"0" used:"worker" desc:"The worker ends, with status 0, after this number of events; 0 is no bound. The flag --max-events overrides it."`
	TTL           time.Duration `env:"WORKER_TTL" envDefault:"0s" used:"worker" desc:"The worker stops after this time, as after SIGTERM, and ends with status 0; 0 is no bound. The flag --ttl overrides it."`
	RetainHistory bool          `env:"RETAIN_HISTORY" envDefault:"false" used:"worker" desc:"Retain completed events in event_log. Failed events are always retained."`

	RelayInterval  time.Duration `env:"RELAY_INTERVAL" envDefault:"30s" used:"cron" desc:"Interval of the relay's passes. A commit that leaves a notification pending wakes the relay earlier."`
	RelayLostAfter time.Duration `env:"RELAY_LOST_AFTER" envDefault:"1m" used:"cron" desc:"How long after its last notification a due event that is not running counts as having lost it."`
	RelayPerSecond int           `env:"RELAY_PER_SECOND" envDefault:"20000" used:"cron" desc:"How many notifications one relay publishes per second, at most. What exceeds that stays pending, and is published canvas by canvas."`

	HistoryCompletedFor time.Duration `env:"HISTORY_COMPLETED_FOR" used:"cron" desc:"How long completed events stay in event_log, for example 72h. Empty: for ever."`
	HistoryFailedFor    time.Duration `env:"HISTORY_FAILED_FOR" used:"cron" desc:"How long failed and cancelled events stay in event_log, for example 2160h. A deleted event cannot be retried. Empty: for ever."`
	AuditLogFor         time.Duration `env:"AUDIT_LOG_FOR" envDefault:"8784h" used:"cron" desc:"How long entries stay in the audit log; 0 is for ever."`
	CronRecordsFor      time.Duration `env:"CRON_RECORDS_FOR" envDefault:"720h" used:"cron" desc:"How long the records of cron slots stay; 0 is for ever. The newest record of each definition always stays."`
	HistoryInterval     time.Duration `env:"HISTORY_INTERVAL" envDefault:"1h" used:"cron" desc:"Interval in which old history is deleted."`
	HistoryPerSecond    int           `env:"HISTORY_PER_SECOND" envDefault:"20000" used:"cron" desc:"How many entries of event_log one cron process reads, and so deletes, per second, at most."`

	Port       string `env:"PORT" envDefault:"8080" used:"worker, cron" desc:"Port, or address with a port such as 127.0.0.1:8080, of /healthz and /readyz, of /runnable in cron, of /webhooks/ in a worker with sources of webhooks, and of /metrics with OTEL_METRICS_EXPORTER=prometheus. A port alone is one of every address of the machine; 0 is any free port."`
	APIListen  string `env:"API_LISTEN" used:"worker, cron" desc:"host:port on which the HTTP API is served, below /v1/. As long as there is neither a token nor an ACCESS_FILE it has to be a loopback address, such as 127.0.0.1:8090. The user of the database then needs the role queue_operator as well. Empty: nowhere."`
	AccessFile string `env:"ACCESS_FILE" used:"worker, cron, eventctl serve" desc:"YAML file with the issuers (OpenID Connect, Google's IAP) that let people into the HTTP API, beside tokens. Empty: none."`

	TrustedProxies []netip.Prefix `env:"TRUSTED_PROXIES" used:"worker, cron, eventctl serve" desc:"Networks of the proxies before the HTTP API and the dashboard, with commas between them, such as 10.0.0.0/8: their X-Forwarded-For says whose address the audit log has, and against which wrong tokens count. Empty: the address of whoever connects."`

	Dashboard       bool   `env:"DASHBOARD" envDefault:"false" used:"worker, cron, eventctl serve" desc:"Serve the dashboard beside the HTTP API, at all other paths of API_LISTEN, or of eventctl serve."`
	DashboardPrefix string `env:"DASHBOARD_PREFIX" used:"worker, cron, eventctl serve" desc:"Path below which browsers see the dashboard, where a proxy serves it beside other things, such as /admin/events. The proxy may pass the path on or take it away. The HTTP API stays at /v1/. Empty: the root."`
	DashboardKey    string `env:"DASHBOARD_KEY" used:"worker, cron, eventctl serve" desc:"At least 32 random characters, secret, the same for all programs behind one address: they accept each other's sessions. Empty: whoever is logged in has to log in again when the program starts again."`

	ProfilesListen string `env:"PPROF_LISTEN" used:"worker, cron" desc:"host:port on which profiles of the program are served for go tool pprof, below /debug/pprof/. It has to be a loopback address, such as 127.0.0.1:6060, for whoever reaches it is let in. Empty: nowhere."`

	LogLevel string `env:"LOG_LEVEL" envDefault:"info" used:"all" desc:"debug, info, warn or error."`
	LogStyle string `env:"LOG_FORMAT" envDefault:"json" used:"all" desc:"json (with the fields that Google Cloud Logging knows) or console."`

	LogEvents    string `env:"LOG_EVENTS" envDefault:"failures" used:"worker" desc:"Which runs have a line in the log: failures (FAILED at ERROR, a run that is tried again at WARNING, the others only at LOG_LEVEL=debug) or all (the others at INFO)."`
	TraceProject string `env:"GOOGLE_CLOUD_PROJECT" used:"all" desc:"Google Cloud project of the traces that lines of the log refer to. Empty: PUBSUB_PROJECT_ID."`

	// NotifierNamed is set where NOTIFIER names the notifier.
	NotifierNamed bool `env:"-"`

	// NotifierVariables is the result of NotifierVariables.New of the notifier, with the
	// values of the environment; nil where it has no variables of its own.
	NotifierVariables any `env:"-"`
}

// instanceName is a connection name of Cloud SQL. The project may begin with a domain.
var instanceName = regexp.MustCompile(`^([a-z0-9.-]+:)?[a-z0-9-]+:[a-z0-9-]+:[a-z0-9-]+$`)

// prefixPath is a path, perhaps with a slash at its end.
var prefixPath = regexp.MustCompile(`^(/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)*/?$`)

// minDashboardKey is how long DASHBOARD_KEY has to be.
const minDashboardKey = 32

// The values of LOG_EVENTS.
const (
	logFailures = "failures"
	logAll      = "all"
)

// LogsAllEvents reports whether runs that succeed have a line at INFO.
func (c Config) LogsAllEvents() bool { return c.LogEvents == logAll }

// Log returns how the programs log.
func (c Config) Log() LogConfig {
	return LogConfig{Style: c.LogStyle, Level: c.LogLevel, Project: cmp.Or(c.TraceProject, c.ProjectID)}
}

// UsesPubSub reports whether the notifier is Pub/Sub.
func (c Config) UsesPubSub() bool { return c.Notifier == "pubsub" }

// Load reads the configuration from an environment, given as a map. Its error names every
// variable with an invalid value.
func Load(environment map[string]string) (Config, error) {
	var c Config
	if environment == nil {
		environment = map[string]string{} // for nil the library would use the environment of the process
	}
	if err := parse(&c, environment); err != nil {
		return c, err
	}
	if c.NotifierNamed = c.Notifier != ""; !c.NotifierNamed {
		c.Notifier = "postgres"
		if c.PubSub().Configured() {
			c.Notifier = "pubsub"
		}
	}
	if fresh := notifiers[c.Notifier].New; fresh != nil {
		c.NotifierVariables = fresh()
		if err := parse(c.NotifierVariables, environment); err != nil {
			return c, err
		}
	}
	if c.EmulatorHost != "" && c.ProjectID == "" {
		c.ProjectID = "local"
	}
	return c, errors.Join(misspelled(environment), c.validate())
}

// parse reads the variables of a struct, to which variables points.
func parse(variables any, environment map[string]string) error {
	if err := env.ParseWithOptions(variables, env.Options{Environment: environment}); err != nil {
		return fmt.Errorf("configuration: %w", clean(err, reflect.TypeOf(variables).Elem()))
	}
	return nil
}

// clean turns the library's list into one line that names the variables of a struct.
func clean(err error, of reflect.Type) error {
	var list env.AggregateError
	if !errors.As(err, &list) {
		return err
	}
	var problems []string
	for _, e := range list.Errors {
		var parse env.ParseError
		if errors.As(e, &parse) {
			problems = append(problems, fmt.Sprintf("%s: %v", variable(of, parse.Name), parse.Err))
			continue
		}
		problems = append(problems, e.Error())
	}
	return errors.New(strings.Join(problems, "; "))
}

func (c Config) validate() error {
	p := &problems{}
	c.checkDatabase(p)
	c.checkNotifier(p)
	c.checkWorker(p)
	c.checkUpkeep(p)
	c.checkServers(p)
	for name, n := range map[string]int{"DATABASE_MAX_CONNS": int(c.DatabaseMaxConns), "MAX_VALUE_BYTES": c.MaxValueBytes,
		"WORKER_CONCURRENCY": c.Concurrency, "WORKER_CLAIM_BATCH": c.ClaimBatch, "RELAY_PER_SECOND": c.RelayPerSecond,
		"HISTORY_PER_SECOND": c.HistoryPerSecond} {
		p.unless(n > 0, "%s is %d: it must be positive", name, n)
	}
	if len(p.found) > 0 {
		return fmt.Errorf("configuration: %w", errors.Join(p.found...))
	}
	return nil
}

// problems collects what is wrong with a configuration.
type problems struct{ found []error }

func (p *problems) unless(valid bool, format string, args ...any) {
	if !valid {
		p.found = append(p.found, fmt.Errorf(format, args...))
	}
}

func (p *problems) atLeast(name string, d, least time.Duration) {
	p.unless(d >= least, "%s is %s: it must be at least %s", name, d, least)
}

func (p *problems) atMost(name string, d, most time.Duration) {
	p.unless(d <= most, "%s is %s: it must be at most %s", name, d, most)
}

func (c Config) checkDatabase(p *problems) {
	p.unless(c.DatabaseURL != "", "DATABASE_URL is not set")
	p.unless(c.CloudSQLInstance == "" || instanceName.MatchString(c.CloudSQLInstance),
		"CLOUDSQL_INSTANCE is %q: it must be project:region:instance, as gcloud sql instances describe has it as connectionName", c.CloudSQLInstance)
	p.unless(slices.Contains([]string{"public", "private", "psc"}, c.CloudSQLIPType), "CLOUDSQL_IP_TYPE is %q: it must be public, private or psc", c.CloudSQLIPType)
	if err := c.Schema.Validate(); err != nil {
		p.unless(false, "EVENTS_SCHEMA: %w", err)
	}
}

func (c Config) checkNotifier(p *problems) {
	_, known := notifiers[c.Notifier]
	p.unless(known, "NOTIFIER is %q: it must be %s", c.Notifier, NotifierNames(slices.Collect(maps.Keys(notifiers))))
	p.atLeast("MAX_DELAY", c.MaxDelay, time.Second)
	p.atLeast("PUBLISH_TIMEOUT", c.PublishTimeout, time.Millisecond)
	p.atMost("PUBLISH_TIMEOUT", c.PublishTimeout, time.Minute)
}

func (c Config) checkWorker(p *problems) {
	if c.LockTimeout != 0 {
		p.atLeast("LOCK_TIMEOUT", c.LockTimeout, time.Second)
		p.atMost("LOCK_TIMEOUT", c.LockTimeout, 720*time.Hour)
		p.atMost("WORKER_HEARTBEAT", c.Heartbeat, c.LockTimeout/2)
	}
	p.atLeast("WORKER_HEARTBEAT", c.Heartbeat, 0)
	p.atLeast("WORKER_GRACE_PERIOD", c.GracePeriod, 0)
	p.atLeast("WORKER_HUNG_LIMIT", c.HungLimit, 0)
	if c.MaxHung != nil {
		p.unless(*c.MaxHung >= 0, "WORKER_MAX_HUNG is %d: it must not be negative; 0 is none", *c.MaxHung)
	}
	p.atLeast("WORKER_TTL", c.TTL, 0)
	p.atLeast("TARGET_IDLE_TIMEOUT", c.TargetIdle, time.Millisecond)
	p.unless(c.MaxEvents >= 0, "WORKER_MAX_EVENTS is %d: it must not be negative; 0 is no bound", c.MaxEvents)
	p.unless(c.ClaimBatch <= eventqueue.MaxPublish, "WORKER_CLAIM_BATCH is %d: it must be at most %d", c.ClaimBatch, eventqueue.MaxPublish)
	p.unless(c.LogEvents == logFailures || c.LogEvents == logAll, "LOG_EVENTS is %q: it must be %s or %s", c.LogEvents, logFailures, logAll)
}

// checkUpkeep is for the relay, and the removal of what is old.
func (c Config) checkUpkeep(p *problems) {
	p.atLeast("RELAY_INTERVAL", c.RelayInterval, 100*time.Millisecond)
	p.atMost("RELAY_INTERVAL", c.RelayInterval, 4*time.Minute)
	p.atLeast("RELAY_LOST_AFTER", c.RelayLostAfter, 100*time.Millisecond)
	p.atLeast("HISTORY_COMPLETED_FOR", c.HistoryCompletedFor, 0)
	p.atLeast("HISTORY_FAILED_FOR", c.HistoryFailedFor, 0)
	p.atLeast("AUDIT_LOG_FOR", c.AuditLogFor, 0)
	p.atLeast("CRON_RECORDS_FOR", c.CronRecordsFor, 0)
	p.atLeast("HISTORY_INTERVAL", c.HistoryInterval, time.Second)
}

func (c Config) checkServers(p *problems) {
	n := len(c.DashboardKey)
	p.unless(n == 0 || n >= minDashboardKey, "DASHBOARD_KEY is %d characters long: it must be at least %d random ones", n, minDashboardKey)
	prefix := c.DashboardPrefix
	p.unless(prefix == "" || prefixPath.MatchString(prefix) && prefix != "/v1" && !strings.HasPrefix(prefix, "/v1/"),
		"DASHBOARD_PREFIX is %q: it must be a path such as /admin/events, and not /v1, which is that of the HTTP API", prefix)
	for name, address := range map[string]string{"API_LISTEN": c.APIListen, "PPROF_LISTEN": c.ProfilesListen} {
		if _, _, err := net.SplitHostPort(address); address != "" && err != nil {
			p.unless(false, "%s is %q: it must be host:port: %w", name, address, err)
		}
	}
	if _, err := ListenAddress(c.Port); err != nil {
		p.unless(false, "%w", err)
	}
}

// ListenAddress returns the address, host:port, on which a program listens for a value of PORT. A port alone is
// one of every address of the machine.
func ListenAddress(port string) (string, error) {
	address := port
	if !strings.Contains(port, ":") {
		address = ":" + port
	}
	_, number, err := net.SplitHostPort(address)
	if err == nil {
		_, err = strconv.ParseUint(number, 10, 16)
	}
	if err != nil {
		return "", fmt.Errorf("PORT is %q: it must be a port from 0 to 65535, or an address with one, such as 127.0.0.1:8080", port)
	}
	return address, nil
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
