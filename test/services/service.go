package services

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
)

// ErrNotFound is in the error of Postgres and Emulator when the service is not
// on this machine and cannot be brought there either.
var ErrNotFound = errors.New("not found")

// startLimit is how long a server may take until it answers: seconds as a rule,
// much longer for Java on a busy machine.
const startLimit = 2 * time.Minute

// answerLimit is how long a running server may take for one answer.
const answerLimit = 15 * time.Second

// Service is a running Postgres or Pub/Sub emulator.
type Service struct {
	// URL is the address for clients: the value for DATABASE_URL, or the
	// host:port for PUBSUB_EMULATOR_HOST.
	URL string

	// Origin says in a few words where the service comes from.
	Origin string

	// PID is the server's process when this package started it from binaries,
	// and 0 otherwise. Restart changes it.
	PID int

	stop    func(ctx context.Context) error
	restart func(ctx context.Context) (pid int, err error)

	stopOnce sync.Once
	stopErr  error
}

// Stop ends the service and removes everything of it, if this package started
// it; one that the environment named is left alone. It blocks until that is done
// or ctx ends. Calling it again does nothing and returns the first result. Safe
// for concurrent use.
func (s *Service) Stop(ctx context.Context) error {
	s.stopOnce.Do(func() {
		if s.stop == nil {
			return
		}
		if err := s.stop(ctx); err != nil {
			s.stopErr = fmt.Errorf("stop the service from %s: %w", s.Origin, err)
		}
	})
	return s.stopErr
}

// Restart ends the server's process, if it still runs, and starts it again with
// the same data and URL, for tests that kill it. It blocks until the server
// answers or ctx ends, and is refused for a service that this package did not
// start from binaries. Not for concurrent use with any other method.
func (s *Service) Restart(ctx context.Context) error {
	if s.restart == nil {
		return fmt.Errorf("restart the service from %s: only one that was started from binaries can be restarted; ask for it with the option Private", s.Origin)
	}
	pid, err := s.restart(ctx)
	if err != nil {
		return fmt.Errorf("restart the service from %s: %w", s.Origin, err)
	}
	s.PID = pid
	return nil
}

// settings is set by the options, and replaced by tests of this package.
type settings struct {
	durable  bool
	private  bool
	inMemory bool
	server   [][2]string

	getenv      func(string) string
	postgresBin func() (dir string, found bool)
	emulatorBin func(context.Context) (path, missing string)
	docker      func(context.Context) error
}

// Option changes what Postgres and Emulator do.
type Option func(*settings)

// Durable leaves fsync and its like switched on, so that Postgres survives what
// it survives in production. Without it a test's Postgres is fast and may lose
// everything when the machine (not the process) fails.
func Durable() Option { return func(s *settings) { s.durable = true } }

// InMemory has a Postgres that this package starts from binaries keep its files in memory,
// where there is plenty of it and TMPDIR names no other place: a test's database is copied
// in a tenth of the processor time. It is for what keeps little, and means nothing with
// Durable.
func InMemory() Option { return func(s *settings) { s.inMemory = true } }

// Setting has a Postgres that this package starts run with one more setting of
// its configuration file. It means nothing to the emulator.
func Setting(name, value string) Option {
	return func(s *settings) { s.server = append(s.server, [2]string{name, value}) }
}

// Private asks for a service of one's own, also when the environment names one,
// for tests that kill it or count everything that is sent to it.
func Private() Option { return func(s *settings) { s.private = true } }

func newSettings(options []Option) *settings {
	s := &settings{
		getenv:      os.Getenv,
		postgresBin: findPostgres,
		emulatorBin: findEmulator,
		docker:      dockerAnswers,
	}
	for _, option := range options {
		option(s)
	}
	return s
}

// named returns the service that the environment names, if any.
func (s *settings) named(variable string) (string, bool) {
	if s.private {
		return "", false
	}
	value := s.getenv(variable)
	return value, value != ""
}
