package pgsession

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/zap"
)

// FullQueueError means that the server's queue of notifications fills up, which is one for all of its databases. Wake-ups are then
// left out, since a transaction that has notified could not commit when the queue is full.
type FullQueueError struct {
	// Text says how full it is, and who holds it up, as far as that can be seen.
	Text string
}

func (e *FullQueueError) Error() string {
	return "the queue of notifications of the Postgres server fills up, and events are found by polling: " + e.Text
}

// Effect says what follows from it, as readiness does.
func (*FullQueueError) Effect() string {
	return "the queue of notifications of the Postgres server fills up, and events are found by polling"
}

// Advice says what is wrong, without the names of resources.
func (*FullQueueError) Advice() string {
	return "a session that listens has stayed in its transaction for long: end it"
}

func (e *FullQueueError) text() string {
	if e == nil {
		return ""
	}
	return e.Text
}

// maxTold is how much is taken over of what another program says: everybody who may connect can notify.
const maxTold = 400

// told is the state of the queue that a relay sends with its sign of life; nil: it has room.
func told(payload string) *FullQueueError {
	if payload == "" {
		return nil
	}
	return &FullQueueError{Text: payload[:min(len(payload), maxTold)]}
}

// QueueHolderSQL finds the session with the oldest transaction of the server. It is the one that Postgres names in its own
// warning about the queue, which a session that listens keeps from being emptied until its transaction ends. Without the
// role pg_read_all_stats one sees no transactions of other users.
const QueueHolderSQL = `
SELECT format('process %s (user %s, database %s, application %s) has been in a transaction for %s s', pid, usename, datname, application_name,
    extract(epoch FROM clock_timestamp() - xact_start)::bigint)
FROM pg_stat_activity
WHERE xact_start < clock_timestamp() - interval '5 s' AND pid <> pg_backend_pid() AND backend_type = 'client backend'
ORDER BY xact_start, pid
LIMIT 1`

// HolderUnknown stands for a session that is not seen.
const HolderUnknown = "Postgres names the process that holds it up in its log (NOTIFY queue is … full); sessions of other users are seen with the role pg_read_all_stats"

// QueueFills reports whether the queue is so full that it is worth a word: at half of what wake-ups end at.
func QueueFills(usage, limit float64) bool { return usage >= limit/2 }

// fullness finds out who holds the queue up if it fills.
func (l *Listening) fullness(ctx context.Context, usage, limit float64) *FullQueueError {
	if !QueueFills(usage, limit) {
		return nil
	}
	var holder string
	if err := l.conn.QueryRow(ctx, QueueHolderSQL, pgx.QueryExecModeSimpleProtocol).Scan(&holder); err != nil {
		holder = HolderUnknown
	}
	return &FullQueueError{fmt.Sprintf("%.0f %% full, wake-ups are left out from %.0f %% on; %s", 100*usage, 100*limit, holder)}
}

// isFull takes over what is known of the queue; nil: it has room.
func (l *Listening) isFull(full *FullQueueError) {
	was := l.full
	l.full = full
	l.fresh = l.to.Beats && (was == nil) != (full == nil) // to be passed on at once
	switch {
	case full != nil:
		if l.to.State != nil {
			l.to.State.Is(full)
		}
		if was == nil {
			l.polled = time.Time{}
			l.to.Logger.Warn("the queue of notifications of the Postgres server fills up: end the session that holds it up", zap.Error(full))
		}
	case was != nil:
		if l.to.State != nil {
			l.to.State.Ends()
		}
		l.to.Logger.Info("the queue of notifications of the Postgres server has room again")
	}
}
