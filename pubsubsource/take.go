package pubsubsource

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	pubsub "cloud.google.com/go/pubsub/v2/apiv1"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"github.com/jackc/pgx/v5/pgconn"
	"go.uber.org/zap"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/pgsession"
	"eventsv2/internal/backoff"
	"eventsv2/internal/intake"
	"eventsv2/internal/logkey"
	"eventsv2/internal/pubsubmessage"
	"eventsv2/internal/refusal"
	"eventsv2/internal/shortkey"
	"eventsv2/internal/sqlstate"
)

const (
	// pullTakes bounds one pull. For that long, Pub/Sub may deliver messages to a program that was killed.
	pullTakes = 30 * time.Second
	// batch is how many messages are emitted in one transaction.
	batch = 100
	// lease is how long messages that were pulled are this program's.
	lease = time.Minute
	// emitTakes bounds a transaction: it is over well before the lease.
	emitTakes = 20 * time.Second
	// acknowledgingTakes bounds an acknowledgement, after which the messages come again.
	acknowledgingTakes = 3 * time.Second
	// givingBackTakes bounds the last call of a program that stops.
	givingBackTakes = 2 * time.Second
	// emptyRest is the least time between pulls that return nothing.
	emptyRest = 100 * time.Millisecond
	// maxMessageKey is the longest part of a unique key that names a message, in bytes.
	maxMessageKey = 200
)

// taker takes in messages over one connection.
type taker struct {
	*Source
	client *pubsub.SubscriptionAdminClient
	settings
}

// takeIn takes in messages until a call fails, which is its error. It returns nil when a pull was not answered, which is how a
// subscription without messages may behave, and a service that hangs.
func (t *taker) takeIn(ctx context.Context) error {
	for {
		began := time.Now()
		messages, err := t.pull(ctx)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case status.Code(err) == codes.DeadlineExceeded:
			return nil
		case err != nil:
			return t.explain("pull from "+t.config.Subscription, err)
		case len(messages) == 0 && time.Since(began) < emptyRest:
			backoff.Sleep(ctx, emptyRest)
		case len(messages) > 0:
			if err := t.take(ctx, messages); err != nil {
				return err
			}
		}
	}
}

func (t *taker) pull(ctx context.Context) ([]*pubsubpb.ReceivedMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, pullTakes)
	defer cancel()
	answer, err := t.client.Pull(ctx, &pubsubpb.PullRequest{Subscription: t.config.Subscription, MaxMessages: batch})
	return answer.GetReceivedMessages(), err
}

// take emits messages and acknowledges them, all that can be events. It holds them while the database cannot be reached. The error is of
// a call to Pub/Sub, after which the messages come again.
func (t *taker) take(ctx context.Context, messages []*pubsubpb.ReceivedMessage) error {
	wait := backoff.New(rand.N[time.Duration])
	alone := false // one of them is at fault, and each is emitted by itself
	for len(messages) > 0 {
		if err := t.setLease(ctx, messages, t.lease); err != nil {
			return err
		}
		some := messages
		if alone {
			some = messages[:1]
		}
		err := t.emit(ctx, some)
		culprit, found := culpritOf(err, some)
		switch {
		case err == nil:
			t.failed(nil)
			wait.Reset()
			messages = messages[len(some):]
			err = t.acknowledge(ctx, some)
		case ctx.Err() != nil: // they may have been emitted, and are known by their keys then
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), givingBackTakes)
			defer cancel()
			return t.setLease(ctx, messages, 0)
		case found:
			messages, err = t.refuse(ctx, messages, culprit, err)
		case passes(err):
			t.failed(err)
			wait.Pause(ctx)
			err = nil
		case len(some) == 1:
			messages, err = t.refuse(ctx, messages, 0, err)
		default:
			alone, err = true, nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// culpritOf returns the index of the message of which the queue says that it can be no event. The index that a middleware gives
// is not believed.
func culpritOf(err error, messages []*pubsubpb.ReceivedMessage) (index int, found bool) {
	var invalid *eventqueue.InvalidError
	if !errors.As(err, &invalid) || refusal.IsEmit(err) || invalid.Index < 0 || invalid.Index >= len(messages) {
		return 0, false
	}
	return invalid.Index, true
}

// passes reports whether an emit may succeed later as it is: its error is one of the database, and not of a row.
func passes(err error) bool {
	if refused := (*pgconn.PgError)(nil); errors.As(err, &refused) {
		return !sqlstate.Refused(err) || !sqlstate.ConcernsRow(err)
	}
	return pgsession.Unreachable(err)
}

// emit commits the events of messages, in their order, all or none.
func (t *taker) emit(ctx context.Context, messages []*pubsubpb.ReceivedMessage) error {
	events := make([]eventqueue.NewEvent, len(messages))
	for i, received := range messages {
		events[i] = t.event(received.GetMessage())
	}
	ctx, cancel := context.WithTimeout(ctx, emitTakes)
	defer cancel()
	emitted, err := t.queue.EmitUnique(ctx, events...)
	if err != nil {
		return err
	}
	repeats := 0
	for i, e := range emitted {
		if !e.New {
			repeats++
			t.log.Debug("a message has come again, and emits nothing", zap.String("message_id", messages[i].GetMessage().GetMessageId()), zap.Stringer(logkey.Event, e.ID))
		}
	}
	t.log.Debug("messages are taken in", zap.Int(logkey.Count, len(messages)), zap.Int("repeats", repeats))
	return nil
}

// event is what becomes of a message.
func (t *taker) event(message *pubsubpb.PubsubMessage) eventqueue.NewEvent {
	m := pubsubmessage.Message{Subscription: t.config.Subscription, ID: message.GetMessageId(), Data: message.GetData(),
		Attributes: message.GetAttributes(), OrderingKey: message.GetOrderingKey()}
	return eventqueue.NewEvent{Canvas: t.config.Canvas, Module: t.config.Handler.Module, Name: t.config.Handler.Name, Modifier: t.config.Handler.Modifier,
		Value: m.Value(), Attributes: m.EventAttributes(), OrderingKey: m.EventOrderingKey(),
		UniqueKey: "pubsub " + shortkey.Of(m.Delivery(), maxMessageKey), UniqueFor: max(t.retained, leastRetained)}
}

func (t *taker) acknowledge(ctx context.Context, messages []*pubsubpb.ReceivedMessage) error {
	// Also in a program that stops: the events are committed.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), acknowledgingTakes)
	defer cancel()
	err := t.client.Acknowledge(ctx, &pubsubpb.AcknowledgeRequest{Subscription: t.config.Subscription, AckIds: ackIDs(messages)})
	if err != nil {
		return t.explain("acknowledge messages of "+t.config.Subscription+", which come again and emit nothing", err)
	}
	return nil
}

// setLease has messages come again after so long; 0: at once, which is a failed delivery.
func (t *taker) setLease(ctx context.Context, messages []*pubsubpb.ReceivedMessage, after time.Duration) error {
	err := t.client.ModifyAckDeadline(ctx, &pubsubpb.ModifyAckDeadlineRequest{Subscription: t.config.Subscription,
		AckIds: ackIDs(messages), AckDeadlineSeconds: int32(after / time.Second)})
	if err != nil {
		return t.explain("set the lease of messages of "+t.config.Subscription, err)
	}
	return nil
}

// refuse gives back a message of which no event can be made, and returns the others. If the subscription orders messages, those
// behind it of its ordering key are given back with it, and come again after it; but not when it goes to the dead-letter topic now.
func (t *taker) refuse(ctx context.Context, messages []*pubsubpb.ReceivedMessage, index int, reason error) (others []*pubsubpb.ReceivedMessage, err error) {
	message := messages[index]
	key := message.GetMessage().GetOrderingKey()
	holdsUp := t.ordered && key != "" && message.GetDeliveryAttempt() < t.attempts
	back := []*pubsubpb.ReceivedMessage{message}
	others = slices.Clone(messages[:index])
	for _, m := range messages[index+1:] {
		if holdsUp && m.GetMessage().GetOrderingKey() == key {
			back = append(back, m)
		} else {
			others = append(others, m)
		}
	}
	t.refusals.Write("", func() {
		t.log.Warn("no event can be made of a message; it goes back to its subscription, and from there to the dead-letter topic in the end",
			zap.String("message_id", message.GetMessage().GetMessageId()), zap.Int32("delivery_attempt", message.GetDeliveryAttempt()),
			zap.Int("held_up", len(back)-1), zap.String("error", short(reason.Error())))
	}, func(lines int) {
		t.log.Warn("further messages of which no event can be made were left out of the log", zap.Int(logkey.Count, lines), zap.Duration(logkey.Duration, intake.LogWindow))
	})
	return others, t.setLease(ctx, back, 0)
}

func ackIDs(messages []*pubsubpb.ReceivedMessage) []string {
	ids := make([]string, len(messages))
	for i, m := range messages {
		ids[i] = m.GetAckId()
	}
	return ids
}
