package pgnotify

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/zap"

	"eventsv2/eventqueue/pgsession"
	"eventsv2/internal/backoff"
	"eventsv2/internal/wakeups"
)

const (
	// probeTimeout is how long a connection may take to receive its probe.
	probeTimeout = 5 * time.Second
	// pollEvery is about the time between two polls while the listener is not known
	// to work.
	pollEvery = time.Second
)

// Why a connection did not receive its probe. The first time, the server may be
// busy; a second time in a row, a transaction pooler is in between.
var (
	errProbeLate    = errors.New("a NOTIFY did not arrive in time")
	errNotDelivered = errors.New("no NOTIFY arrives: LISTEN needs a connection of its own, " +
		"so let DATABASE_URL name Postgres or a pooler of sessions, not one of transactions")
)

// listener wakes a pull for each NOTIFY. It has a connection of its own.
type listener struct {
	config      *pgxpool.Config
	schema      pgsession.Schema
	notify      func(ctx context.Context, text string) error // through the pool
	wake        func()
	probeWithin time.Duration
	log         *zap.Logger
	state       *wakeups.State
	failed      func(err error) // it does not

	probeFailed bool // the last connection did not receive its probe; owned by run
}

// run listens until ctx ends. While it cannot listen, it wakes a pull about once a
// second, which polls the table or fails.
func (l *listener) run(ctx context.Context) {
	wait := minFailureWait
	for {
		verified, err := l.listen(ctx)
		if ctx.Err() != nil {
			return
		}
		if verified {
			wait = minFailureWait
		}
		l.failed(err)
		l.log.Warn("no wake-ups for notifications: polling about once a second",
			zap.Duration("wait", wait), zap.Error(err))
		l.wakeFor(ctx, wait/2+mathrand.N(wait))
		wait = min(2*wait, maxFailureWait)
	}
}

// wakeFor wakes a pull now, and about once a second for the given time.
func (l *listener) wakeFor(ctx context.Context, wait time.Duration) {
	for wait > 0 && ctx.Err() == nil {
		l.wake()
		part := min(wait, pollEvery/2+mathrand.N(pollEvery))
		backoff.Sleep(ctx, part)
		wait -= part
	}
}

// wakeMeanwhile wakes a pull about once a second, the first time in about a second,
// until stop is called or ctx ends.
func (l *listener) wakeMeanwhile(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var waking sync.WaitGroup
	waking.Go(func() {
		for {
			backoff.Sleep(ctx, pollEvery/2+mathrand.N(pollEvery))
			if ctx.Err() != nil {
				return
			}
			l.wake()
		}
	})
	return func() {
		cancel()
		waking.Wait()
	}
}

// listen wakes a pull as soon as it listens, for rows that were committed before,
// and for each NOTIFY after that. Until its probe has arrived it also wakes a pull
// about once a second, since each step before that may hang. It returns when ctx
// ends or the connection fails, and reports whether the probe had arrived.
func (l *listener) listen(ctx context.Context) (verified bool, err error) {
	stopRinging := l.wakeMeanwhile(ctx)
	defer stopRinging()
	listening, err := pgsession.Listen(ctx, l.config, pgsession.ListenTo{Schema: l.schema, Channel: channel, Idle: pgsession.IdleTest, State: l.state, Poll: l.wake, Logger: l.log}, named)
	if err != nil {
		return false, err
	}
	defer listening.Close(ctx)
	l.wake()
	if err := listening.Prove(ctx); err != nil {
		return false, err
	}
	if !listening.Full() { // or else the probe might be left out, as other wake-ups
		if err := l.probe(ctx, listening); err != nil {
			return false, err
		}
		l.state.Ends()
	}
	stopRinging()
	for {
		text, err := listening.Wait(ctx)
		if err != nil {
			return true, err
		}
		l.receive(text)
	}
}

// receive wakes a pull, unless the text is the probe of another listener.
func (l *listener) receive(text string) {
	if text == "" {
		l.wake()
	}
}

// named gives a connection that listens a name of its own.
func named(c *pgx.ConnConfig) {
	c.RuntimeParams["application_name"] = cmp.Or(c.RuntimeParams["application_name"], "eventsv2") + "-listen"
}

// probe sends a random text through the pool and waits until it arrives. A
// transaction pooler accepts LISTEN and delivers nothing, and a listener behind it
// would wait for ever. The time begins when the text was sent: a busy pool does not
// mean that the connection fails.
func (l *listener) probe(ctx context.Context, listening *pgsession.Listening) error {
	text := rand.Text()
	if err := l.notify(ctx, text); err != nil {
		return fmt.Errorf("send a probe to the connection that listens: %w", err)
	}
	within, cancel := context.WithTimeout(ctx, l.probeWithin)
	defer cancel()
	for {
		payload, err := listening.Wait(within)
		switch {
		case err != nil && within.Err() != nil && ctx.Err() == nil:
			return l.probeFailure()
		case err != nil:
			return fmt.Errorf("wait for the first wake-up: %w", err)
		case payload == text:
			l.probeFailed = false
			return nil
		}
		l.receive(payload)
	}
}

// probeFailure returns errProbeLate, and errNotDelivered from the second failure in
// a row on.
func (l *listener) probeFailure() error {
	if l.probeFailed {
		return errNotDelivered
	}
	l.probeFailed = true
	return errProbeLate
}
