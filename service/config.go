package service

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/zap"

	"eventsv2/cronchecker"
	"eventsv2/eventqueue"
	"eventsv2/eventqueue/maintenance"
	"eventsv2/eventqueue/pgsession"
	"eventsv2/eventqueue/typed"
	"eventsv2/eventqueue/worker"
	"eventsv2/internal/setup"
	"eventsv2/pubsubnotify"
	"eventsv2/valuecodec"
)

// The canvas, the module and the modifier of events and handlers that name none.
const (
	DefaultModule   = "WORKER"
	DefaultModifier = "_"
)

// DefaultCanvas is the only tenant of a program that has no others; see
// [Config.MultiTenant].
var DefaultCanvas = eventqueue.CanvasID{15: 1}

// Config configures a Service. Only the database has to be named: DatabaseURL or Pool.
type Config struct {
	// Name is shown in pg_stat_activity. Default (""): eventsv2.
	Name string

	// DatabaseURL is Postgres, as a URL or as keywords and values. Its schema is made
	// with eventctl migrate up.
	DatabaseURL string

	// Access is how the server of DatabaseURL is reached and logged in to, where the URL does not
	// say it: a dialer such as that of cloudsqlconn, a file with the password.
	Access pgsession.Access

	// cloudSQL is the value of CLOUDSQL_INSTANCE, read by FromEnvironment, for which Access needs
	// a Dial.
	cloudSQL string

	// Schema is the schema of the database that holds the queue, the same for all its programs, whatever
	// the search path is. Default (""): public.
	Schema pgsession.Schema

	// MaxConns bounds the pool that is made for DatabaseURL. A worker has one connection
	// more, for heartbeats, a relay one to listen. Default (0): 10.
	MaxConns int32

	// Pool is a pool of the program's own, in place of DatabaseURL, Name and MaxConns. It
	// stays the program's to close, after Close.
	Pool *pgxpool.Pool

	// Notifier wakes workers; it is the same for all programs of a database. Default
	// (""): PubSub if PubSub names a project or an emulator, and Postgres otherwise.
	Notifier NotifierKind

	// PubSub is for the notifier PubSub. Defaults: the topic is events-v2, the
	// subscription events-v2-workers, and the project local with an emulator.
	PubSub pubsubnotify.Config

	// notifierVariables holds the variables, read by FromEnvironment, of a notifier with variables
	// that no other field is for; nil otherwise.
	notifierVariables any

	// MultiTenant refuses events that name no canvas. Default (false): they are
	// Queue.Canvas's.
	MultiTenant bool

	// Queue configures emitting. Defaults beside its own: DefaultCanvas (unless
	// MultiTenant), DefaultModule and DefaultModifier.
	Queue eventqueue.QueueConfig

	// Codec encrypts the values of what the program emits, after Queue.EmitMiddleware, and opens them before the handlers
	// and Worker.Middleware. Default (nil): values are in the clear, and a run whose value is encrypted is a failed attempt,
	// unless Worker.OpenValue is set. It does the same to results.
	Codec *valuecodec.Codec

	// Typed configures typed events; see On.
	Typed typed.Config

	// LockTimeout is as in [worker.Config], for all parts. Default (0): the database's,
	// which is 1 minute unless set.
	LockTimeout time.Duration

	// Worker, Relay, Cron and Pruner configure what Run runs. A lock timeout is not set
	// here but in LockTimeout.
	Worker worker.Config
	Relay  maintenance.RelayConfig
	Cron   cronchecker.Config
	Pruner maintenance.PrunerConfig

	// NoWorker, NoRelay, NoCron and NoPruner have Run leave a part to other programs. Some
	// program of a database has to run the relay: without one, events that are emitted by
	// SQL or in transactions of the caller's, that are delayed for more than 10 minutes, or
	// whose notifications are lost, start late or never. A Service without a worker needs
	// no subscription of Pub/Sub; one with no part at all only emits, and is not Run.
	NoWorker, NoRelay, NoCron, NoPruner bool

	// NoWait has Open fail where the database cannot be reached, which suits a command
	// with a user who waits. Default (false): Run waits for it.
	NoWait bool

	// HandlersFile names a YAML file of handlers that post their events to HTTP targets,
	// and of sources of webhooks, which Run serves on Address (docs/configuration.md).
	// Default (""): none.
	HandlersFile string

	// TargetLinkLocal lets targets of the file be at link-local addresses.
	TargetLinkLocal bool

	// TargetIdleTimeout is how long a connection to a target of the file may rest before the
	// worker closes it. Default (0): httptarget.DefaultIdleTimeout, 4 s.
	TargetIdleTimeout time.Duration

	// Secret returns the secret for a variable that the file names. Default (nil): that
	// of the process's environment, where it must be.
	Secret func(variable string) (string, error)

	// Address is where Run serves /healthz, /readyz, /webhooks/ and /metrics, such as :8080. Default
	// (""): nowhere; see Health for a server of the program's own.
	Address string

	// Metrics is served as /metrics on Address, and by Health. Default (nil): nothing is.
	Metrics http.Handler

	// Observer sees what the parts do. Default (nil): none. Package otelevents has one.
	Observer Observer

	// AuditLogFor is how long the audit log is retained by the pruning. Default (0): for ever.
	AuditLogFor time.Duration

	// Logger is for all parts whose own Config has none. Default (nil): JSON lines on
	// the standard error from info on (docs/logs.md). zap.NewNop() is silent.
	Logger *zap.Logger

	// SlogLogger is a logger of log/slog in place of Logger. Its handler gets the fields of
	// a line as attributes, and its level counts.
	SlogLogger *slog.Logger
}

func (c Config) withLogger() (Config, error) {
	if c.Logger != nil {
		return c, nil
	}
	if c.SlogLogger != nil {
		c.Logger, c.SlogLogger = newSlogLogger(c.SlogLogger.Handler()), nil
		return c, nil
	}
	var err error
	c.Logger, err = setup.NewLogger(setup.LogConfig{Style: "json", Level: "info", Project: c.PubSub.ProjectID}, os.Stderr)
	return c, err
}

func (c Config) withDefaults() (Config, error) {
	c, err := c.withLogger()
	if err != nil {
		return c, err
	}
	if c.Secret == nil {
		c.Secret = environmentSecret
	}
	c.Name = cmp.Or(c.Name, "eventsv2")
	c.MaxConns = cmp.Or(c.MaxConns, 10)
	c.withNotifier()
	if !c.MultiTenant {
		c.Queue.Canvas = cmp.Or(c.Queue.Canvas, DefaultCanvas)
	}
	if c.Codec != nil {
		c.Queue.EmitMiddleware = append(slices.Clip(c.Queue.EmitMiddleware), c.Codec.Emit)
		c.Worker.OpenValue, c.Worker.SealResult = c.Codec.Open, c.Codec.SealResult
	}
	c.observe()
	c.Queue.Module = cmp.Or(c.Queue.Module, DefaultModule)
	c.Queue.Modifier = cmp.Or(c.Queue.Modifier, DefaultModifier)
	c.Worker.LockTimeout = c.LockTimeout
	for _, logger := range []**zap.Logger{&c.Queue.Logger, &c.Worker.Logger, &c.Relay.Logger, &c.Cron.Logger, &c.Pruner.Logger} {
		*logger = cmp.Or(*logger, c.Logger)
	}
	return c, nil
}

// Validate names every field that makes no sense.
func (c Config) Validate() error {
	var problems []error
	refuse := func(wrong bool, problem string) {
		if wrong {
			problems = append(problems, errors.New(problem))
		}
	}
	refuse(c.DatabaseURL == "" && c.Pool == nil, "DatabaseURL is empty: give the URL of a Postgres, or a Pool")
	refuse(c.DatabaseURL != "" && c.Pool != nil, "DatabaseURL and Pool are both set: set one of them")
	// Without it the program would connect to whatever the URL has as its host.
	refuse(c.cloudSQL != "" && c.Access.Dial == nil, "CLOUDSQL_INSTANCE is set, and Access.Dial is not: a program of your own gives it the Dial of a cloudsqlconn.Dialer")
	refuse(c.Pool != nil && (c.Access.Dial != nil || c.Access.PasswordFile != ""), "Pool and Access are both set: Access is for the pool that is made for DatabaseURL")
	refuse(c.Logger != nil && c.SlogLogger != nil, "Logger and SlogLogger are both set: set one of them")
	refuse(c.MaxConns < 0, fmt.Sprintf("MaxConns is %d: it must be positive", c.MaxConns))
	refuse(c.MultiTenant && c.Queue.Canvas != (eventqueue.CanvasID{}), "MultiTenant and Queue.Canvas are both set: with MultiTenant every event names its canvas")
	refuse(c.Worker.LockTimeout != 0, "Worker.LockTimeout is set: set LockTimeout, which is that of all parts")
	if err := c.Schema.Validate(); err != nil {
		problems = append(problems, fmt.Errorf("Schema: %w", err))
	}
	filled, err := c.withDefaults()
	_, known := kinds[filled.Notifier]
	refuse(!known, fmt.Sprintf("Notifier is %q: it must be %s", c.Notifier, setup.NotifierNames(slices.Collect(maps.Keys(kinds)))))
	return errors.Join(append(problems, err, filled.validateParts())...)
}

// validateParts asks the Configs of the parts, with their defaults.
func (c Config) validateParts() error {
	problems := []error{c.validateNotifier()}
	for _, part := range []struct {
		name string
		err  error
	}{{"Queue", c.Queue.Validate()}, {"Typed.Dispatch", c.Typed.Dispatch.Validate()}, {"Worker", c.Worker.Validate()},
		{"Relay", c.Relay.Validate()}, {"Cron", c.Cron.Validate()}, {"Pruner", c.Pruner.Validate()}} {
		if part.err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", part.name, part.err))
		}
	}
	return errors.Join(problems...)
}

// emitsOnly reports whether Run would run no part.
func (c Config) emitsOnly() bool { return c.NoWorker && c.NoRelay && c.NoCron && c.NoPruner }
