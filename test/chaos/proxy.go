package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
)

// proxies makes the proxies of a run. They live in this process.
type proxies struct{ server *toxiproxy.ApiServer }

func newProxies() *proxies {
	// The server's own web interface is never started; it only lends the proxies
	// a logger and a place for metrics.
	return &proxies{toxiproxy.NewServer(toxiproxy.NewMetricsContainer(prometheus.NewRegistry()), zerolog.Nop())}
}

// proxy stands between one program and one service.
type proxy struct {
	toxi *toxiproxy.Proxy

	// attacked is held by whoever attacks its connections.
	attacked sync.Mutex
}

// open starts a proxy to an address on a free port of the loopback interface.
func (p *proxies) open(name, upstream string) (*proxy, error) {
	toxi := toxiproxy.NewProxy(p.server, name, "127.0.0.1:0", upstream)
	if err := toxi.Start(); err != nil {
		return nil, fmt.Errorf("start the proxy %s: %w", name, err)
	}
	return &proxy{toxi: toxi}, nil
}

// address is where the program connects to.
func (p *proxy) address() string { return p.toxi.Listen }

// close cuts all connections and refuses new ones.
func (p *proxy) close() { p.toxi.Stop() }

// down cuts all connections and refuses new ones until ctx ends or the time has
// passed.
func (p *proxy) down(ctx context.Context, lasts time.Duration) error {
	p.toxi.Stop()
	sleep(ctx, lasts)
	if err := p.toxi.Start(); err != nil {
		return fmt.Errorf("start the proxy %s again: %w", p.toxi.Name, err)
	}
	return nil
}

// The directions of a toxic, from the program's point of view.
const (
	requests = "upstream"
	answers  = "downstream"
)

// latency delays answers.
func latency(d time.Duration) string {
	return fmt.Sprintf(`{"name": "fault", "type": "latency", "stream": "downstream", "attributes": {"latency": %d, "jitter": %d}}`,
		d.Milliseconds(), d.Milliseconds()/2)
}

// cutAfter closes each connection when so many bytes have passed.
func cutAfter(stream string, bytes int) string {
	return fmt.Sprintf(`{"name": "fault", "type": "limit_data", "stream": %q, "attributes": {"bytes": %d}}`, stream, bytes)
}

// mute lets nothing pass, without closing anything.
func mute(stream string) string {
	return fmt.Sprintf(`{"name": "fault", "type": "timeout", "stream": %q, "attributes": {"timeout": 0}}`, stream)
}

// toxicLimit bounds the removal of a toxic, which waits for its connections.
const toxicLimit = 20 * time.Second

// poison applies a toxic until ctx ends or the time has passed.
func (p *proxy) poison(ctx context.Context, toxic string, lasts time.Duration) error {
	added, err := p.toxi.Toxics.AddToxicJson(strings.NewReader(toxic))
	if err != nil {
		return fmt.Errorf("add a toxic to the proxy %s: %w", p.toxi.Name, err)
	}
	sleep(ctx, lasts)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), toxicLimit)
	defer cancel()
	if err := p.toxi.Toxics.RemoveToxic(ctx, added.Name); err != nil {
		return fmt.Errorf("remove the toxic from the proxy %s: %w", p.toxi.Name, err)
	}
	return nil
}

// sleep waits, less when ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
