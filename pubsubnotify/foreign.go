package pubsubnotify

import (
	"context"
	"fmt"
	"sync"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"go.uber.org/zap"

	"eventsv2/eventqueue"
)

// queueKey is the message attribute that carries the identity of the queue.
const queueKey = "queue"

const (
	// foreignFor is for how long after the last notification of another queue the subscription counts as shared.
	foreignFor = time.Minute
	// foreignHold is how long a young one is held back before it is given back, and foreignMost how long an old one is at most.
	foreignHold, foreignMost = 50 * time.Millisecond, time.Minute
	// foreignTakes bounds giving back.
	foreignTakes = 5 * time.Second
)

// ForeignError means that the subscription has notifications of another queue, since both use it.
type ForeignError struct {
	Subscription string
	Queue        string // of the last one
	Count        int64  // since this program has begun
}

func (e *ForeignError) Error() string {
	return fmt.Sprintf("the subscription %s has notifications of another queue (%s): %d so far, which were given back, and the other one takes ours; "+
		"give each queue a topic and a subscription of its own", e.Subscription, e.Queue, e.Count)
}

// Effect says what follows from it, as readiness does.
func (*ForeignError) Effect() string {
	return "this subscription has notifications of another queue, so that events start late"
}

// Advice says what to do, without the names of resources.
func (*ForeignError) Advice() string { return "give each queue a topic and a subscription of its own" }

// foreign records other queues on the subscription. It is safe for concurrent use.
type foreign struct {
	mu    sync.Mutex
	own   string // identity of the queue; empty: unknown, and nothing is foreign
	queue string // the last other one
	count int64
	last  time.Time
	said  time.Time
}

// SetQueue tells the Notifier the identity of its queue, which it then puts into what it publishes. What carries another one is given back when it is pulled;
// what carries none, as of older versions and of other publishers, counts as the queue's own. At most 64 bytes of ASCII.
func (n *Notifier) SetQueue(identity string) {
	n.foreign.mu.Lock()
	defer n.foreign.mu.Unlock()
	n.foreign.own = identity
}

// ForeignError returns a [*ForeignError] if notifications of another queue came within the last minute.
func (n *Notifier) ForeignError() error {
	f := &n.foreign
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.count == 0 || time.Since(f.last) > foreignFor {
		return nil
	}
	return &ForeignError{n.subscription, f.queue, f.count}
}

// mark puts the identity of the queue into messages.
func (f *foreign) mark(messages []*pubsubpb.PubsubMessage) {
	f.mu.Lock()
	own := f.own
	f.mu.Unlock()
	if own == "" {
		return
	}
	for _, m := range messages {
		if m.Attributes == nil {
			m.Attributes = make(map[string]string, 1)
		}
		m.Attributes[queueKey] = own
	}
}

// is reports whether a message is of another queue.
func (f *foreign) is(message *pubsubpb.PubsubMessage) bool {
	queue := message.GetAttributes()[queueKey]
	f.mu.Lock()
	defer f.mu.Unlock()
	if queue == "" || f.own == "" || queue == f.own {
		return false
	}
	f.queue, f.last = queue[:min(len(queue), quotedBytes)], time.Now()
	f.count++
	return true
}

// worthAWord reports whether it is time to warn.
func (f *foreign) worthAWord() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if time.Since(f.said) < foreignFor {
		return false
	}
	f.said = time.Now()
	return true
}

// giveBackForeign gives back what is of another queue: at once if it is young, since the next worker that pulls may be one of that queue, and
// otherwise for a quarter of its age, since that queue may have no worker.
func (n *Notifier) giveBackForeign(ctx context.Context, messages []*pubsubpb.ReceivedMessage) {
	if n.foreign.worthAWord() {
		n.logger.Warn("this subscription has notifications of another queue", zap.Error(n.ForeignError()))
	}
	after := map[int32][]eventqueue.Delivery{}
	for _, m := range messages {
		age := time.Since(m.GetMessage().GetPublishTime().AsTime())
		wait := int32(0)
		if age > 4*time.Second {
			wait = wholeSeconds(min(age/4, foreignMost))
		}
		after[wait] = append(after[wait], eventqueue.Delivery{AckID: m.GetAckId()})
	}
	n.pulls.Go(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), foreignTakes)
		defer cancel()
		time.Sleep(foreignHold)
		for wait, deliveries := range after {
			if err := n.modify(ctx, deliveries, wait); err != nil {
				n.logger.Warn("could not give back notifications of another queue; they come again when their lease ends",
					zap.Int("notifications", len(deliveries)), zap.Error(err))
			}
		}
	})
}
