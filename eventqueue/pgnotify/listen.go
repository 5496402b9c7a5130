package pgnotify

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/zap"
)

const (
	// hearTimeout is how long a connection may take to hear what it was sent.
	hearTimeout = 5 * time.Second
	// pollEvery is about the time between two looks while nothing is heard.
	pollEvery = time.Second
	// closeConnTimeout bounds the farewell of a connection.
	closeConnTimeout = 2 * time.Second
)

// Why pulls look by themselves when a connection does not hear what it is sent.
// Once, that may be a busy server; again at once, it is a pooler of transactions.
var (
	errUnheard = errors.New("what was notified did not come in time")
	errDeaf    = errors.New("what is notified is not heard: LISTEN needs a connection of its own, " +
		"so let DATABASE_URL name Postgres or a pooler of sessions, not one of transactions")
)

// listener rings the bell for each NOTIFY, on a connection of its own.
type listener struct {
	config     *pgx.ConnConfig
	notify     func(ctx context.Context, text string) error // through the pool
	ring       func()
	hearWithin time.Duration
	log        *zap.Logger

	unheard bool // the last connection did not hear itself; owned by run
}

// run listens until ctx ends. While it cannot, it rings about once a second, so
// that pulls look or fail.
func (l *listener) run(ctx context.Context) {
	wait := minFailureWait
	for {
		heard, err := l.listen(ctx)
		if ctx.Err() != nil {
			return
		}
		if heard {
			wait = minFailureWait
		}
		l.log.Warn("nothing wakes this process for notifications: looking about once a second",
			zap.Duration("wait", wait), zap.Error(err))
		l.ringFor(ctx, wait/2+mathrand.N(wait))
		wait = min(2*wait, maxFailureWait)
	}
}

// ringFor rings now and about once a second for the given time.
func (l *listener) ringFor(ctx context.Context, wait time.Duration) {
	for wait > 0 && ctx.Err() == nil {
		l.ring()
		part := min(wait, pollEvery/2+mathrand.N(pollEvery))
		pause(ctx, part)
		wait -= part
	}
}

// ringBeside rings about once a second, the first time in about a second, until
// stop is called or ctx ends.
func (l *listener) ringBeside(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var ringing sync.WaitGroup
	ringing.Go(func() {
		for {
			pause(ctx, pollEvery/2+mathrand.N(pollEvery))
			if ctx.Err() != nil {
				return
			}
			l.ring()
		}
	})
	return func() {
		cancel()
		ringing.Wait()
	}
}

// listen rings once it listens, for what was committed before, and for each
// NOTIFY after that; and about once a second until it has heard itself, since
// each step before that may hang. It returns when ctx ends or the connection
// does, and tells whether it had heard itself.
func (l *listener) listen(ctx context.Context) (heard bool, err error) {
	stopRinging := l.ringBeside(ctx)
	defer stopRinging()
	conn, err := l.connect(ctx)
	if err != nil {
		return false, fmt.Errorf("connect to listen: %w", err)
	}
	defer func() {
		closeCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeConnTimeout)
		defer cancel()
		_ = conn.Close(closeCtx) // nothing is in flight on it
	}()
	if _, err := conn.Exec(ctx, "LISTEN "+channel, pgx.QueryExecModeSimpleProtocol); err != nil {
		return false, fmt.Errorf("listen: %w", err)
	}
	l.ring()
	if err := l.hearItself(ctx, conn); err != nil {
		return false, err
	}
	stopRinging()
	for {
		notification, err := conn.WaitForNotification(ctx)
		if err != nil {
			return true, fmt.Errorf("wait for a wake-up: %w", err)
		}
		l.hear(notification.Payload)
	}
}

// hear rings, unless it is another's word to itself.
func (l *listener) hear(text string) {
	if text == "" {
		l.ring()
	}
}

func (l *listener) connect(ctx context.Context) (*pgx.Conn, error) {
	config := l.config.Copy()
	name := config.RuntimeParams["application_name"]
	if name == "" {
		name = "eventsv2"
	}
	config.RuntimeParams["application_name"] = name + "-listen"
	return pgx.ConnectConfig(ctx, config)
}

// hearItself sends a word through the pool and waits until it comes. A pooler of
// transactions takes LISTEN and passes nothing on, and whoever trusted it would
// wait for ever. The time begins when the word was sent: a pool that is busy says
// nothing about the connection.
func (l *listener) hearItself(ctx context.Context, conn *pgx.Conn) error {
	word := rand.Text()
	if err := l.notify(ctx, word); err != nil {
		return fmt.Errorf("send a word to the connection that listens: %w", err)
	}
	within, cancel := context.WithTimeout(ctx, l.hearWithin)
	defer cancel()
	for {
		notification, err := conn.WaitForNotification(within)
		switch {
		case err != nil && within.Err() != nil && ctx.Err() == nil:
			return l.notHeard()
		case err != nil:
			return fmt.Errorf("wait for the first wake-up: %w", err)
		case notification.Payload == word:
			l.unheard = false
			return nil
		}
		l.hear(notification.Payload)
	}
}

// notHeard is errDeaf from the second time in a row.
func (l *listener) notHeard() error {
	if l.unheard {
		return errDeaf
	}
	l.unheard = true
	return errUnheard
}
