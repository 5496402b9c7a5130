package cleanup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/pgsession"
)

// Publications publishes for handlers: it cleans up expired publications, sends the
// new one, and records how to delete it. The package comment has the guarantees. It is
// safe for concurrent use, and holds no connection while the functions of a Publication
// run.
type Publications struct {
	db eventqueue.DB
}

// Pool is a *pgxpool.Pool, or what passes statements on to one. Each statement commits by
// itself.
type Pool interface {
	eventqueue.DB

	// Ping is not called. No transaction has it.
	Ping(ctx context.Context) error
}

// NewPublications makes a Publications on a pool, which the caller closes. A
// transaction cannot be used: the row of one step must survive a crash in the next
// one. The pool must be on the queue's own database.
func NewPublications(pool Pool) *Publications { return NewPublicationsIn("", pool) }

// NewPublicationsIn is NewPublications for the queue in a schema; "" is public.
func NewPublicationsIn(schema pgsession.Schema, pool Pool) *Publications {
	return &Publications{schema.On(pool)}
}

// Intent is the record that is written before a publication is sent.
type Intent struct {
	Key Key

	// Token is a uuid that stays the same in all runs of the event for this key, and is
	// that of no other publication. Send it as the idempotency key of the service, or
	// within the publication, so that Find finds it.
	Token string

	// Begun is when the intent was written, by the database's clock. Find need not
	// search for anything much older.
	Begun time.Time

	// Repeat means that an earlier run of the event may have called Send, and that Find
	// has found nothing. The publication may have been sent nevertheless, if Find
	// searched too early, or is Unsearchable.
	Repeat bool
}

// Publication is one thing to publish. Its functions get the context of the call, and
// must return when it ends. An error or a panic in one of them is a failed attempt of the
// event, except while cleaning up.
type Publication struct {
	Key Key

	// TTL is how long the publication stays at the least, counted from the time when it
	// was recorded.
	TTL TTL

	// Send publishes, and returns the data that Delete will need. Required. Its error may
	// be eventqueue.Permanent or Snooze; an error does not mean that nothing was
	// published. A service that takes Intent.Token as an idempotency key publishes once,
	// however often Send is called.
	Send func(ctx context.Context, intent Intent) (data []byte, err error)

	// Find searches for the publication that was sent with Intent.Token, and returns the
	// data that Send would have returned. It is called after a crash between Send and
	// the statement that records its data, also for an earlier event of the key. So it
	// must know from the key where to search. Required; set Unsearchable if the service
	// cannot be searched.
	Find func(ctx context.Context, intent Intent) (data []byte, found bool, err error)

	// Delete deletes a publication of the key. Required. It must be idempotent: a
	// publication that no longer exists is deleted, not an error. After an error the
	// cleanup stays, and is tried again by the next event that publishes with this key.
	Delete func(ctx context.Context, c Cleanup) error

	// DeleteTimeout bounds Find and Delete of one cleanup, so that there is time to
	// publish even if one hangs. Default (0): 10 s.
	DeleteTimeout time.Duration
}

// Unsearchable is the Find for a service that cannot be searched. If the process dies
// after it has sent a publication and before it has recorded that, the publication is
// never cleaned up. The event's next run sends it once more, unless the service takes
// Intent.Token as an idempotency key.
func Unsearchable(context.Context, Intent) (data []byte, found bool, err error) {
	return nil, false, nil
}

// MaxFailures is how many deletions may fail in one run. The other expired cleanups are
// left to the next run. It begins with those that were never tried or whose last try is
// the longest ago.
const MaxFailures = 3

// Failure is a cleanup that has failed. Its row stays.
type Failure struct {
	Cleanup Cleanup
	Err     error
}

// Result is the result of Publish and Clean.
type Result struct {
	// Data is the result of Send, of this or an earlier run.
	Data []byte

	// Repeat means that an earlier run of the event has published already, and that
	// this one has sent nothing and cleaned up nothing.
	Repeat bool

	// Cleaned counts the cleanups that succeeded, and Failed lists those that failed.
	// They do not prevent the publication. Log them.
	Cleaned int
	Failed  []Failure
}

// Publish cleans up the expired publications of pub.Key, sends pub, and records how to
// delete it. run is the run of the handler that calls Publish. An event publishes once
// for each key: in later runs and in a second call, Publish finds the record of the first
// one and does nothing.
//
// Publish returns an error if the publication was not sent or not recorded. Return the
// error from the handler; the next run then continues where this one stopped. An error of
// Send is wrapped. The error is eventqueue.ErrLockLost if another worker has claimed the
// event since. The Result is valid in either case.
//
// It blocks for about four statements, two more for each cleanup, and for the
// functions of pub. A sent publication is recorded even if ctx has ended meanwhile.
func (p *Publications) Publish(ctx context.Context, run *eventqueue.Run, pub Publication) (Result, error) {
	c, err := p.newCourse(run, pub)
	if err == nil && pub.Send == nil {
		err = errors.New("Send is missing")
	}
	if err == nil {
		err = c.publish(ctx)
	}
	if err != nil {
		return c.result, fmt.Errorf("publish %s: %w", pub.Key, err)
	}
	return c.result, nil
}

// Clean cleans up the expired publications of pub.Key and publishes nothing. It is for
// a handler that runs on a schedule. pub needs no Send. The Result lists failed
// deletions; an error means that the cleanups could not be read or written.
func (p *Publications) Clean(ctx context.Context, run *eventqueue.Run, pub Publication) (Result, error) {
	c, err := p.newCourse(run, pub)
	if err == nil {
		err = c.clean(ctx)
	}
	if err != nil {
		return c.result, fmt.Errorf("clean up %s: %w", pub.Key, err)
	}
	return c.result, nil
}

// course is one call of Publish or Clean.
type course struct {
	db     eventqueue.DB
	run    *eventqueue.Run
	pub    Publication
	result Result
}

// newCourse returns a course even with an error, for its result.
func (p *Publications) newCourse(run *eventqueue.Run, pub Publication) (*course, error) {
	if pub.DeleteTimeout == 0 {
		pub.DeleteTimeout = 10 * time.Second
	}
	c := &course{db: p.db, run: run, pub: pub}
	switch err := check(pub.Key, pub.TTL); {
	case err != nil:
		return c, err
	case pub.Key.Canvas != run.Canvas: // I16
		return c, fmt.Errorf("the event is of canvas %s: make the key with the canvas of the run", run.Canvas)
	case pub.Find == nil:
		return c, errors.New("Find is missing: set Unsearchable if the service cannot be asked")
	case pub.Delete == nil:
		return c, errors.New("Delete is missing")
	case pub.DeleteTimeout < 0:
		return c, fmt.Errorf("DeleteTimeout is %s: it must not be negative", pub.DeleteTimeout)
	}
	return c, nil
}

func (c *course) publish(ctx context.Context) error {
	own, begun, err := c.findOwn(ctx)
	if err != nil {
		return err
	}
	if begun {
		if done, err := c.resume(ctx, own); done || err != nil {
			return err
		}
	}
	// Not before it is known that there is something to send: the publications that
	// this deletes may be newer than the one of an earlier run.
	if err := c.clean(ctx); err != nil {
		return err
	}
	if own, err = c.intend(ctx); err != nil {
		return err
	}
	if !own.Open { // recorded by an earlier run, which was only frozen
		c.repeated(own.Data)
		return nil
	}
	data, err := c.pub.Send(ctx, own.intent(begun))
	if err != nil {
		return fmt.Errorf("send: %w", err)
	}
	c.result.Data = data
	return c.remember(ctx, own, data)
}

// resume continues where an earlier run stopped. done means that the earlier run has
// published.
func (c *course) resume(ctx context.Context, own Cleanup) (done bool, err error) {
	if !own.Open {
		c.repeated(own.Data)
		return true, nil
	}
	data, found, err := c.pub.Find(ctx, own.intent(false))
	switch {
	case err != nil:
		return false, fmt.Errorf("find what an earlier run may have sent: %w", err)
	case !found:
		return false, nil
	}
	if err := c.remember(ctx, own, data); err != nil {
		return false, err
	}
	c.repeated(data)
	return true, nil
}

func (c *course) repeated(data []byte) { c.result.Data, c.result.Repeat = data, true }

func (c Cleanup) intent(repeat bool) Intent {
	return Intent{Key: c.Key, Token: c.Token, Begun: c.CreatedAt, Repeat: repeat}
}

// clean performs the expired cleanups of the key, one after the other.
func (c *course) clean(ctx context.Context) error {
	seen := []int64{} // nil would be NULL, and no comparison with NULL is true
	for len(c.result.Failed) < MaxFailures {
		next, claimed, err := c.claimNext(ctx, seen)
		if err != nil || next.ID == 0 {
			return err
		}
		seen = append(seen, int64(next.ID))
		if !claimed { // another event was faster
			continue
		}
		if err := c.undo(ctx, next); err != nil {
			c.result.Failed = append(c.result.Failed, Failure{next, err})
			continue
		}
		if err := c.drop(ctx, next); err != nil {
			return err
		}
		c.result.Cleaned++
	}
	return nil
}

// undo deletes a publication. If its event ended without recording the data, Find searches for it. It does so, too, for
// what a frozen run of the event may have sent after the recorded one. If Find finds nothing, there is nothing to delete.
func (c *course) undo(ctx context.Context, next Cleanup) error {
	ctx, cancel := context.WithTimeout(ctx, c.pub.DeleteTimeout)
	defer cancel()
	var deleted [][]byte
	if !next.Open {
		if err := c.pub.Delete(ctx, next); err != nil || !next.resent {
			return err
		}
		deleted = append(deleted, next.Data)
	}
	for {
		data, found, err := c.pub.Find(ctx, next.intent(false))
		switch {
		case err != nil:
			return fmt.Errorf("find what event %s may have sent: %w", next.Event, err)
		case !found, slices.ContainsFunc(deleted, func(d []byte) bool { return bytes.Equal(d, data) }):
			return nil
		}
		if recorded, err := c.recorded(ctx, next, data); recorded || err != nil {
			return err
		}
		next.Data, next.Open = stored(data), false
		if err := c.pub.Delete(ctx, next); err != nil || !next.resent {
			return err
		}
		deleted = append(deleted, data)
	}
}
