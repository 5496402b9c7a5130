package pgnotify

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue"
	"eventsv2/internal/trace"
)

// The rows are locked first, and then found by their ctid: rows of this table are
// never updated, so a row has the same ctid until it is deleted.
const takeSQL = `
DELETE FROM events_v2_notifications
WHERE ctid = ANY (ARRAY(
    SELECT ctid
    FROM events_v2_notifications
    WHERE place > $1
    ORDER BY place
    LIMIT $2
    FOR UPDATE SKIP LOCKED
))
RETURNING place, event_id, canvas_id, traceparent`

// takeMode has each take planned anew: a plan that was made while the table was
// small would read and sort all of it when it has grown.
const takeMode = pgx.QueryExecModeCacheDescribe

const (
	// maxTake is how many rows one statement takes at most.
	maxTake = 1000
	// readyFor is how long a notification that was taken ahead may wait for a pull
	// of this process.
	readyFor = 2 * time.Second
)

var errClosed = errors.New("the notifier is closed")

// Pull blocks until there are notifications and returns at most max of them,
// leased to the caller for Config.Lease. While there are none it sends nothing.
// It returns an error when a statement has failed, when max is less than 1, and
// when the Notifier is closed; and the error of ctx when ctx has ended. After a
// failed statement notifications may be lost; the relay publishes them again.
//
// The end of ctx does not cancel a statement that is running, since it may have
// taken notifications already. They are returned to the table in the background;
// Close waits for that.
func (n *Notifier) Pull(ctx context.Context, max int) ([]eventqueue.Delivery, error) {
	if max < 1 {
		return nil, fmt.Errorf("pull at most %d notifications: ask for at least 1", max)
	}
	n.start()
	for {
		err := n.fill(ctx, max)
		if ctx.Err() != nil {
			n.leases.returnReady() // this process may pull no more
			return nil, ctx.Err()
		}
		now := time.Now()
		deliveries := n.leases.handOut(max, now.Add(n.config.Lease))
		if len(deliveries) > 0 {
			// After an error the wake-up was signalled: the next pull reports it.
			n.pace.record(now, len(deliveries))
			if n.leases.readyCount() > 0 {
				n.wakeup.signal()
			}
			return deliveries, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// maxHanded is how many notifications are ready at most for Hand to add more.
const maxHanded = 2 * maxTake

// Hand delivers to the pulls of this process what another worker has forwarded, or nothing if much is ready already: the
// table has, or will have, notifications of the same events. Those that no pull takes within a lease return to the table.
func (n *Notifier) Hand(_ context.Context, notifications []eventqueue.Notification) {
	if n.leases.readyCount() < maxHanded {
		n.leases.add(notifications, time.Now().Add(n.config.Lease))
		n.wakeup.signal()
	}
}

// fill polls the table if fewer than count notifications are ready and the wake-up
// was signalled. If none is ready it waits for the signal.
func (n *Notifier) fill(ctx context.Context, count int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	ready := n.leases.readyCount()
	switch {
	case ready >= count:
		return nil
	case ready > 0:
		select {
		case <-n.wakeup:
		default:
			return nil
		}
	default:
		select {
		case <-n.wakeup:
		case <-ctx.Done():
			return ctx.Err()
		case <-n.closing:
			return errClosed
		}
	}
	if ready > 0 && n.backpressure.wait(time.Now()) > 0 { // what is ready goes first
		n.wakeup.signal()
		return nil
	}
	if err := n.waitToPoll(ctx); err != nil {
		return err
	}
	return n.poll(ctx, count)
}

// waitToPoll waits until backpressure lets this process poll. If ctx ends first, it puts
// the token back for the next pull, because the signal may have meant an event.
func (n *Notifier) waitToPoll(ctx context.Context) error {
	wait := n.backpressure.wait(time.Now())
	if wait <= 0 {
		return nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		n.wakeup.signal()
		return ctx.Err()
	case <-n.closing:
		return errClosed
	}
}

// poll takes notifications from the table in a goroutine of its own. Notifications
// that arrive after ctx has ended are returned to the table.
func (n *Notifier) poll(ctx context.Context, count int) error {
	polled := make(chan error)
	n.pulls.Go(func() {
		err := n.takeAhead(context.WithoutCancel(ctx), count)
		select {
		case polled <- err:
		case <-ctx.Done():
			n.leases.returnReady()
		}
	})
	select {
	case err := <-polled:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// takeAhead takes what a pull of count notifications needs, and what the next pulls
// are expected to need. In any case it signals again if the table may have more.
func (n *Notifier) takeAhead(ctx context.Context, count int) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	now := time.Now()
	// Another pull may have polled meanwhile.
	want := count - n.leases.readyCount() + n.pace.expected(now)
	if want < 1 {
		n.wakeup.signal()
		return nil
	}
	limit := min(want, maxTake)
	l := n.marks.begin(now)
	taken, highest, err := n.take(ctx, l.above, limit)
	if err != nil {
		n.wakeup.signal()
		return fmt.Errorf("take notifications: %w", err)
	}
	n.backpressure.record(time.Now(), len(taken))
	switch then := n.marks.end(l, highest, len(taken) == limit); {
	case then.now:
		n.wakeup.signal()
	case !then.at.IsZero():
		n.later.Reset(time.Until(then.at))
	}
	n.leases.add(taken, time.Now().Add(readyFor))
	return nil
}

// take runs takeSQL and returns the highest place taken as well.
func (n *Notifier) take(ctx context.Context, above int64, limit int) (taken []eventqueue.Notification, highest int64, err error) {
	rows, err := n.db.Query(ctx, takeSQL, takeMode, above, int64(limit))
	if err != nil {
		return nil, 0, err
	}
	var (
		place       int64
		event       int64
		canvas      [16]byte
		traceparent *string
	)
	_, err = pgx.ForEachRow(rows, []any{&place, &event, &canvas, &traceparent}, func() error {
		highest = max(highest, place)
		taken = append(taken, eventqueue.Notification{Event: eventqueue.EventID(event), Canvas: canvas})
		if traceparent != nil && trace.ValidParent(*traceparent) {
			taken[len(taken)-1].Traceparent = *traceparent
		}
		return nil
	})
	return taken, highest, err
}
