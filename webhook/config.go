package webhook

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"eventsv2/eventqueue"
	"eventsv2/internal/intake"
)

const (
	// defaultBufferedBytes is the memory that all requests may take together, unless
	// single bodies may be so large that only a few would have room.
	defaultBufferedBytes = 16 << 20
	leastBodies          = 8
)

// Config configures a Handler.
type Config struct {
	// Sources has at least one source; no two have the same name and canvas.
	Sources []Source

	// MaxBodyBytes is the largest body. Default (0): 256 KiB, the largest value
	// that a queue takes by default.
	MaxBodyBytes int64

	// MaxBufferedBytes is about the memory that all current requests may take together.
	// If it is used up when another request arrives, the body whose reading began first
	// is cut off with 503; if all bodies have been read, the new request is refused.
	// Default (0): 16 MiB, or eight times MaxBodyBytes if that is more. It must have room
	// for one body.
	MaxBufferedBytes int64

	// ReadTimeout is how long a body may take to arrive. Default (0): 10 s. The
	// http.Server bounds the time for the header (ReadHeaderTimeout).
	ReadTimeout time.Duration

	// RetainDelivery is how long after the end of its event a repeat of a delivery is
	// recognised. Default (0): 72 h, since most senders do not try again for longer. At
	// most eventqueue.MaxUniqueFor.
	RetainDelivery time.Duration

	// Check is called before the events of a genuine request are written, if its source has RefuseOverLimit: of other
	// sources all are accepted. A wait above 0 refuses them with 429 and Retry-After, an error with 503. It must be set
	// if a source has RefuseOverLimit, and only then. Default (nil): all are accepted.
	Check func(ctx context.Context, canvas eventqueue.CanvasID) (wait time.Duration, err error)

	// Observe is called for each request to a source, after its answer is decided. refused says why it was refused,
	// without secrets; nil: it was not. Observe must not block, and is called concurrently. Default (nil): nothing is.
	Observe func(source Source, outcome Outcome, refused error)

	// Clock is the clock that time stamps are compared with. Default (nil): time.Now.
	Clock func() time.Time

	// Logger gets a warning for each refusal, an info line for each other request, and debug lines. Of the refusals of
	// one source with one status it gets 20 within 10 s, and how many it did not get.
	// Default (nil): none.
	Logger *zap.Logger
}

func (c Config) withDefaults() Config {
	if c.MaxBodyBytes == 0 {
		c.MaxBodyBytes = 256 << 10
	}
	if c.MaxBufferedBytes == 0 {
		c.MaxBufferedBytes = max(defaultBufferedBytes, leastBodies*c.MaxBodyBytes)
	}
	if c.ReadTimeout == 0 {
		c.ReadTimeout = 10 * time.Second
	}
	if c.RetainDelivery == 0 {
		c.RetainDelivery = 72 * time.Hour
	}
	if c.Clock == nil {
		c.Clock = time.Now
	}
	if c.Logger == nil {
		c.Logger = zap.NewNop()
	}
	return c
}

// Validate returns an error that names the first field with an invalid value.
func (c Config) Validate() error {
	switch {
	case c.MaxBodyBytes < 0:
		return fmt.Errorf("MaxBodyBytes is %d: it must not be negative", c.MaxBodyBytes)
	case c.MaxBufferedBytes < 0:
		return fmt.Errorf("MaxBufferedBytes is %d: it must not be negative", c.MaxBufferedBytes)
	case c.MaxBufferedBytes > 0 && c.MaxBufferedBytes < c.withDefaults().MaxBodyBytes+2*intake.RequestBytes:
		return fmt.Errorf("MaxBufferedBytes is %d: it must be at least %d, to have room for one body of MaxBodyBytes",
			c.MaxBufferedBytes, c.withDefaults().MaxBodyBytes+2*intake.RequestBytes)
	case c.ReadTimeout < 0:
		return fmt.Errorf("ReadTimeout is %s: it must not be negative", c.ReadTimeout)
	case c.RetainDelivery < 0 || c.RetainDelivery > eventqueue.MaxUniqueFor:
		return fmt.Errorf("RetainDelivery is %s: it must be from 0 to %s", c.RetainDelivery, eventqueue.MaxUniqueFor)
	case len(c.Sources) == 0:
		return errors.New("Sources is empty: name at least one")
	}
	seen := map[place]bool{}
	for _, s := range c.Sources {
		if err := s.validate(); err != nil {
			return err
		}
		if seen[place{s.Name, s.Canvas}] {
			return fmt.Errorf("source %q is there twice for the same canvas", s.Name)
		}
		seen[place{s.Name, s.Canvas}] = true
	}
	return nil
}
