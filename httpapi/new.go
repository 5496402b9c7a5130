package httpapi

import (
	"errors"
	"math"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"go.uber.org/zap"

	"eventsv2/access"
	"eventsv2/eventqueue/audit"
	"eventsv2/eventqueue/inspect"
	"eventsv2/internal/intake"
)

// New makes the API as a handler, which answers everything below /v1/. It is safe for concurrent use.
func New(config Config) (http.Handler, error) {
	if config.Store == nil || config.Queue == nil || config.Access == nil || config.Bulk == nil {
		return nil, errors.New("httpapi.New: Store, Queue, Bulk and Access must not be nil")
	}
	if config.PerSecond == 0 {
		config.PerSecond = 50
	}
	if config.PerSecond < 0 || math.IsNaN(config.PerSecond) {
		return nil, errors.New("httpapi.New: PerSecond must not be negative")
	}
	if config.MaxBufferedBytes == 0 {
		config.MaxBufferedBytes = 64 << 20
	}
	if config.MaxBufferedBytes < 26<<20 {
		return nil, errors.New("httpapi.New: MaxBufferedBytes must be at least 26 MiB")
	}
	if config.Logger == nil {
		config.Logger = zap.NewNop()
	}
	schema, pool := config.Store.Schema(), config.Store.Pool()
	a := &api{Config: config, reader: inspect.NewIn(schema, pool), audit: audit.NewLog(schema, pool), tokens: access.NewTokens(schema, pool),
		limits:   access.NewLimiter(config.PerSecond, int(math.Ceil(2*config.PerSecond))),
		attempts: access.NewAttempts(), intake: intake.New(config.MaxBufferedBytes), turns: turns{bytes: copiesOfBody * largeBody, of: map[string]*turn{}}}
	mux := http.NewServeMux()
	described := huma.DefaultConfig("Events V2", "1")
	described.OpenAPIPath, described.DocsPath, described.SchemasPath = "/v1/openapi", "", ""
	described.CreateHooks = nil
	described.Transformers = []huma.Transformer{cut}
	described.RejectUnknownQueryParameters = true
	described.Components.SecuritySchemes = map[string]*huma.SecurityScheme{"bearer": {Type: "http", Scheme: "bearer", Description: "A token, or a JWT of an issuer."}}
	described.Security = []map[string][]string{{"bearer": {}}}
	registerEnums(described.Components.Schemas)
	a.huma = humago.New(mux, described)
	a.huma.UseMiddleware(a.takeParameters, a.authenticate)
	a.addReads()
	a.addChanges()
	a.addRules()
	a.addBulk()
	a.addLimits()
	a.addCrons()
	a.addStats()
	a.addTokens()
	a.addWebhooks()
	return a.guarded(known(mux)), nil
}
