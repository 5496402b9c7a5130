package pubsubnotify

import (
	"context"
	"fmt"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"go.uber.org/zap"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"eventsv2/eventqueue"
)

const (
	// maxPull is the most that Pub/Sub returns for one pull.
	maxPull = 1000

	// maxAckIDs and maxAckBytes keep a request below Pub/Sub's limit of 512 KiB.
	maxAckIDs   = 1000
	maxAckBytes = 450 << 10

	// ackIDOverhead is the size of an ack ID in a request beside its own bytes.
	ackIDOverhead = 4

	// dropTimeout bounds how long undecodable messages may delay the rest of their
	// batch.
	dropTimeout = 2 * time.Second

	// quotedBytes is how much of an undecodable message is logged.
	quotedBytes = 100
)

// pulled is the result of one request for notifications.
type pulled struct {
	clients    *clients
	deliveries []eventqueue.Delivery
	err        error
}

// Pull blocks until Pub/Sub has notifications and returns at most max of them, leased to
// the caller for the subscription's ack deadline. If there were none for some seconds, or
// only undecodable messages, it returns none and no error. It blocks at most until ctx
// ends, and then returns the error of ctx. It does not retry. It refuses a max of less
// than 1.
//
// The service may still answer a request that was cut off, with messages that no worker
// would get until their lease ends. So the end of ctx does not cancel the request: its
// answer is awaited in the background, and its messages are requeued at once. Close waits
// for that, for lastPullTakes at most after the end of ctx.
func (n *Notifier) Pull(ctx context.Context, max int) ([]eventqueue.Delivery, error) {
	if max < 1 {
		return nil, fmt.Errorf("pull at most %d notifications: ask for at least 1", max)
	}
	if err := n.pullSlot.take(ctx); err != nil {
		return nil, err
	}
	answer := make(chan pulled, 1)
	n.pulls.Go(func() { answer <- n.request(context.WithoutCancel(ctx), max) })
	select {
	case p := <-answer:
		if p.err != nil {
			return nil, n.failed(ctx, p.clients, "pull from "+n.subscription, roleSubscriber, p.err)
		}
		return p.deliveries, nil
	case <-ctx.Done():
		leaving, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastPullTakes)
		n.pulls.Go(func() {
			defer cancel()
			n.giveBack(leaving, <-answer)
		})
		return nil, ctx.Err()
	}
}

// request waits for the pull slot and then for notifications. The server ends the wait
// before pullTimeout. It returns a page at a time (the emulator's pages have 100
// messages), so after a full page request asks for more.
func (n *Notifier) request(ctx context.Context, max int) pulled {
	ctx, cancel := context.WithTimeout(ctx, pullTimeout)
	defer cancel()
	clients := n.connection.clients()
	messages, err := n.page(ctx, clients, max, false)
	n.pullSlot.give()
	if err != nil && timedOut(ctx) {
		return n.atOnce(context.WithoutCancel(ctx), clients, max)
	}
	for last := len(messages); err == nil && last >= fullPage && len(messages) < max; {
		var more []*pubsubpb.ReceivedMessage
		more, err = n.page(ctx, clients, max-len(messages), true)
		messages, last = append(messages, more...), len(more)
	}
	if err != nil && len(messages) == 0 {
		return pulled{clients: clients, err: err}
	}
	return pulled{deliveries: n.deliveries(ctx, messages)}
}

// fullPage is the size of a page after which there may be more messages.
const fullPage = 100

// page makes one call. It returns none and no error if there were no messages for a
// while, or, with atOnce, at the moment.
func (n *Notifier) page(ctx context.Context, clients *clients, max int, atOnce bool) ([]*pubsubpb.ReceivedMessage, error) {
	response, err := clients.subscriptions.Pull(ctx, &pubsubpb.PullRequest{
		Subscription:      n.subscription,
		MaxMessages:       int32(min(max, maxPull)),
		ReturnImmediately: atOnce, //nolint:staticcheck // discouraged for waiting, which is not done with it
	})
	if status.Code(err) == codes.DeadlineExceeded && !timedOut(ctx) {
		return nil, nil // this is how the server reports that there are no messages
	}
	return response.GetReceivedMessages(), err
}

// deadlineMargin is longer than client and server may differ about the end of a request.
const deadlineMargin = 100 * time.Millisecond

// timedOut reports whether the time of a request is over. The server knows its deadline,
// and its answer that the time is over may come just before ctx ends here.
func timedOut(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ctx.Err() != nil || ok && time.Until(deadline) < deadlineMargin
}

// atOnce makes a call that need not wait, after a call that was not answered in time. It
// distinguishes a service that has no messages, and may let a call wait for minutes, from
// one that hangs and never answers (I19).
func (n *Notifier) atOnce(ctx context.Context, clients *clients, max int) pulled {
	asking, cancel := context.WithTimeout(ctx, atOnceTimeout)
	defer cancel()
	messages, err := n.page(asking, clients, max, true)
	if err != nil {
		return pulled{clients: clients, err: err}
	}
	return pulled{deliveries: n.deliveries(ctx, messages)}
}

// giveBack requeues messages that came after their caller had gone.
func (n *Notifier) giveBack(ctx context.Context, p pulled) {
	if len(p.deliveries) == 0 {
		return
	}
	// Topic and subscription are not made again here (Config.Create), which would take longer than
	// a program that stops waits for.
	if err := n.modify(ctx, p.deliveries, 0); err != nil {
		n.logger.Warn("could not give back notifications that came too late; they come again when their lease ends",
			zap.Int("notifications", len(p.deliveries)), zap.Error(err))
	}
}

// deliveries decodes the messages, drops those that are undecodable, and gives back those of other queues.
func (n *Notifier) deliveries(ctx context.Context, messages []*pubsubpb.ReceivedMessage) []eventqueue.Delivery {
	var bad []string
	var others []*pubsubpb.ReceivedMessage
	deliveries := make([]eventqueue.Delivery, 0, len(messages))
	for _, message := range messages {
		if n.foreign.is(message.GetMessage()) {
			others = append(others, message)
			continue
		}
		notification, err := decode(message.GetMessage())
		if err != nil {
			n.reportUndecodable(message.GetMessage(), err)
			bad = append(bad, message.GetAckId())
			continue
		}
		deliveries = append(deliveries, eventqueue.Delivery{Notification: notification, AckID: message.GetAckId()})
	}
	if len(bad) > 0 {
		n.dropUndecodable(ctx, bad)
	}
	if len(others) > 0 {
		n.giveBackForeign(ctx, others)
	}
	if len(deliveries) == 0 {
		return nil
	}
	return deliveries
}

func (n *Notifier) reportUndecodable(message *pubsubpb.PubsubMessage, reason error) {
	n.undecodable.Add(1)
	data := message.GetData()
	n.logger.Warn("dropped a message that is not a notification",
		zap.NamedError("reason", reason),
		zap.String("message_id", message.GetMessageId()),
		zap.String("subscription", n.subscription),
		zap.String("data", fmt.Sprintf("%q", data[:min(len(data), quotedBytes)])))
}

// dropUndecodable acknowledges messages that cannot be decoded. If that fails, they come
// again and are dropped then.
func (n *Notifier) dropUndecodable(ctx context.Context, ackIDs []string) {
	ctx, cancel := context.WithTimeout(ctx, dropTimeout)
	defer cancel()
	if err := n.acknowledge(ctx, ackIDs); err != nil {
		n.logger.Warn("undecodable messages could not be acknowledged and will come again",
			zap.Error(err), zap.Int("messages", len(ackIDs)))
	}
}

// Ack acknowledges the deliveries in requests of at most 1,000. It blocks at most
// until ctx ends, or for ten seconds per request when ctx has no deadline, and
// does not retry. After an error each delivery may come again.
func (n *Notifier) Ack(ctx context.Context, deliveries []eventqueue.Delivery) error {
	if err := n.acknowledge(ctx, ackIDs(deliveries)); err != nil {
		return n.failed(ctx, nil, fmt.Sprintf("acknowledge %d notifications of %s", len(deliveries), n.subscription), roleSubscriber, err)
	}
	return nil
}

func (n *Notifier) acknowledge(ctx context.Context, ackIDs []string) error {
	return inChunks(ackIDs, func(chunk []string) error {
		return n.connection.clients().subscriptions.Acknowledge(ctx, &pubsubpb.AcknowledgeRequest{
			Subscription: n.subscription,
			AckIds:       chunk,
		})
	})
}

// Requeue sets the ack deadline of the deliveries to after from now, rounded up
// to whole seconds; a negative after means 0, which is at once. It refuses more
// than eventqueue.MaxRequeue, and blocks and fails as Ack does. After an error
// each delivery may come again at once, after the delay, or when its lease ends.
func (n *Notifier) Requeue(ctx context.Context, deliveries []eventqueue.Delivery, after time.Duration) error {
	if after > eventqueue.MaxRequeue {
		return fmt.Errorf("requeue %d notifications after %v: the longest delay is %v; acknowledge them and publish them again when they are due",
			len(deliveries), after, eventqueue.MaxRequeue)
	}
	if err := n.modify(ctx, deliveries, wholeSeconds(after)); err != nil {
		return n.failed(ctx, nil, fmt.Sprintf("requeue %d notifications of %s after %v", len(deliveries), n.subscription, after), roleSubscriber, err)
	}
	return nil
}

func (n *Notifier) modify(ctx context.Context, deliveries []eventqueue.Delivery, seconds int32) error {
	return inChunks(ackIDs(deliveries), func(chunk []string) error {
		return n.connection.clients().subscriptions.ModifyAckDeadline(ctx, &pubsubpb.ModifyAckDeadlineRequest{
			Subscription:       n.subscription,
			AckIds:             chunk,
			AckDeadlineSeconds: seconds,
		})
	})
}

// wholeSeconds rounds up, since a delay that became 0 would cause a hot loop.
func wholeSeconds(d time.Duration) int32 {
	if d <= 0 {
		return 0
	}
	return int32((d + time.Second - 1) / time.Second)
}

func ackIDs(deliveries []eventqueue.Delivery) []string {
	ids := make([]string, len(deliveries))
	for i := range deliveries {
		ids[i] = deliveries[i].AckID
	}
	return ids
}

// inChunks calls send with as many ack IDs as one request may have, until all are sent
// or one call fails.
func inChunks(ackIDs []string, send func(chunk []string) error) error {
	for len(ackIDs) > 0 {
		count, size := 0, 0
		for count < len(ackIDs) && count < maxAckIDs {
			size += len(ackIDs[count]) + ackIDOverhead
			if size > maxAckBytes && count > 0 {
				break
			}
			count++
		}
		if err := send(ackIDs[:count]); err != nil {
			return err
		}
		ackIDs = ackIDs[count:]
	}
	return nil
}
