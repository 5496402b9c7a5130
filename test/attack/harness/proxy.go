package harness

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"sync"
	"time"

	"eventsv2/internal/backoff"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
)

// Proxies makes the proxies of a run. They live in this process.
type Proxies struct{ server *toxiproxy.ApiServer }

// NewProxies starts nothing yet.
func NewProxies() *Proxies {
	// The server's own web interface is never started; it only lends the proxies
	// a logger and a place for metrics.
	return &Proxies{toxiproxy.NewServer(toxiproxy.NewMetricsContainer(prometheus.NewRegistry()), zerolog.Nop())}
}

// Proxy stands between one program and one service. It is safe for concurrent
// use; who attacks its connections holds Attacked.
type Proxy struct {
	toxi *toxiproxy.Proxy

	// Attacked is held by whoever attacks its connections.
	Attacked sync.Mutex
}

// Open starts a proxy to an address on a free port of the loopback interface. The port is below those that systems
// give to connections, so that no connection takes it while the proxy is closed.
func (p *Proxies) Open(name, upstream string) (*Proxy, error) {
	const firstPort, ports, tries = 20_000, 10_000, 100
	var err error
	for range tries {
		toxi := toxiproxy.NewProxy(p.server, name, fmt.Sprintf("127.0.0.1:%d", firstPort+rand.N(ports)), upstream)
		if err = toxi.Start(); err == nil {
			return &Proxy{toxi: toxi}, nil
		}
	}
	return nil, fmt.Errorf("start the proxy %s: %w", name, err)
}

// Address is where the program connects to.
func (p *Proxy) Address() string { return p.toxi.Listen }

// Close cuts all connections and refuses new ones.
func (p *Proxy) Close() { p.toxi.Stop() }

// Reopen accepts connections again, on the same address, after Close.
func (p *Proxy) Reopen() error {
	if err := p.toxi.Start(); err != nil {
		return fmt.Errorf("start the proxy %s again: %w", p.toxi.Name, err)
	}
	return nil
}

// Down cuts all connections and refuses new ones until ctx ends or the time has
// passed.
func (p *Proxy) Down(ctx context.Context, lasts time.Duration) error {
	p.Close()
	backoff.Sleep(ctx, lasts)
	return p.Reopen()
}

// The directions of a toxic, from the program's point of view.
const (
	Requests = "upstream"
	Answers  = "downstream"
)

// Latency delays answers.
func Latency(d time.Duration) string {
	return fmt.Sprintf(`{"name": "fault", "type": "latency", "stream": "downstream", "attributes": {"latency": %d, "jitter": %d}}`,
		d.Milliseconds(), d.Milliseconds()/2)
}

// CutAfter closes each connection when so many bytes have passed.
func CutAfter(stream string, bytes int) string {
	return fmt.Sprintf(`{"name": "fault", "type": "limit_data", "stream": %q, "attributes": {"bytes": %d}}`, stream, bytes)
}

// MuteNamed is Mute under another name: two toxics of a proxy must not share one.
func MuteNamed(name, stream string) string {
	return fmt.Sprintf(`{"name": %q, "type": "timeout", "stream": %q, "attributes": {"timeout": 0}}`, name, stream)
}

// Mute lets nothing pass, without closing anything.
func Mute(stream string) string { return MuteNamed("fault", stream) }

// toxicLimit bounds the removal of a toxic, which waits for its connections.
const toxicLimit = 20 * time.Second

// Poison applies a toxic until ctx ends or the time has passed.
func (p *Proxy) Poison(ctx context.Context, toxic string, lasts time.Duration) error {
	cure, err := p.Infect(toxic)
	if err != nil {
		return err
	}
	backoff.Sleep(ctx, lasts)
	return cure(ctx)
}

// Infect applies a toxic until cure is called, whose context may have ended. The
// connections that a silence hit are closed by its cure.
func (p *Proxy) Infect(toxic string) (cure func(context.Context) error, err error) {
	added, err := p.toxi.Toxics.AddToxicJson(strings.NewReader(toxic))
	if err != nil {
		return nil, fmt.Errorf("add a toxic to the proxy %s: %w", p.toxi.Name, err)
	}
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), toxicLimit)
		defer cancel()
		if err := p.toxi.Toxics.RemoveToxic(ctx, added.Name); err != nil {
			return fmt.Errorf("remove the toxic from the proxy %s: %w", p.toxi.Name, err)
		}
		return nil
	}, nil
}

// Through is a database URL that goes through the proxy and shows a name.
func (p *Proxy) Through(databaseURL, name string) (string, error) {
	u, err := url.Parse(databaseURL)
	if err != nil {
		return "", fmt.Errorf("the database URL of our own Postgres: %w", err)
	}
	u.Host = p.Address()
	query := u.Query()
	query.Set("application_name", name)
	u.RawQuery = query.Encode()
	return u.String(), nil
}
