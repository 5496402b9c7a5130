package dashboard

import (
	"errors"
	"net/http"
	"strings"
	"time"

	"go.uber.org/zap"

	"eventsv2/access"
	"eventsv2/eventqueue"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/pgstore"
)

// defaultTimeout is the Timeout of a Config without one.
const defaultTimeout = 5 * time.Second

// defaultChanges is the ChangesPerSecond of a Config without one: more than a person makes.
const defaultChanges = 10

// Config configures a dashboard.
type Config struct {
	// Store reads and writes the database.
	Store *pgstore.Store
	// Queue publishes the notifications of what may run after a change; nil: the dashboard changes nothing.
	Queue *eventqueue.Queue
	// Bulk has the changes of many events. The dashboard only starts them: the program has to Run it. nil: there are
	// none.
	Bulk *operate.Operations
	// Prefix is the path below which the dashboard is mounted, as in /admin/events; empty: the root.
	Prefix string
	// Identify returns who makes a request, and what they may do: for applications with a login of their own.
	// The error is access.ErrNoCredentials or access.ErrRefused for a user who is not admitted. It is called
	// concurrently. Either Identify or Access has to be set.
	Identify func(r *http.Request) (access.Identity, error)
	// Access lets in who has a token, or whom an issuer vouches for. The dashboard has a page for logging in then.
	Access *access.Authenticator
	// SessionKey is shared by programs that accept each other's sessions; nil: sessions end with the program.
	// It needs access.MinSessionKeyBytes random bytes.
	SessionKey []byte
	// Timeout bounds the statements of a page; 0 means 5 seconds.
	Timeout time.Duration
	// Refresh is how often pages that are looked at are renewed if something has changed, with one statement for all of
	// them; 0 means 12 seconds.
	Refresh time.Duration
	// ChangesPerSecond is how many changes a user may make per second, and twice as many at once; 0 means 10.
	ChangesPerSecond float64
	// Log gets the errors of requests; nil: nothing is logged.
	Log *zap.Logger
}

func (c *Config) validate() error {
	switch {
	case c.Store == nil:
		return errors.New("Store is missing")
	case c.Timeout < 0:
		return errors.New("Timeout is negative")
	case c.Refresh < 0:
		return errors.New("Refresh is negative")
	case c.ChangesPerSecond < 0:
		return errors.New("ChangesPerSecond is negative")
	case c.Prefix != "" && !strings.HasPrefix(c.Prefix, "/"):
		return errors.New("Prefix must begin with a slash")
	case (c.Identify == nil) == (c.Access == nil):
		return errors.New("set either Identify, for a login of your own, or Access, for tokens and issuers")
	default:
		return nil
	}
}
