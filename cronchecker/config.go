package cronchecker

import (
	"fmt"
	"math/rand/v2"
	"time"

	"go.uber.org/zap"

	"eventsv2/eventqueue"
)

// Config configures a Checker. The zero value is ready to use.
type Config struct {
	// Interval is the time between passes. A pass begins just after each multiple of
	// it by the database's clock: with one minute, after each full minute. Since slots
	// are full minutes, a shorter interval is of use only after a failed pass.
	// Default (0): 1 minute. At least 1 second.
	Interval time.Duration

	// PassTimeout bounds one pass. Default (0): 1 minute.
	PassTimeout time.Duration

	// Backoff is the wait after the nth failed pass in a row. Default (nil):
	// eventqueue.Exponential(1 s, 30 s), which has jitter.
	Backoff eventqueue.Backoff

	// RecordsFor is how long records of slots are kept. Older ones are deleted when a later slot of their
	// definition is recorded; the newest of each stays. Default (0): for ever.
	RecordsFor time.Duration

	// Jitter returns a random duration below its argument, which is positive.
	// Default (nil): rand.N. A simulation makes it repeatable.
	Jitter func(time.Duration) time.Duration

	// Logger gets an error per definition that cannot be read, a warning per
	// failed pass, and debug lines. Default (nil): none.
	Logger *zap.Logger
}

func (c Config) withDefaults() Config {
	if c.Interval == 0 {
		c.Interval = time.Minute
	}
	if c.PassTimeout == 0 {
		c.PassTimeout = time.Minute
	}
	if c.Jitter == nil {
		c.Jitter = rand.N[time.Duration]
	}
	if c.Backoff == nil {
		c.Backoff = eventqueue.Exponential(time.Second, 30*time.Second)
	}
	if c.Logger == nil {
		c.Logger = zap.NewNop()
	}
	return c
}

// Validate returns an error that names the first field with an invalid value.
func (c Config) Validate() error {
	if c.Interval != 0 && c.Interval < time.Second {
		return fmt.Errorf("Interval is %s: it must be at least 1s", c.Interval)
	}
	if c.PassTimeout < 0 {
		return fmt.Errorf("PassTimeout is %s: it must not be negative", c.PassTimeout)
	}
	if c.RecordsFor < 0 {
		return fmt.Errorf("RecordsFor is %s: it must not be negative", c.RecordsFor)
	}
	return nil
}

// lateness is how late a slot may be under MissedNone.
func (c Config) lateness() time.Duration { return max(2*c.Interval, 2*time.Minute) }
