package fallback

import (
	"context"
	"errors"
	"strings"
	"time"

	"eventsv2/eventqueue"
)

// mark is the prefix of the ack IDs of notifications that were found in the database.
const mark = "db/"

// split separates the notifications that were found in the database from those that the
// notifier delivered. The former get the ack IDs of the local queue.
func split(deliveries []eventqueue.Delivery) (local, primary []eventqueue.Delivery) {
	for _, d := range deliveries {
		if id, ok := strings.CutPrefix(d.AckID, mark); ok {
			d.AckID = id
			local = append(local, d)
		} else {
			primary = append(primary, d)
		}
	}
	return local, primary
}

// pullLocal returns notifications that were found in the database, if there are any.
func (r *Receiver) pullLocal(ctx context.Context, max int) ([]eventqueue.Delivery, error) {
	deliveries, err := r.takeLocal(ctx, max)
	if err != nil {
		return nil, err
	}
	own, others := r.splitDeclined(deliveries)
	if len(others) > 0 {
		if err := r.passOn(ctx, others); err != nil && len(own) == 0 {
			return nil, err
		}
	}
	for i := range own {
		own[i].AckID = mark + own[i].AckID
	}
	return own, nil
}

func (r *Receiver) takeLocal(ctx context.Context, max int) ([]eventqueue.Delivery, error) {
	r.localMu.Lock()
	defer r.localMu.Unlock()
	if r.local.Ready() == 0 {
		return nil, nil
	}
	return r.local.Pull(ctx, max)
}

// splitDeclined separates the deliveries that are left to other workers, and stops
// tracking them.
func (r *Receiver) splitDeclined(deliveries []eventqueue.Delivery) (own, others []eventqueue.Delivery) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, d := range deliveries {
		if _, declined := r.declined[d.Event]; declined {
			delete(r.declined, d.Event)
			delete(r.pending, d.Event)
			others = append(others, d)
		} else {
			own = append(own, d)
		}
	}
	return own, others
}

// Decline is Requeue for deliveries whose events this process cannot run. If the
// notification of an event was pending when it was found in the database, it is marked as
// pending again when the delay is over, and the first worker that polls takes it. If it
// seemed lost, it was published before; it stays in this process, because otherwise each
// search would publish it once more (I11).
func (r *Receiver) Decline(ctx context.Context, deliveries []eventqueue.Delivery, after time.Duration) error {
	local, rest := split(deliveries)
	r.mu.Lock()
	var now []eventqueue.Delivery
	for _, d := range local {
		if _, pending := r.pending[d.Event]; pending && after <= 0 {
			delete(r.pending, d.Event)
			now = append(now, d)
			continue
		} else if pending {
			r.declined[d.Event] = struct{}{}
		}
		d.AckID = mark + d.AckID
		rest = append(rest, d)
	}
	r.mu.Unlock()
	var errs []error
	if len(now) > 0 {
		errs = append(errs, r.passOn(ctx, now))
	}
	if len(rest) > 0 {
		errs = append(errs, r.Requeue(ctx, rest, after))
	}
	return errors.Join(errs...)
}

// passOn marks events as pending, so that other workers find them. This wakes all
// workers; the others poll before this process. After a failure it is tried again.
func (r *Receiver) passOn(ctx context.Context, local []eventqueue.Delivery) error {
	asking, cancel := context.WithTimeout(ctx, statementTakes)
	defer cancel()
	ids := make([]eventqueue.EventID, len(local))
	for i, d := range local {
		ids[i] = d.Event
	}
	r.mu.Lock()
	r.yield()
	r.mu.Unlock()
	if err := r.reported(r.store.MarkPending(asking, ids)); err != nil {
		r.mu.Lock()
		for _, id := range ids {
			r.declined[id] = struct{}{}
		}
		r.mu.Unlock()
		return errors.Join(err, r.local.Requeue(context.WithoutCancel(ctx), local, r.config.Poll))
	}
	r.remove(local)
	return r.local.Ack(ctx, local)
}

// remove stops tracking events whose notifications are acknowledged.
func (r *Receiver) remove(local []eventqueue.Delivery) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, d := range local {
		delete(r.pending, d.Event)
		delete(r.declined, d.Event)
		delete(r.handed, d.Event)
	}
}

// maxHanded bounds how many events are in the local queue that Hand has put there.
const maxHanded = 10_000

// Hand delivers to the Pulls of this process what another worker has forwarded. It leaves out events that it has in hand
// already, and what is too much: the notifier has their notifications as well.
func (r *Receiver) Hand(ctx context.Context, notifications []eventqueue.Notification) {
	var fresh []eventqueue.Notification
	r.mu.Lock()
	for _, n := range notifications {
		if _, there := r.handed[n.Event]; !there && len(r.handed) < maxHanded {
			r.handed[n.Event] = struct{}{}
			fresh = append(fresh, n)
		}
	}
	r.mu.Unlock()
	_ = r.enqueue(ctx, fresh) // which fails with ctx only
}
