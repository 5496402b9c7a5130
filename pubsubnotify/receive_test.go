package pubsubnotify

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"cloud.google.com/go/pubsub/v2/pstest"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"eventsv2/eventqueue"
)

func TestUndecodableMessageStopsNoOther(t *testing.T) {
	t.Parallel()
	server := fakeServer(t)
	core, logs := observer.New(zapcore.WarnLevel)
	config := fakeConfig(server)
	config.Logger = zap.New(core)
	n := open(t, config)
	ctx := testContext(t)

	poison := server.Publish(n.topic, []byte("ring"+strings.Repeat("\x00", 200)), nil)
	if err := n.Publish(ctx, []eventqueue.Notification{notification(1), notification(2)}); err != nil {
		t.Fatalf("Publish = %v, want nil", err)
	}
	got := make(map[eventqueue.EventID]bool)
	for len(got) < 2 || n.Undecodable() == 0 {
		deliveries, err := n.Pull(ctx, 10)
		if err != nil {
			t.Fatalf("Pull = %v, want deliveries", err)
		}
		for _, d := range deliveries {
			got[d.Event] = true
		}
	}
	if diff := cmp.Diff(map[eventqueue.EventID]bool{1: true, 2: true}, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if acks := server.Message(poison).Acks; acks != 1 {
		t.Errorf("the undecodable message was acknowledged %d times, want once", acks)
	}
	if count := n.Undecodable(); count != 1 {
		t.Errorf("Undecodable = %d, want 1", count)
	}
	wantPoisonLogged(t, logs, poison)
}

func wantPoisonLogged(t *testing.T, logs *observer.ObservedLogs, messageID string) {
	t.Helper()
	entries := logs.All()
	if len(entries) != 1 {
		t.Fatalf("%d warnings were logged, want 1: %+v", len(entries), entries)
	}
	fields := entries[0].ContextMap()
	data, _ := fields["data"].(string)
	unquoted, err := strconv.Unquote(data)
	if err != nil || len(unquoted) != quotedBytes {
		t.Errorf("logged data %s, want the first %d bytes quoted", data, quotedBytes)
	}
	if fields["message_id"] != messageID || fields["reason"] == nil {
		t.Errorf("logged %v, want message_id %s and a reason", fields, messageID)
	}
}

func TestUndecodablePullIsEmpty(t *testing.T) {
	t.Parallel()
	n := open(t, fakeConfig(fakeServer(t)))
	messages := []*pubsubpb.ReceivedMessage{nil, {AckId: "m1:1"}, {AckId: "m2:1", Message: &pubsubpb.PubsubMessage{Data: []byte("{}")}}}
	if got := n.deliveries(testContext(t), messages); got != nil {
		t.Errorf("deliveries = %+v, want none", got)
	}
	if got := n.Undecodable(); got != 3 {
		t.Errorf("Undecodable = %d, want 3", got)
	}
}

func TestEmptyPullIsNoError(t *testing.T) {
	t.Parallel()
	idle := &reaction{answer: func() (any, error) { return nil, status.Error(codes.DeadlineExceeded, "nothing came") }}
	n := open(t, fakeConfig(fakeServer(t, pstest.ServerReactorOption{FuncName: "Pull", Reactor: idle})))
	for _, armed := range []bool{false, true} { // an empty answer, and a status
		idle.armed.Store(armed)
		if got, err := n.Pull(testContext(t), 1); got != nil || err != nil {
			t.Errorf("Pull = %v, %v when the server has nothing (status: %v), want neither", got, err, armed)
		}
	}
}

func TestNoCallIsRepeated(t *testing.T) {
	t.Parallel()
	down := func() *reaction {
		return &reaction{answer: func() (any, error) { return nil, status.Error(codes.Unavailable, "down") }}
	}
	reactions := map[string]*reaction{"Publish": down(), "Pull": down(), "Acknowledge": down(), "ModifyAckDeadline": down()}
	var options []pstest.ServerReactorOption
	for name, reaction := range reactions {
		options = append(options, pstest.ServerReactorOption{FuncName: name, Reactor: reaction})
	}
	n := open(t, fakeConfig(fakeServer(t, options...)))
	deliveries := []eventqueue.Delivery{{Notification: notification(1), AckID: "m1:1"}}
	ctx := context.Background() // without a deadline, which the library would use up
	for name, call := range map[string]func() error{
		"Publish":           func() error { return n.Publish(ctx, []eventqueue.Notification{notification(1)}) },
		"Pull":              func() error { _, err := n.Pull(ctx, 1); return err },
		"Acknowledge":       func() error { return n.Ack(ctx, deliveries) },
		"ModifyAckDeadline": func() error { return n.Requeue(ctx, deliveries, time.Second) },
	} {
		reactions[name].armed.Store(true)
		if err := call(); status.Code(err) != codes.Unavailable {
			t.Errorf("%s = %v, want the server's error", name, err)
		}
		if calls := reactions[name].calls.Load(); calls != 1 {
			t.Errorf("%s was called %d times, want once", name, calls)
		}
	}
}

func TestEndedContextIsReportedAsSuch(t *testing.T) {
	t.Parallel()
	n := open(t, fakeConfig(fakeServer(t)))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	deliveries := []eventqueue.Delivery{{Notification: notification(1), AckID: "m1:1"}}
	_, pullErr := n.Pull(ctx, 1)
	for name, err := range map[string]error{
		"Publish": n.Publish(ctx, []eventqueue.Notification{notification(1)}),
		"Pull":    pullErr,
		"Ack":     n.Ack(ctx, deliveries),
		"Requeue": n.Requeue(ctx, deliveries, 0),
	} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s = %v, want context.Canceled", name, err)
		}
	}
}

func TestDelaysAreRoundedUp(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]int32{
		-time.Hour: 0, 0: 0, 1: 1, 900 * time.Millisecond: 1, time.Second: 1, time.Second + 1: 2, eventqueue.MaxRequeue: 600,
	} {
		if got := wholeSeconds(d); got != want {
			t.Errorf("wholeSeconds(%v) = %d, want %d", d, got, want)
		}
	}
}

func TestRequestsStayBelowTheLimits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name         string
		count, bytes int
		chunks       []int
	}{
		{"none", 0, 200, nil},
		{"one", 1, 200, []int{1}},
		{"by count", 2001, 200, []int{1000, 1000, 1}},
		{"by size", 1000, 1020, []int{450, 450, 100}},
		{"over-long ones go alone", 2, maxAckBytes + 1, []int{1, 1}},
	} {
		var chunks []int
		err := inChunks(ackIDsOf(c.count, c.bytes), func(chunk []string) error {
			chunks = append(chunks, len(chunk))
			return nil
		})
		if diff := cmp.Diff(c.chunks, chunks); err != nil || diff != "" {
			t.Errorf("%s: error %v, chunks (-want +got):\n%s", c.name, err, diff)
		}
	}
}

func ackIDsOf(count, bytes int) []string {
	ids := make([]string, count)
	for i := range ids {
		ids[i] = strings.Repeat("x", bytes)
	}
	return ids
}
