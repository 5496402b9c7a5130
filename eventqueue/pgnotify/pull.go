package pgnotify

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue"
)

// The rows are locked first, and found again by where they lie: nobody ever
// changes one, so they lie there until they are deleted.
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
	// readyFor is how long what was taken ahead may wait for a pull of this
	// process.
	readyFor = 2 * time.Second
)

var errClosed = errors.New("the notifier is closed")

// Pull blocks until there are notifications and returns at most max of them,
// leased to the caller for Config.Lease. While there are none it sends nothing.
// It returns an error when a statement has failed, after which notifications may
// be lost (the relay rings for their events), when max is less than 1, and when
// the Notifier is closed; and the error of ctx when that has ended.
//
// A statement under way is not cancelled by the end of ctx, since it may have
// taken notifications already. They are given back in the background; Close
// waits for that.
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
			// After an error the bell has rung: the next pull tells.
			n.pace.note(now, len(deliveries))
			if n.leases.readyCount() > 0 {
				n.bell.ring()
			}
			return deliveries, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// fill looks into the table if fewer than count are ready and somebody has rung.
// With none ready it waits for that.
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
		case <-n.bell:
		default:
			return nil
		}
	default:
		select {
		case <-n.bell:
		case <-ctx.Done():
			return ctx.Err()
		case <-n.closing:
			return errClosed
		}
	}
	return n.look(ctx, count)
}

// look takes what is there, in a goroutine of its own: what comes when ctx has
// ended goes back.
func (n *Notifier) look(ctx context.Context, count int) error {
	looked := make(chan error)
	n.pulls.Go(func() {
		err := n.takeAhead(context.WithoutCancel(ctx), count)
		select {
		case looked <- err:
		case <-ctx.Done():
			n.leases.returnReady()
		}
	})
	select {
	case err := <-looked:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// takeAhead makes ready what a pull of count needs, and what the next ones will
// need soon. Whatever becomes of it, the bell rings again if there may be more.
func (n *Notifier) takeAhead(ctx context.Context, count int) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	now := time.Now()
	// Another pull may have looked meanwhile.
	want := count - n.leases.readyCount() + n.pace.expected(now)
	if want < 1 {
		n.bell.ring()
		return nil
	}
	limit := min(want, maxTake)
	l := n.marks.begin(now)
	taken, highest, err := n.take(ctx, l.above, limit)
	if err != nil {
		n.bell.ring()
		return fmt.Errorf("take notifications: %w", err)
	}
	switch then := n.marks.end(l, highest, len(taken) == limit); {
	case then.now:
		n.bell.ring()
	case !then.at.IsZero():
		n.later.Reset(time.Until(then.at))
	}
	n.leases.add(taken, time.Now().Add(readyFor))
	return nil
}

// take runs takeSQL and returns the highest place taken as well.
func (n *Notifier) take(ctx context.Context, above int64, limit int) (taken []eventqueue.Notification, highest int64, err error) {
	rows, err := n.pool.Query(ctx, takeSQL, takeMode, above, int64(limit))
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
		if traceparent != nil && eventqueue.ValidTraceparent(*traceparent) {
			taken[len(taken)-1].Traceparent = *traceparent
		}
		return nil
	})
	return taken, highest, err
}
