package webhook_test

import (
	"context"
	"encoding/json"
	"log"
	"net/http"
	"os"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/webhook"
)

var queue *eventqueue.Queue

// Two sources: GitHub, whose pushes and issues become events, and a service of
// one's own with a function.
func Example() {
	github, err := webhook.GitHub(os.Getenv("GITHUB_SECRET"), os.Getenv("GITHUB_SECRET_BEFORE"))
	if err != nil {
		log.Fatal(err)
	}
	handler, err := webhook.New(queue, webhook.Config{Sources: []webhook.Source{
		{
			Name:     "github",
			Verifier: github,
			Cast: webhook.ByType(map[string]webhook.Caster{
				"push":   webhook.ToHandler(eventqueue.HandlerKey{Module: "WORKER", Name: "build", Modifier: "_"}),
				"issues": webhook.ToHandler(eventqueue.HandlerKey{Module: "WORKER", Name: "refetch_issue", Modifier: "_"}),
			}),
		},
		{
			Name: "shop",
			Verifier: webhook.VerifierFunc(func(r *webhook.Request) (webhook.Verified, error) {
				return verifyShop(r.Header, r.Body)
			}),
			Cast: func(_ context.Context, r *webhook.Request) ([]eventqueue.NewEvent, error) {
				var order struct{ Items []json.RawMessage }
				if err := json.Unmarshal(r.Body, &order); err != nil {
					return nil, webhook.ErrUnusable
				}
				var events []eventqueue.NewEvent // none: the request is ignored
				for _, item := range order.Items {
					events = append(events, eventqueue.NewEvent{Module: "WORKER", Name: "ship", Modifier: "_", Value: item})
				}
				return events, nil
			},
		},
	}})
	if err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/webhooks/", handler)
	server := &http.Server{Addr: ":8080", Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	log.Print(server.ListenAndServe())
}

func verifyShop(http.Header, []byte) (webhook.Verified, error) {
	return webhook.Verified{Delivery: "17"}, nil
}
