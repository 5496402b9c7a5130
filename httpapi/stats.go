package httpapi

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"eventsv2/access"
	"eventsv2/eventqueue"
	"eventsv2/eventqueue/inspect"
	"eventsv2/eventqueue/minutes"
)

// counts are those of one handler in a minute, an hour or another time.
type counts struct {
	Begins           time.Time `json:"begins"`
	Module           string    `json:"module"`
	Name             string    `json:"name"`
	Emitted          int64     `json:"emitted"`
	Completed        int64     `json:"completed"`
	Failed           int64     `json:"failed"`
	Retried          int64     `json:"retried"`
	Cancelled        int64     `json:"cancelled"`
	WaitP50          *float64  `json:"wait_p50_seconds,omitempty" doc:"From due to start. Absent without any run, as the next three."`
	WaitP99          *float64  `json:"wait_p99_seconds,omitempty"`
	RunP50           *float64  `json:"run_p50_seconds,omitempty"`
	RunP99           *float64  `json:"run_p99_seconds,omitempty"`
	Pending          *int64    `json:"pending,omitempty" doc:"Events that had not ended at its end. Absent: there were none, or nobody has counted them."`
	OldestDueSeconds *float64  `json:"oldest_due_seconds,omitempty" doc:"For how long the oldest due event that no worker ran had been due."`
}

// countsPage has all counts of some handlers.
type countsPage struct {
	Items []counts `json:"items" nullable:"false" doc:"By time, module and name. All counts of a handler are on one page."`
	Next  string   `json:"next,omitempty" doc:"Of further handlers: after of the next request. Absent at the end."`
}

// afterHandler is a handler as text that means something to handlerAfter only.
func afterHandler(last eventqueue.Scope) string {
	text, _ := json.Marshal([2]string{last.Module, last.Name}) // of texts it cannot fail
	return base64.RawURLEncoding.EncodeToString(text)
}

// handlerAfter reads it; of an empty one, no handler comes before the page.
func handlerAfter(after string) (scope eventqueue.Scope, err error) {
	if after == "" {
		return scope, nil
	}
	var key [2]string
	text, err := base64.RawURLEncoding.DecodeString(after)
	if err == nil {
		err = json.Unmarshal(text, &key)
	}
	if err != nil || strings.ContainsRune(key[0]+key[1], 0) {
		return scope, huma.Error422UnprocessableEntity("after: it is next of the page before, and of the same request")
	}
	return eventqueue.Scope{Module: key[0], Name: key[1]}, nil
}

func countsOf(m inspect.Minute) counts {
	c := counts{Begins: m.Begins.UTC(), Module: m.Module, Name: m.Name, Emitted: m.Emitted, Completed: m.Completed, Failed: m.Failed, Retried: m.Retried, Cancelled: m.Cancelled,
		WaitP50: quantile(m.Wait, 0.5), WaitP99: quantile(m.Wait, 0.99), RunP50: quantile(m.Run, 0.5), RunP99: quantile(m.Run, 0.99), Pending: m.Pending}
	if m.OldestDue != nil {
		c.OldestDueSeconds = new(m.OldestDue.Seconds())
	}
	return c
}

func quantile(h minutes.Histogram, q float64) *float64 {
	if h.Count() == 0 {
		return nil
	}
	return new(h.Quantile(q).Seconds())
}

// What bounds the rows of stats.
const (
	maxMinutes = 24 * time.Hour
	maxHours   = 31 * 24 * time.Hour
)

func (a *api) addStats() {
	get(a, "/stats", "get-stats", "What was counted, by handler and minute, hour or in all", func(ctx context.Context, in *struct {
		CanvasInput
		Module       string `query:"module" maxLength:"255"`
		Name         string `query:"name" maxLength:"255"`
		SinceSeconds int64  `query:"since_seconds" minimum:"60" maximum:"2678400" default:"3600" doc:"Of minutes, and of the sum of them, at most a day."`
		Per          string `query:"per" enum:"minute,hour,all" default:"minute" doc:"all: the sum of the minutes of each handler."`
		After        string `query:"after" maxLength:"2048" doc:"next of the page before."`
	}) (*answer[countsPage], error) {
		canvas, err := canvasFor(ctx, access.Read, in.Canvas)
		if err != nil {
			return nil, err
		}
		since, resolution := time.Duration(in.SinceSeconds)*time.Second, inspect.PerMinute
		if in.Per == "hour" {
			resolution = inspect.PerHour
		} else if since > maxMinutes {
			return nil, huma.Error422UnprocessableEntity("since_seconds: of minutes it is at most 86400: ask for hours with per=hour")
		}
		after, err := handlerAfter(in.After)
		if err != nil {
			return nil, err
		}
		filter := inspect.Filter{Canvas: &canvas, Module: in.Module, Name: in.Name}
		found, last, err := a.reader.MinutesPage(ctx, filter, min(since, maxHours), resolution, after)
		if err != nil {
			return nil, a.failed("stats", err)
		}
		if in.Per == "all" {
			found = inspect.SumMinutes(found)
		}
		answered := countsPage{Items: pageOfAll(found, countsOf).Body.Items}
		if last != nil {
			answered.Next = afterHandler(*last)
		}
		return &answer[countsPage]{answered}, nil
	})
	get(a, "/workers", "list-workers", "The workers that run, and those that ended less than a day ago", a.listWorkers)
	get(a, "/events/{id}/tree", "get-tree", "An event with its ancestors and all that descends from them", a.tree)
}

type workerHandler struct {
	Canvas   string `json:"canvas_id,omitempty" format:"uuid" doc:"Absent: every canvas."`
	Module   string `json:"module"`
	Name     string `json:"name"`
	Modifier string `json:"modifier"`
}

type workerItem struct {
	Number    int64           `json:"number"`
	State     string          `json:"state" enum:"live,stopped,dead"`
	Host      string          `json:"host"`
	PID       int             `json:"pid"`
	Version   string          `json:"version"`
	StartedAt time.Time       `json:"started_at"`
	StoppedAt *time.Time      `json:"stopped_at,omitempty"`
	Slots     *workerSlots    `json:"slots,omitempty" doc:"How the worker is occupied, as of its last heartbeat with something in hand; absent: unknown."`
	Handlers  []workerHandler `json:"handlers" nullable:"false"`
	// Unreadable means that the row lists others, which no worker writes so.
	Unreadable bool `json:"handlers_unreadable,omitempty" doc:"The row of the worker lists others, which cannot be read."`
}

type workerSlots struct {
	Of          int        `json:"of" doc:"How many events it may hold."`
	Busy        int        `json:"busy" doc:"How many it holds."`
	Hung        int        `json:"hung" doc:"Of how many the handlers have not returned though their time is over; those that were given up hold no slot."`
	OldestSince *time.Time `json:"oldest_since,omitempty"`
}

func workerSlotsOf(s inspect.WorkerSlots) *workerSlots {
	if s.Of == 0 {
		return nil
	}
	slots := &workerSlots{Of: s.Of, Busy: s.Busy, Hung: s.Hung}
	if s.OldestSince != nil {
		slots.OldestSince = new(s.OldestSince.UTC())
	}
	return slots
}

// listWorkers needs the right to read all canvases: workers run the events of all.
func (a *api) listWorkers(ctx context.Context, _ *struct{}) (*answer[page[workerItem]], error) {
	if !callerOf(ctx).MayEverywhere(access.Read) {
		return nil, huma.Error403Forbidden("your token lacks the verb read on all canvases, whose events the workers run")
	}
	found, err := a.reader.Workers(ctx)
	if err != nil {
		return nil, a.failed("workers", err)
	}
	return pageOfAll(found, func(w inspect.Worker) workerItem {
		item := workerItem{Number: int64(w.Number), State: string(w.State), Host: w.Host, PID: w.PID, Version: w.Version, StartedAt: w.StartedAt.UTC(), Slots: workerSlotsOf(w.Slots), Handlers: []workerHandler{}, Unreadable: w.Unreadable}
		if w.StoppedAt != nil {
			item.StoppedAt = new(w.StoppedAt.UTC())
		}
		for _, key := range w.Handlers.Everywhere {
			item.Handlers = append(item.Handlers, workerHandler{"", key.Module, key.Name, key.Modifier})
		}
		for _, h := range w.Handlers.OnCanvas {
			item.Handlers = append(item.Handlers, workerHandler{h.Canvas.String(), h.Key.Module, h.Key.Name, h.Key.Modifier})
		}
		return item
	}), nil
}

type tree struct {
	Items []event `json:"items" nullable:"false" doc:"Each before its children; parent_id says whose child an event is."`
	More  bool    `json:"more,omitempty" doc:"There are others, beyond the limit."`
}

// tree leaves out events on canvases that the caller may not read, and ancestors of which nothing but the id is known.
func (a *api) tree(ctx context.Context, in *struct {
	IDInput
	Limit int `query:"limit" minimum:"1" maximum:"1000" default:"200"`
}) (*answer[tree], error) {
	if _, _, err := a.shown(ctx, in.ID); err != nil {
		return nil, err
	}
	root, more, err := a.reader.Tree(ctx, eventqueue.EventID(in.ID), in.Limit)
	if err != nil {
		return nil, a.failed("tree", err)
	}
	answered := tree{Items: []event{}, More: more}
	for open := []*inspect.Tree{root}; len(open) > 0; {
		node := open[0]
		open = append(append([]*inspect.Tree(nil), node.Children...), open[1:]...)
		switch {
		case node.Queued != nil && callerOf(ctx).May(access.Read, node.Queued.Canvas):
			answered.Items = append(answered.Items, queuedOf(*node.Queued))
		case node.Logged != nil && callerOf(ctx).May(access.Read, node.Logged.Canvas):
			answered.Items = append(answered.Items, loggedOf(*node.Logged))
		}
	}
	return &answer[tree]{answered}, nil
}

// attributesOf reads pairs like key=value.
func attributesOf(pairs []string) (map[string]string, error) {
	attributes := map[string]string{}
	for _, pair := range pairs {
		key, value, is := strings.Cut(pair, "=")
		if !is || key == "" {
			return nil, huma.Error422UnprocessableEntity("attribute: write key=value, as in attribute=user=ada")
		}
		attributes[key] = value
	}
	return attributes, nil
}
