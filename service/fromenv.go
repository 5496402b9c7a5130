package service

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"

	"github.com/caarlos0/env/v11"

	"eventsv2/cronchecker"
	"eventsv2/eventqueue"
	"eventsv2/eventqueue/maintenance"
	"eventsv2/eventqueue/pgsession"
	"eventsv2/eventqueue/worker"
	"eventsv2/internal/setup"
	"eventsv2/valuecodec"
)

// FromEnv reads a Config from the environment of the process, where docs/configuration.md
// lists the variables: what the programs in cmd/ are configured by, but for the HTTP API and the
// dashboard, which a Service does not have. Its Address is PORT
// (8080 if that is not set), and its Logger writes to the standard error what LOG_LEVEL,
// LOG_FORMAT and LOG_EVENTS say; change any of it before Open. The error names every variable that
// makes no sense.
func FromEnv() (Config, error) { return FromEnvironment(env.ToMap(os.Environ())) }

// FromEnvironment is FromEnv for an environment that is given as a map.
func FromEnvironment(environment map[string]string) (Config, error) {
	c, err := setup.Load(environment)
	if err != nil {
		return Config{}, err
	}
	logger, err := setup.NewLogger(c.Log(), os.Stderr)
	if err != nil {
		return Config{}, err
	}
	address, err := setup.ListenAddress(c.Port)
	if err != nil {
		return Config{}, err
	}
	codec, err := codecOf(c.ValueKeyset)
	if err != nil {
		return Config{}, err
	}
	var open func(*eventqueue.Event) (json.RawMessage, error)
	if codec != nil && !c.EncryptValues {
		open, codec = codec.Open, nil
	}
	return Config{
		Codec:       codec,
		DatabaseURL: c.DatabaseURL,
		Access:      pgsession.Access{PasswordFile: c.DatabasePasswordFile},
		cloudSQL:    c.CloudSQLInstance,
		Schema:      c.Schema,
		MaxConns:    c.DatabaseMaxConns,
		Notifier:    NotifierKind(c.Notifier),
		PubSub:      c.PubSub(),

		notifierVariables: c.NotifierVariables,

		Queue:       eventqueue.QueueConfig{Limits: c.Limits(), PublishTimeout: c.PublishTimeout},
		LockTimeout: c.LockTimeout,
		Worker: worker.Config{
			Concurrency:   c.Concurrency,
			ClaimBatch:    c.ClaimBatch,
			Heartbeat:     c.Heartbeat,
			GracePeriod:   cmp.Or(c.GracePeriod, -1), // 0 is none here
			MaxHung:       maxHung(c.MaxHung),
			HungLimit:     cmp.Or(c.HungLimit, -1), // 0 is never here
			MaxEvents:     c.MaxEvents,
			TTL:           c.TTL,
			RetainHistory: c.RetainHistory,
			LogEvents:     c.LogsAllEvents(),
			OpenValue:     open,
		},
		Relay: maintenance.RelayConfig{Interval: c.RelayInterval, LostAfter: c.RelayLostAfter, PerSecond: c.RelayPerSecond},
		Pruner: maintenance.PrunerConfig{CompletedFor: c.HistoryCompletedFor, FailedFor: c.HistoryFailedFor,
			Interval: c.HistoryInterval, PerSecond: c.HistoryPerSecond},
		Cron:              cronchecker.Config{RecordsFor: c.CronRecordsFor},
		HandlersFile:      c.HandlersFile,
		TargetLinkLocal:   c.LinkLocal,
		TargetIdleTimeout: c.TargetIdle,
		Secret:            func(variable string) (string, error) { return secretOf(environment[variable], variable) },
		AuditLogFor:       c.AuditLogFor,
		Address:           address,
		Logger:            logger,
	}, nil
}

// codecOf is the codec of VALUE_KEYSET_FILE; nil for "". The error names the variable.
func codecOf(file string) (*valuecodec.Codec, error) {
	if file == "" {
		return nil, nil
	}
	codec, err := valuecodec.Load(file)
	if err != nil {
		return nil, fmt.Errorf("configuration: VALUE_KEYSET_FILE: %w", err)
	}
	return codec, nil
}

// environmentSecret reads a secret from the environment of the process.
func environmentSecret(variable string) (string, error) {
	return secretOf(os.Getenv(variable), variable)
}

func secretOf(value, variable string) (string, error) {
	if value == "" {
		return "", fmt.Errorf("the variable %s is not set or empty: it has to hold a secret", variable)
	}
	return value, nil
}

// maxHung is WORKER_MAX_HUNG as a worker's Config has it, where 0 is the default.
func maxHung(set *int) int {
	switch {
	case set == nil:
		return 0
	case *set == 0:
		return -1
	default:
		return *set
	}
}
