package view

import (
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/inspect"
)

// Page is a list, or a part of one.
type Page[T any] struct {
	Items []T   `json:"items" nullable:"false"`
	Next  int64 `json:"next,omitempty" doc:"Of further items: after of the next request. Absent at the end."`
}

// HistoryPage is a part of the list of events that have ended.
type HistoryPage struct {
	Items []Event `json:"items" nullable:"false"`
	Next  string  `json:"next,omitempty" doc:"Of further items: after of the next request. Absent at the end."`
}

// HistoryPageOf makes a page of what was found, after which the list goes on at a place.
func HistoryPageOf(found []inspect.LogEntry, next inspect.LogPlace) HistoryPage {
	return HistoryPage{All(found, EndedEventOf), next.String()}
}

// FailureGroup is failed events of a handler whose errors differ in numbers only.
type FailureGroup struct {
	Canvas     eventqueue.CanvasID `json:"canvas_id" format:"uuid"`
	Module     string              `json:"module"`
	Name       string              `json:"name"`
	ErrorGroup string              `json:"error_group" doc:"The beginning of the error, with # for each number and UUID. As error_group of a filter, with the handler, it selects exactly these events."`
	Count      int64               `json:"count"`
	Newest     eventqueue.EventID  `json:"newest_id" doc:"The event that failed last."`
	NewestAt   time.Time           `json:"newest_at"`
}

// FailureGroups are the groups of what failed, the largest first.
type FailureGroups struct {
	Items   []FailureGroup `json:"items" nullable:"false"`
	More    int            `json:"more" doc:"How many smaller groups there are."`
	Events  int64          `json:"events" doc:"How many events all groups have."`
	Bounded bool           `json:"bounded" doc:"There are more failed events than are grouped: the groups are of the 100,000 that failed last."`
}

// FailureGroupsOf are groups of failed events.
func FailureGroupsOf(found inspect.FailureGroups) FailureGroups {
	groupOf := func(g inspect.FailureGroup) FailureGroup {
		return FailureGroup{g.Canvas, g.Module, g.Name, g.ErrorGroup, g.Count, g.Newest, g.NewestAt.UTC()}
	}
	return FailureGroups{All(found.Groups, groupOf), found.More, found.Events, found.Bounded}
}

// PageOf makes a page of what was found. The list goes on after next; 0 is its end.
func PageOf[F, T any, N ~int64](found []F, next N, of func(F) T) Page[T] {
	return Page[T]{All(found, of), int64(next)}
}

// ListOf makes the only page of a list.
func ListOf[F, T any](found []F, of func(F) T) Page[T] { return Page[T]{Items: All(found, of)} }

// FullPageOf makes a page of a list that goes on after its last item if there are as many as were asked for.
func FullPageOf[F, T any, N ~int64](found []F, limit int, of func(F) T, id func(T) N) Page[T] {
	page := ListOf(found, of)
	if len(found) == limit {
		page.Next = int64(id(page.Items[limit-1]))
	}
	return page
}

// All makes the items of a list. It never returns nil, which JSON would have as null.
func All[F, T any](found []F, of func(F) T) []T {
	items := make([]T, 0, len(found))
	for _, f := range found {
		items = append(items, of(f))
	}
	return items
}
