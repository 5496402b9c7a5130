package pgsession

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/zap"

	"eventsv2/internal/wakeups"
)

// aliveChannel is the channel on which relays show every beatEvery that they live, and with
// that, to whoever listens, that its connection still hears.
const aliveChannel = "events_v2_alive"

const (
	// beatEvery is about the time between two signs of life of a relay. Several relays take turns: each waits a random part of
	// turnWithin longer after the last one that it has heard, since all of them have heard it at once.
	beatEvery  = 13 * time.Second
	turnWithin = time.Second
	// silentAfter is how long after the last sign of life of a relay a connection is tested.
	silentAfter = 15 * time.Second
	// answerWithin bounds a test. Work goes on 20 s after a connection has gone silent; a third of that would cost an idle
	// relay three times as many statements.
	answerWithin = 5 * time.Second
	// listenWithin is how long a new connection may take to listen.
	listenWithin = 10 * time.Second
	// closeListeningTakes bounds the closing of a connection.
	closeListeningTakes = 2 * time.Second
)

// IdleTest is the Idle of a connection that is to be tested also where no relay runs.
const IdleTest = time.Minute

var (
	// ErrSilent is returned by Hear when the connection has to be tested.
	ErrSilent = errors.New("the connection that listens has heard nothing for long")
	// errDeaf is why a connection that answers is of no use.
	errDeaf = errors.New("the session at the other end of the connection no longer listens: a pooler has replaced it or reset its state")
)

// SilentError means that the server no longer answers on a connection that is still open.
type SilentError struct {
	For time.Duration // since something was heard
	Err error
}

func (e *SilentError) Error() string {
	return fmt.Sprintf("the connection that listens is silent: nothing was heard on it for %s, and Postgres does not answer on it, though nobody has closed it; "+
		"a proxy or pooler on the way may keep it open: %v", e.For.Round(time.Second), e.Err)
}

// Advice says what is wrong, without the names of resources.
func (*SilentError) Advice() string {
	return "the connection that listens went silent without being closed, as behind a proxy or pooler; another one is opened"
}

// Unwrap returns what the test of the connection has returned.
func (e *SilentError) Unwrap() error { return e.Err }

// ResetAfter has a pool connect anew if a connection to the same server was found silent: others may be
// so, too, and each would cost its next user all the time that it has.
func ResetAfter(pool *pgxpool.Pool, err error) {
	if silence := new(SilentError); errors.As(err, &silence) {
		pool.Reset()
	}
}

// ListenTo says to what a connection listens, and when it has to prove that it still hears.
type ListenTo struct {
	Schema  Schema
	Channel string

	// Beside is another channel, which is listened to as well. Default (""): none.
	Beside string

	// Idle is after what time the connection is tested if nothing was heard on it, and no relay before.
	// Default (0): never; a relay that has been heard and is no longer is a reason in any case.
	Idle time.Duration

	// Beats has the tests be signs of life for others, as those of a relay are.
	Beats bool

	// State gets what keeps wake-ups from arriving though the connection is well: a [FullQueueError].
	State *wakeups.State

	// Poll is called about once a second while wake-ups are left out because of that. Default (nil): nothing is.
	Poll func()

	// Logger gets an entry when that begins, and when it ends. Default (nil): none.
	Logger *zap.Logger
}

// pollEvery is the time between two calls of Poll.
const pollEvery = time.Second

// Listening is a connection that listens, and that finds out when it no longer hears: the end of a
// session may never reach this side, if something in between keeps its half of the connection
// open. What proves that it hears is what others send, mostly a relay: while one is heard, a connection
// that waits sends nothing. It is for one goroutine at a time.
type Listening struct {
	to    ListenTo
	conn  *pgx.Conn
	heard time.Time     // the last proof
	turn  time.Duration // see turnWithin
	relay bool          // the last proof is a relay's sign of life
	fresh bool          // no test yet

	full   *FullQueueError // nil: the server's queue has room
	polled time.Time       // the last call of Poll
}

// Listen connects as a pool does, and listens. prepare, which may be nil, changes how it connects.
func Listen(ctx context.Context, config *pgxpool.Config, to ListenTo, prepare func(*pgx.ConnConfig)) (*Listening, error) {
	conn, err := Connect(ctx, config, prepare)
	if err != nil {
		return nil, fmt.Errorf("connect to listen: %w", err)
	}
	l, err := ListenOn(ctx, conn, to)
	if err != nil {
		closeListening(ctx, conn)
	}
	return l, err
}

// ListenOn listens on a connection of the caller's.
func ListenOn(ctx context.Context, conn *pgx.Conn, to ListenTo) (*Listening, error) {
	ctx, cancel := context.WithTimeout(ctx, listenWithin)
	defer cancel()
	sql := to.Schema.Listen(to.Channel) + "; " + to.Schema.Listen(aliveChannel)
	if to.Beside != "" {
		sql += "; " + to.Schema.Listen(to.Beside)
	}
	if _, err := conn.Exec(ctx, sql, pgx.QueryExecModeSimpleProtocol); err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	if to.Logger == nil {
		to.Logger = zap.NewNop()
	}
	return &Listening{to: to, conn: conn, heard: time.Now(), fresh: true}, nil
}

// Conn is the connection, for statements between two calls of the other methods.
func (l *Listening) Conn() *pgx.Conn { return l.conn }

// Close closes the connection, within two seconds.
func (l *Listening) Close(ctx context.Context) { closeListening(ctx, l.conn) }

func closeListening(ctx context.Context, conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeListeningTakes)
	defer cancel()
	_ = conn.Close(ctx) // nothing is in flight on it
}

// Wait returns the payload of the next notification. It tests the connection meanwhile, and returns an error
// when the connection no longer hears, is broken, or ctx has ended.
func (l *Listening) Wait(ctx context.Context) (payload string, err error) {
	for {
		payload, err = l.Hear(ctx)
		if !errors.Is(err, ErrSilent) {
			return payload, err
		}
		if err := l.Prove(ctx); err != nil {
			return "", err
		}
	}
}

// Hear is Wait for a caller that tests the connection itself, with Prove, when it returns ErrSilent.
// The end of ctx leaves the connection as it is.
func (l *Listening) Hear(ctx context.Context) (payload string, err error) {
	for {
		n, err := l.next(ctx)
		if err != nil {
			return "", err
		}
		alive := n.Channel == l.to.Schema.Channel(aliveChannel)
		if alive || !l.to.Beats {
			l.hears()
		}
		if !alive {
			return n.Payload, nil
		}
		l.relay = true
		if !l.to.Beats {
			l.isFull(told(n.Payload))
		}
	}
}

func (l *Listening) next(ctx context.Context) (*pgconn.Notification, error) {
	for {
		n, err := l.nextWithin(ctx)
		if err != nil && l.full != nil && ctx.Err() == nil && !l.conn.IsClosed() && time.Since(l.polled) >= pollEvery {
			l.polled = time.Now()
			if l.to.Poll != nil {
				l.to.Poll()
			}
			if after, tests := l.testAfter(); tests && time.Since(l.heard) < after {
				continue
			}
		}
		return n, err
	}
}

// nextWithin waits until the connection has to be tested, or Poll has to be called.
func (l *Listening) nextWithin(ctx context.Context) (*pgconn.Notification, error) {
	within := ctx
	if after, tests := l.testAfter(); tests {
		until := l.heard.Add(after)
		if poll := l.polled.Add(pollEvery); l.full != nil && poll.Before(until) {
			until = poll
		}
		limited, cancel := context.WithDeadline(ctx, until)
		defer cancel()
		within = limited
	}
	n, err := l.conn.WaitForNotification(within)
	if err != nil && within.Err() != nil && ctx.Err() == nil && !l.conn.IsClosed() {
		return nil, ErrSilent
	}
	if err != nil {
		return nil, fmt.Errorf("wait for a wake-up: %w", err)
	}
	return n, nil
}

// hears records a proof that the connection hears.
func (l *Listening) hears() { l.heard, l.turn = time.Now(), rand.N(turnWithin) }

// testAfter returns after what silence the connection is tested, if it is.
func (l *Listening) testAfter() (after time.Duration, tests bool) {
	switch {
	case l.to.Beats && l.fresh:
		return 0, true
	case l.to.Beats:
		return beatEvery + l.turn, true
	case l.relay, l.full != nil:
		return silentAfter, true
	default:
		return l.to.Idle, l.to.Idle > 0
	}
}

// A session that listens knows its channels. Where Postgres answers, it delivers as well.
const (
	testSQL = `SELECT EXISTS (SELECT FROM pg_listening_channels() AS heard WHERE heard = $1), pg_notification_queue_usage(), events_v2_notify_limit()`
	beatSQL = testSQL + `, events_v2_notify($1, $2)`
)

// Prove tests the connection with one round trip, within five seconds. An error means that it no longer hears, and that
// it is closed.
func (l *Listening) Prove(ctx context.Context) error {
	within, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	var listens bool
	var usage, limit float64
	sql, arguments, into := testSQL, []any{pgx.QueryExecModeSimpleProtocol, l.to.Schema.Channel(aliveChannel)}, []any{&listens, &usage, &limit}
	if l.to.Beats {
		sql, arguments, into = beatSQL, append(arguments, l.full.text()), append(into, nil)
	}
	err := l.conn.QueryRow(within, l.to.Schema.SQL(sql), arguments...).Scan(into...)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil && within.Err() != nil:
		err = &SilentError{For: time.Since(l.heard), Err: err}
	case err != nil:
		err = fmt.Errorf("test the connection that listens: %w", err)
	case !listens:
		err = errDeaf
	}
	if err != nil {
		closeListening(ctx, l.conn)
		return err
	}
	l.hears()
	l.relay, l.fresh = false, false
	l.isFull(l.fullness(within, usage, limit))
	return nil
}

// Full reports whether wake-ups may be left out.
func (l *Listening) Full() bool { return l.full != nil }
