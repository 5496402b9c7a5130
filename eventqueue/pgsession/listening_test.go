package pgsession_test

import (
	"context"
	"errors"
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/eventqueue/pgsession"
	"eventsv2/internal/wakeups"
	"eventsv2/test/testenv"
)

// listening listens over a proxy, for the time of the test.
func listening(t *testing.T, to pgsession.ListenTo) (l *pgsession.Listening, direct *pgxpool.Pool, proxy *testenv.TCPProxy) {
	t.Helper()
	direct = testenv.Pool(t)
	server := direct.Config().ConnConfig
	proxy = testenv.Proxy(t, net.JoinHostPort(server.Host, strconv.Itoa(int(server.Port))))
	host, port, err := net.SplitHostPort(proxy.Address)
	if err != nil {
		t.Fatal(err)
	}
	l, err = pgsession.Listen(testenv.Context(t), direct.Config(), to, func(c *pgx.ConnConfig) {
		number, _ := strconv.ParseUint(port, 10, 16)
		c.Host, c.Port = host, uint16(number)
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close(t.Context()) })
	return l, direct, proxy
}

// TestListenerReceivesNoticesAndPassesItsTest: all that is sent to its channel arrives.
func TestListenerReceivesNoticesAndPassesItsTest(t *testing.T) {
	t.Parallel()
	ctx := testenv.Context(t)
	l, direct, _ := listening(t, pgsession.ListenTo{Channel: "told"})
	for _, text := range []string{"one", "two"} {
		if err := l.Prove(ctx); err != nil {
			t.Fatal(err)
		}
		if _, err := direct.Exec(ctx, `SELECT pg_notify('events_v2_alive', ''), pg_notify('told', $1)`, text); err != nil {
			t.Fatal(err)
		}
		if heard, err := l.Wait(ctx); heard != text || err != nil {
			t.Errorf("it has heard %q, %v, want %q", heard, err, text)
		}
	}
}

// TestTestNoticeOfARelayIsASignOfLife for others, the first at once.
func TestTestNoticeOfARelayIsASignOfLife(t *testing.T) {
	t.Parallel()
	ctx := testenv.Context(t)
	relay, direct, _ := listening(t, pgsession.ListenTo{Channel: "told", Beats: true})
	other, err := pgx.ConnectConfig(ctx, direct.Config().ConnConfig)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close(ctx) }()
	if _, err := other.Exec(ctx, `LISTEN events_v2_alive`); err != nil {
		t.Fatal(err)
	}
	if _, err := relay.Hear(ctx); !errors.Is(err, pgsession.ErrSilent) {
		t.Fatalf("Hear = %v before the first test", err)
	}
	if err := relay.Prove(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := other.WaitForNotification(ctx); err != nil {
		t.Fatal(err)
	}
}

// TestSilentConnectionFailsItsTest (I19), and so does one whose session no longer listens.
func TestSilentConnectionFailsItsTest(t *testing.T) {
	t.Parallel()
	l, _, proxy := listening(t, pgsession.ListenTo{Channel: "told"})
	if proxy.Abandon("LISTEN") != 1 {
		t.Fatal("no connection was abandoned")
	}
	silent := new(pgsession.SilentError)
	if err := l.Prove(testenv.Context(t)); !errors.As(err, &silent) || !l.Conn().IsClosed() {
		t.Errorf("Prove = %v", err)
	}
	l, _, _ = listening(t, pgsession.ListenTo{Channel: "told"})
	if _, err := l.Conn().Exec(testenv.Context(t), `UNLISTEN *`); err != nil {
		t.Fatal(err)
	}
	if err := l.Prove(testenv.Context(t)); err == nil || errors.As(err, &silent) || !l.Conn().IsClosed() {
		t.Errorf("Prove = %v of a session that does not listen", err)
	}
}

// TestFullNotifyQueueIsPolledUntilItHasRoom: wake-ups are left out, a relay passes on what it knows of the queue, and who hears of it polls until there is room.
func TestFullNotifyQueueIsPolledUntilItHasRoom(t *testing.T) {
	t.Parallel()
	ctx := testenv.Context(t)
	var state wakeups.State
	polling, stop := context.WithCancel(ctx)
	worker, direct, _ := listening(t, pgsession.ListenTo{Channel: "told", State: &state, Poll: stop})
	relay, err := pgsession.Listen(ctx, direct.Config(), pgsession.ListenTo{Channel: "told", Beats: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer relay.Close(ctx)
	exec := func(l *pgsession.Listening, sql string) {
		t.Helper()
		if _, err := l.Conn().Exec(ctx, sql); err != nil {
			t.Fatal(err)
		}
	}
	prove := func(l *pgsession.Listening, full bool) {
		t.Helper()
		if err := l.Prove(ctx); err != nil || l.Full() != full {
			t.Fatalf("Prove = %v, and the queue is full: %t, want %t", err, l.Full(), full)
		}
	}
	// told has the relay show that it lives, and the worker hear that and what follows.
	told := func() {
		t.Helper()
		prove(relay, relay.Full())
		if _, err := direct.Exec(ctx, `NOTIFY told`); err != nil {
			t.Fatal(err)
		}
		if _, err := worker.Wait(ctx); err != nil {
			t.Fatal(err)
		}
	}
	exec(relay, `SET events_v2.notify_limit = '0'`)
	prove(relay, true)
	told()
	if state.Failure() != nil {
		t.Errorf("the relay has notified beyond the limit: %v", state.Failure())
	}
	exec(relay, `RESET events_v2.notify_limit`)
	exec(worker, `SET events_v2.notify_limit = '0'`)
	prove(worker, true)
	full := new(pgsession.FullQueueError)
	if err := state.Failure(); !errors.As(err, &full) || !strings.Contains(full.Text, "% full") {
		t.Errorf("the worker knows of %v", err)
	}
	if payload, err := worker.Hear(ctx); !errors.Is(err, pgsession.ErrSilent) || polling.Err() == nil {
		t.Errorf("the worker has heard %q, %v, and has polled: %t", payload, err, polling.Err() != nil)
	}
	prove(relay, false)
	told()
	if state.Failure() != nil || worker.Full() {
		t.Errorf("the worker knows of %v when there is room", state.Failure())
	}
}
