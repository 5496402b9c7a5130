package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/webhook"
	"eventsv2/webhook/received"
)

// Source is a source of webhooks with what it has received.
type Source struct {
	Name       string                    `json:"name"`
	Canvas     *eventqueue.CanvasID      `json:"canvas_id,omitempty" format:"uuid" doc:"Absent: every canvas."`
	Scheme     string                    `json:"scheme,omitempty" doc:"How requests are verified. Absent: by a verifier of the program's own."`
	ServedAt   time.Time                 `json:"served_at" doc:"When a program that serves it last reported it."`
	ReceivedAt *time.Time                `json:"received_at,omitempty" doc:"When a request last came. Absent: none has."`
	Hour       map[webhook.Outcome]int64 `json:"hour" doc:"How many requests came in the last hour, by what became of them, such as accepted, duplicate or bad signature."`
	Day        map[webhook.Outcome]int64 `json:"day" doc:"As hour, of the last day."`
	Refusals   []received.Refusal        `json:"refusals" nullable:"false" doc:"Some of those that were refused, the newest first."`

	AsOf time.Time `json:"-"`
}

// SourceOf is a source of webhooks.
func SourceOf(s received.Source) Source {
	return Source{s.Name, canvasOrAll(s.Canvas), s.Scheme, s.ServedAt.UTC(), utc(s.ReceivedAt), s.Hour, s.Day,
		All(s.Refusals, func(r received.Refusal) received.Refusal { r.At = r.At.UTC(); return r }), s.AsOf}
}

// canvasOrAll is a canvas, or nil for all of them.
func canvasOrAll(canvas eventqueue.CanvasID) *eventqueue.CanvasID {
	if canvas == (eventqueue.CanvasID{}) {
		return nil
	}
	return &canvas
}

// Requests is how many requests came, whatever became of them.
func Requests(of map[webhook.Outcome]int64) int64 {
	return received.Sum(of, false) + received.Sum(of, true)
}

// Refused is how many requests were refused.
func Refused(of map[webhook.Outcome]int64) int64 { return received.Sum(of, true) }

// Received is how long ago a request last came; "" for never.
func (s Source) Received() string { return when(s.ReceivedAt, s.AsOf) }

// RefusedRequests are requests that were refused for one reason.
type RefusedRequests struct {
	Outcome   webhook.Outcome
	Hour, Day int64
}

// RefusedFor are the reasons for which requests of the last day were refused, the most frequent first.
func (s Source) RefusedFor() (reasons []RefusedRequests) {
	for outcome, n := range s.Day {
		if outcome.Refused() {
			reasons = append(reasons, RefusedRequests{outcome, s.Hour[outcome], n})
		}
	}
	slices.SortFunc(reasons, func(a, b RefusedRequests) int {
		return cmp.Or(cmp.Compare(b.Day, a.Day), cmp.Compare(a.Outcome, b.Outcome))
	})
	return reasons
}

// RefusedText is RefusedFor in a line.
func (s Source) RefusedText() string {
	return strings.Join(All(s.RefusedFor(), func(r RefusedRequests) string { return fmt.Sprintf("%d %s", r.Day, r.Outcome) }), ", ")
}
