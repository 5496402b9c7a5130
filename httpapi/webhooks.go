package httpapi

import (
	"context"

	"github.com/danielgtaylor/huma/v2"

	"eventsv2/access"
	"eventsv2/internal/view"
	"eventsv2/webhook/received"
)

// addWebhooks needs the right to read all canvases: sources receive for all.
func (a *api) addWebhooks() {
	get(a, "/webhooks", "list-webhooks", "The sources of webhooks, with what they received and refused in the last day", func(ctx context.Context, _ *struct{}) (*answer[view.Page[view.Source]], error) {
		if !callerOf(ctx).MayEverywhere(access.Read) {
			return nil, huma.Error403Forbidden("your token lacks the verb read on all canvases, for which sources of webhooks receive")
		}
		found, err := received.NewReader(a.Store.Schema(), a.Store.Pool()).Sources(ctx)
		if err != nil {
			return nil, a.failed("webhooks", err)
		}
		return list(view.ListOf(found, view.SourceOf)), nil
	})
}
