package eventqueue_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os/signal"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/zap"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/inspect"
	"eventsv2/eventqueue/maintenance"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/eventqueue/worker"
	"eventsv2/pubsubnotify"
)

// What package service puts together, for a program that puts it together itself: a
// pool, a notifier, a queue, a worker. The relay is another program's here.
func Example_pieces() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := pieces(ctx); err != nil {
		log.Print(err)
	}
}

func pieces(ctx context.Context) error {
	pool, err := pgstore.Open(ctx, "postgres://localhost/app", "app", 0)
	if err != nil {
		return err
	}
	defer pool.Close()
	notifier, err := pubsubnotify.New(ctx, pubsubnotify.Config{
		ProjectID: "my-project", Topic: "events-v2", Subscription: "events-v2-workers",
	})
	if err != nil {
		return err
	}
	defer func() { _ = notifier.Close() }()
	store := pgstore.New(pool)
	queue, err := eventqueue.New(store, notifier, eventqueue.QueueConfig{})
	if err != nil {
		return err
	}

	handlers := eventqueue.NewHandlers()
	greet := eventqueue.HandlerKey{Module: "WORKER", Name: "greet", Modifier: "_"}
	if err := handlers.Register(greet, eventqueue.HandlerFunc(func(_ context.Context, run *eventqueue.Run) error {
		fmt.Println("hello", string(run.Value))
		return nil
	}), eventqueue.Policy{}); err != nil {
		return err
	}
	w, err := worker.New(queue, store, notifier, handlers, worker.Config{Logger: zap.Must(zap.NewProduction())})
	if err != nil {
		return err
	}
	return w.Run(ctx) // until SIGTERM
}

var (
	store    *pgstore.Store
	queue    *eventqueue.Queue
	tenant   eventqueue.CanvasID
	handlers *eventqueue.Handlers
)

// One event, due in five minutes by the database's clock.
func ExampleQueue_Emit() {
	id, err := queue.Emit(context.Background(), eventqueue.NewEvent{
		Canvas: tenant, Module: "WORKER", Name: "remind", Modifier: "_",
		Value: json.RawMessage(`{"cart": 17}`),
		Delay: 5 * time.Minute,
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("accepted as", id)
}

// An event that is wanted once, however often it is emitted: while the first is
// queued, and for a day after its end, its id is returned.
func ExampleQueue_EmitUnique() {
	emitted, err := queue.EmitUnique(context.Background(), eventqueue.NewEvent{
		Canvas: tenant, Module: "WORKER", Name: "send_invoice", Modifier: "_", Value: json.RawMessage(`{"invoice": 7}`),
		UniqueKey: "invoice 7",
		UniqueFor: 24 * time.Hour,
	})
	if err != nil {
		log.Fatal(err)
	}
	if !emitted[0].New {
		fmt.Println("was emitted before, as", emitted[0].ID)
	}
}

// A unit of work: the order and its events commit together, and the
// notifications go out after the commit.
func ExampleQueue_InTx() {
	err := queue.InTx(context.Background(), func(ctx context.Context, tx *eventqueue.Tx) error {
		if _, err := tx.Exec(ctx, `INSERT INTO orders (cart) VALUES ($1)`, 17); err != nil {
			return err
		}
		_, err := tx.Emit(ctx, eventqueue.NewEvent{
			Canvas: tenant, Module: "WORKER", Name: "order_placed", Modifier: "_", Value: json.RawMessage(`{"cart": 17}`),
		})
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
}

// The same in a transaction that is yours. Without Notify the relay publishes.
func ExampleQueue_EmitTx() {
	place := func(ctx context.Context, tx pgx.Tx) error {
		pending, err := queue.EmitTx(ctx, tx, eventqueue.NewEvent{
			Canvas: tenant, Module: "WORKER", Name: "order_placed", Modifier: "_", Value: json.RawMessage(`{"cart": 17}`),
		})
		if err != nil {
			return err
		}
		if err := tx.Commit(ctx); err != nil {
			return err
		}
		return pending.Notify(ctx)
	}
	_ = place
}

var (
	errUnknownCustomer = errors.New("unknown customer")
	errMaintenance     = errors.New("the card processor is closed for maintenance")
)

// What a handler can answer.
func ExampleHandlers_Register() {
	charge := func(ctx context.Context, run *eventqueue.Run) error {
		var order struct{ Customer string }
		if err := json.Unmarshal(run.Value, &order); err != nil {
			return eventqueue.Permanent(err) // no retry can help: FAILED
		}
		switch err := chargeCard(ctx, order.Customer); {
		case errors.Is(err, errUnknownCustomer):
			return eventqueue.Permanent(err)
		case errors.Is(err, errMaintenance):
			return eventqueue.Snooze(time.Minute) // later, without using an attempt
		default:
			return err // nil completes; anything else, a time-out too, is a failed attempt and retried
		}
	}
	retries := 5
	err := handlers.Register(eventqueue.HandlerKey{Module: "WORKER", Name: "charge", Modifier: "_"},
		eventqueue.HandlerFunc(charge),
		eventqueue.Policy{Timeout: 30 * time.Second, MaxRetries: &retries, Backoff: eventqueue.Exponential(time.Second, time.Minute)})
	if err != nil {
		log.Fatal(err)
	}
}

// chargeCard is replaced by a test.
var chargeCard = func(context.Context, string) error { return nil }

// A handler whose writes, follow-up events and completion commit together:
// exactly once, whatever dies when.
func ExampleRun_CompleteTx() {
	ship := func(ctx context.Context, run *eventqueue.Run) error {
		return run.CompleteTx(ctx, func(ctx context.Context, tx *eventqueue.Tx) error {
			if _, err := tx.Exec(ctx, `UPDATE orders SET shipped = true WHERE id = $1`, string(run.Value)); err != nil {
				return err
			}
			_, err := tx.Emit(ctx, eventqueue.NewEvent{
				Canvas: run.Canvas, Module: "WORKER", Name: "shipped", Modifier: "_", Value: run.Value,
			})
			return err
		})
	}
	if err := handlers.Register(eventqueue.HandlerKey{Module: "WORKER", Name: "ship", Modifier: "_"},
		eventqueue.HandlerFunc(ship), eventqueue.Policy{}); err != nil {
		log.Fatal(err)
	}
}

// What an operator's page would do about the events of a tenant that do not get on.
func ExampleChanger() {
	if err := unstick(context.Background()); err != nil {
		log.Print(err)
	}
}

func unstick(ctx context.Context) error {
	long := inspect.StuckAfter{Unclaimed: 5 * time.Minute, Attempts: 10}
	stuck, err := inspect.New(store.Pool()).Stuck(ctx, inspect.Filter{Canvas: &tenant}, long, 0, 100)
	if err != nil {
		return err
	}
	requeuer, err := operate.NewChanger(store, queue)
	if err != nil {
		return err
	}
	for _, event := range stuck {
		results, err := requeuer.Requeue(ctx, event.ID)
		if err != nil {
			return err
		}
		fmt.Println(event.ID, event.Reasons, results[0].Result) // 17 [expired] requeued
	}
	return nil
}

// History that is deleted by its age, in a program that has no cron process
// beside it.
func ExamplePruner() {
	if err := prune(context.Background(), store); err != nil {
		log.Print(err)
	}
}

func prune(ctx context.Context, store *pgstore.Store) error {
	pruner, err := maintenance.NewPruner(store, maintenance.PrunerConfig{
		CompletedFor: 3 * 24 * time.Hour,
		FailedFor:    90 * 24 * time.Hour,
	})
	if err != nil {
		return err
	}
	return pruner.Run(ctx) // until ctx ends
}
