package service_test

import (
	"testing"

	"go.uber.org/zap"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/pgnotify"
	"eventsv2/internal/service"
	"eventsv2/test/testenv"
)

// TestTheDoorbellOnPostgresNeedsNothingElse opens a program's resources with no
// variable of Pub/Sub set.
func TestTheDoorbellOnPostgresNeedsNothingElse(t *testing.T) {
	t.Parallel()
	ctx := testenv.Context(t)
	config, err := service.Load(map[string]string{"DATABASE_URL": testenv.DatabaseURL(t), "NOTIFIER": "postgres"})
	if err != nil {
		t.Fatal(err)
	}
	resources, err := service.Open(ctx, config, "eventsv2-test", zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := resources.Close(); err != nil {
			t.Error(err)
		}
	}()
	if err := resources.Ready(ctx); err != nil {
		t.Errorf("Ready = %v", err)
	}
	receiver, err := resources.Receiver(config, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := receiver.(*pgnotify.Notifier); !ok {
		t.Errorf("workers pull from a %T", receiver)
	}
	id, err := resources.Queue.Emit(ctx, eventqueue.NewEvent{Canvas: eventqueue.CanvasID{1}, Module: "M", Name: "n", Modifier: "_", Value: []byte(`1`)})
	if err != nil {
		t.Fatal(err)
	}
	deliveries, err := receiver.Pull(ctx, 10)
	if err != nil || len(deliveries) != 1 || deliveries[0].Event != id {
		t.Errorf("pulled %+v, %v, want event %v", deliveries, err, id)
	}
	if _, err := resources.Pool.Exec(ctx, `DROP TABLE notifications`); err != nil {
		t.Fatal(err)
	}
	if resources.Ready(ctx) == nil {
		t.Error("Ready = nil without the table of the doorbell")
	}
	if err := receiver.Ack(ctx, deliveries); err != nil { // nothing is left to give back
		t.Error(err)
	}
}
