package httpapi_test

import (
	"context"
	"log"
	"net/http"
	"os"

	"go.uber.org/zap"

	"eventsv2/access"
	"eventsv2/dashboard"
	"eventsv2/eventqueue/operate"
	"eventsv2/httpapi"
	"eventsv2/service"
)

// A program that embeds the queue, and serves the API and the dashboard on a server of its own.
func ExampleNew() {
	ctx := context.Background()
	s, err := service.Open(ctx, service.Config{DatabaseURL: os.Getenv("DATABASE_URL")})
	if err != nil {
		log.Fatal(err)
	}
	if err := mount(s, http.DefaultServeMux); err != nil {
		log.Fatal(err)
	}
	// … register handlers, serve, and s.Run(ctx)
}

// mount serves the API below /v1/ and the dashboard below /admin/events/, to holders of tokens.
func mount(s *service.Service, mux *http.ServeMux) error {
	who := &access.Authenticator{Tokens: access.NewTokens(s.Store().Schema(), s.Pool())}
	operations, err := operate.NewOperations(s.Store(), s.Queue, zap.L())
	if err != nil {
		return err
	}
	s.AddPart("bulk operations", operations.Run) // has s.Run work on changes of many events
	api, err := httpapi.New(httpapi.Config{Store: s.Store(), Queue: s.Queue, Bulk: operations, Access: who})
	if err != nil {
		return err
	}
	pages, err := dashboard.New(dashboard.Config{Store: s.Store(), Queue: s.Queue, Bulk: operations, Access: who,
		Prefix: "/admin/events"})
	if err != nil {
		return err
	}
	mux.Handle("/v1/", api)
	mux.Handle("/admin/events/", pages)
	return nil
}
