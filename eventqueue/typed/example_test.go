package typed_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/memnotify"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/eventqueue/typed"
	"eventsv2/eventqueue/worker"
	"eventsv2/test/testenv"
)

// RecordEvent is what all events of records have, for the handlers of RECORD.
type RecordEvent struct {
	ID string `json:"id"`
}

func (RecordEvent) EventType() string   { return "RECORD" }
func (RecordEvent) EventAction() string { return "" }

// RecordCreated has the handling key RECORD.CREATE.
type RecordCreated struct {
	RecordEvent
	Title string `json:"title"`
}

func (RecordCreated) EventAction() string { return "CREATE" }

// One event and its chain: the synchronous handlers, parent before child, and
// then an event of its own for each of the others.
func ExampleOn() {
	store, notifier := pgstore.New(pool), memnotify.New(memnotify.Config{}) // for a test; a program has service.Open
	queue, err := eventqueue.New(store, notifier, eventqueue.QueueConfig{})
	if err != nil {
		log.Fatal(err)
	}
	bus, err := typed.New(queue, typed.Config{})
	if err != nil {
		log.Fatal(err)
	}
	retries := 5
	handlers := eventqueue.NewHandlers()
	if err := errors.Join(
		typed.On[RecordCreated](bus, "welcome", func(_ context.Context, e RecordCreated, _ *eventqueue.Run) error {
			fmt.Fprintln(out, "welcome,", e.Title)
			return nil
		}, typed.Synchronous()),
		typed.On[RecordEvent](bus, "views", func(_ context.Context, e RecordEvent, run *eventqueue.Run) error {
			fmt.Fprintln(out, "counted", typed.HandlingKey(run.Event), e.ID)
			return nil
		}, typed.Synchronous()),
		typed.On[RecordCreated](bus, "mail", func(_ context.Context, e RecordCreated, run *eventqueue.Run) error {
			if run.Retries == 0 {
				fmt.Fprintln(out, "the mail server is down")
				return errors.New("the mail server is down")
			}
			fmt.Fprintln(out, "mail about", e.Title)
			return nil
		}, typed.WithPolicy(eventqueue.Policy{MaxRetries: &retries, Backoff: eventqueue.Exponential(time.Millisecond, time.Second)})),
		bus.Register(handlers),
	); err != nil {
		log.Fatal(err)
	}

	// As a job: the worker ends when it has had the event, and the mail twice.
	w, err := worker.New(queue, store, notifier, handlers, worker.Config{MaxEvents: 3})
	if err != nil {
		log.Fatal(err)
	}
	tenant := eventqueue.CanvasID{1}
	if _, err := bus.Emit(context.Background(), tenant, RecordCreated{RecordEvent{"17"}, "On Doors"}); err != nil {
		log.Fatal(err)
	}
	if err := w.Run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

// TestExampleOn runs the example.
//
//nolint:paralleltest // It sets what the example uses.
func TestExampleOn(t *testing.T) {
	var printed strings.Builder
	pool, out = testenv.Pool(t), &printed
	t.Cleanup(func() { pool, out = nil, os.Stdout })
	ExampleOn()
	const want = `counted RECORD.CREATE 17
welcome, On Doors
the mail server is down
mail about On Doors
`
	if printed.String() != want {
		t.Errorf("it prints\n%s", &printed)
	}
}

var (
	pool *pgxpool.Pool
	out  io.Writer = os.Stdout

	bus    *typed.Bus
	queue  *eventqueue.Queue
	tenant eventqueue.CanvasID
)

// A unit of work: the record and its event commit together, and the notification
// goes out after the commit.
func ExampleBus_EmitIn() {
	err := queue.InTx(context.Background(), func(ctx context.Context, tx *eventqueue.Tx) error {
		if _, err := tx.Exec(ctx, `INSERT INTO records (id, title) VALUES ($1, $2)`, "17", "On Doors"); err != nil {
			return err
		}
		_, err := bus.EmitIn(ctx, tx, tenant, RecordCreated{RecordEvent{"17"}, "On Doors"})
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
}

// The same in a transaction that is yours. Without Notify the relay publishes.
func ExampleBus_EmitTx() {
	create := func(ctx context.Context, tx pgx.Tx) error {
		pending, err := bus.EmitTx(ctx, tx, tenant, RecordCreated{RecordEvent{"17"}, "On Doors"})
		if err != nil {
			return err
		}
		if err := tx.Commit(ctx); err != nil {
			return err
		}
		return pending.Notify(ctx)
	}
	_ = create
}

// An event in an hour: NewEvent encodes it for every form of emit.
func ExampleBus_NewEvent() {
	event, err := bus.NewEvent(tenant, RecordCreated{RecordEvent{"17"}, "On Doors"})
	if err != nil {
		log.Fatal(err)
	}
	event.Delay = time.Hour
	if _, err := queue.Emit(context.Background(), event); err != nil {
		log.Fatal(err)
	}
}
