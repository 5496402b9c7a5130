package cleanup_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/cleanup"
	"eventsv2/eventqueue"
)

var (
	pool  *pgxpool.Pool
	slack chat
)

// chat is a client of a chat service.
type chat interface {
	// Post returns the message's id, which names its channel too. A message carries
	// metadata.
	Post(ctx context.Context, channel, text, metadata string) (id string, err error)
	// Search returns the id of the message with the metadata, or "".
	Search(ctx context.Context, channel, metadata string, since time.Time) (id string, err error)
	// Delete deletes a message; one that is gone already is no error.
	Delete(ctx context.Context, id string) error
}

// settings configure the handler:
//
//	cleanup:
//	  key: todo_list
//	  ttl: replace
//	  inputs: [target, channel]
type settings struct {
	Cleanup cleanup.Config `yaml:"cleanup"`
}

// A handler that sends a report to a channel, and deletes the one before.
func Example() {
	publications := cleanup.NewPublications(pool)
	var config settings
	report := func(ctx context.Context, run *eventqueue.Run) error {
		var in struct{ Target, Channel, Text string }
		if err := json.Unmarshal(run.Value, &in); err != nil {
			return eventqueue.Permanent(err)
		}
		key, err := cleanup.NewKey(run.Canvas, "slack", config.Cleanup, map[string]any{
			"target": in.Target, "channel": in.Channel, "text": in.Text,
		})
		if err != nil {
			return eventqueue.Permanent(err) // such as: there is no input "chanel"
		}
		result, err := publications.Publish(ctx, run, cleanup.Publication{
			Key: key,
			TTL: config.Cleanup.TTL,
			Send: func(ctx context.Context, intent cleanup.Intent) ([]byte, error) {
				id, err := slack.Post(ctx, in.Channel, in.Text, intent.Token)
				return []byte(id), err
			},
			Find: func(ctx context.Context, intent cleanup.Intent) ([]byte, bool, error) {
				id, err := slack.Search(ctx, in.Channel, intent.Token, intent.Begun)
				return []byte(id), id != "", err
			},
			Delete: func(ctx context.Context, c cleanup.Cleanup) error {
				return slack.Delete(ctx, string(c.Data))
			},
		})
		for _, failed := range result.Failed {
			log.Printf("message %s stays: %v", failed.Cleanup.Data, failed.Err)
		}
		return err
	}
	_ = eventqueue.HandlerFunc(report)
}

func ExampleParseTTL() {
	for _, text := range []string{"3d12h", "90m", "replace", "12h3d"} {
		ttl, err := cleanup.ParseTTL(text)
		fmt.Println(ttl, err)
	}
	// Output:
	// 3d12h <nil>
	// 1h30m <nil>
	// replace <nil>
	// replace ttl "12h3d": d stands after h: write the largest unit first, and each once
}
