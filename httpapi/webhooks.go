package httpapi

import (
	"context"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"eventsv2/access"
	"eventsv2/eventqueue"
	"eventsv2/webhook"
	"eventsv2/webhook/received"
)

// sourceItem is a source of webhooks with what it has received.
type sourceItem struct {
	Name       string           `json:"name"`
	Canvas     string           `json:"canvas_id,omitempty" format:"uuid" doc:"Absent: every canvas."`
	Scheme     string           `json:"scheme,omitempty" doc:"How requests are verified. Absent: by a verifier of the program's own."`
	ServedAt   time.Time        `json:"served_at" doc:"When a program that serves it last reported it."`
	ReceivedAt *time.Time       `json:"received_at,omitempty" doc:"When a request last came. Absent: none has."`
	Hour       map[string]int64 `json:"hour" doc:"How many requests came in the last hour, by what became of them, such as accepted, duplicate or bad signature."`
	Day        map[string]int64 `json:"day" doc:"As hour, of the last day."`
	Refusals   []sourceRefusal  `json:"refusals" nullable:"false" doc:"Some of those that were refused, the newest first."`
}

type sourceRefusal struct {
	At      time.Time `json:"at"`
	Outcome string    `json:"outcome"`
	Reason  string    `json:"reason"`
}

func sourceItemOf(s received.Source) sourceItem {
	item := sourceItem{Name: s.Name, Scheme: s.Scheme, ServedAt: s.ServedAt.UTC(), Hour: requestsOf(s.Hour), Day: requestsOf(s.Day), Refusals: []sourceRefusal{}}
	if s.Canvas != (eventqueue.CanvasID{}) {
		item.Canvas = s.Canvas.String()
	}
	if s.ReceivedAt != nil {
		item.ReceivedAt = optionalTime(*s.ReceivedAt)
	}
	for _, r := range s.Refusals {
		item.Refusals = append(item.Refusals, sourceRefusal{r.At.UTC(), string(r.Outcome), r.Reason})
	}
	return item
}

func requestsOf(requests map[webhook.Outcome]int64) map[string]int64 {
	named := make(map[string]int64, len(requests))
	for outcome, n := range requests {
		named[string(outcome)] = n
	}
	return named
}

// addWebhooks needs the right to read all canvases: sources receive for all.
func (a *api) addWebhooks() {
	get(a, "/webhooks", "list-webhooks", "The sources of webhooks, with what they received and refused in the last day", func(ctx context.Context, _ *struct{}) (*answer[page[sourceItem]], error) {
		if !callerOf(ctx).MayEverywhere(access.Read) {
			return nil, huma.Error403Forbidden("your token lacks the verb read on all canvases, for which sources of webhooks receive")
		}
		found, err := received.NewReader(a.Store.Schema(), a.Store.Pool()).Sources(ctx)
		if err != nil {
			return nil, a.failed("webhooks", err)
		}
		return pageOfAll(found, sourceItemOf), nil
	})
}
