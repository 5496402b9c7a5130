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
	"eventsv2/internal/view"
)

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
		return scope, errNoPlace()
	}
	return eventqueue.Scope{Module: key[0], Name: key[1]}, nil
}

// What bounds the rows of stats.
const (
	maxMinutes = 24 * time.Hour
	maxHours   = 31 * 24 * time.Hour
)

func (a *api) addStats() {
	get(a, "/stats", "get-stats", "What was counted, by handler and minute, hour or in all", func(ctx context.Context, in *struct {
		CanvasInput
		Module       string `query:"module" minLength:"1" maxLength:"255"`
		Name         string `query:"name" minLength:"1" maxLength:"255"`
		SinceSeconds int64  `query:"since_seconds" minimum:"60" maximum:"2678400" default:"3600" doc:"Of minutes, and of the sum of them, at most a day."`
		Per          string `query:"per" enum:"minute,hour,all" default:"minute" doc:"all: the sum of the minutes of each handler."`
		After        string `query:"after" minLength:"1" maxLength:"2048" doc:"next of the page before."`
	}) (*answer[view.CountsPage], error) {
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
		answered := view.CountsPage{Items: view.All(found, view.CountsOf)}
		if last != nil {
			answered.Next = afterHandler(*last)
		}
		return &answer[view.CountsPage]{answered}, nil
	})
	get(a, "/workers", "list-workers", "The workers that run, and those that ended less than a day ago", a.listWorkers)
	get(a, "/events/{id}/tree", "get-tree", "An event with its ancestors and all that descends from them", a.tree)
}

// listWorkers needs the right to read all canvases: workers run the events of all.
func (a *api) listWorkers(ctx context.Context, _ *struct{}) (*answer[view.Page[view.Worker]], error) {
	if !callerOf(ctx).MayEverywhere(access.Read) {
		return nil, huma.Error403Forbidden("your token lacks the verb read on all canvases, whose events the workers run")
	}
	found, err := a.reader.Workers(ctx)
	if err != nil {
		return nil, a.failed("workers", err)
	}
	return list(view.ListOf(found, view.WorkerOf)), nil
}

// tree leaves out events on canvases that the caller may not read, and ancestors of which nothing but the id is known.
func (a *api) tree(ctx context.Context, in *struct {
	IDInput
	Limit int `query:"limit" minimum:"1" maximum:"1000" default:"200"`
}) (*answer[view.Tree], error) {
	if _, _, err := a.shown(ctx, in.ID); err != nil {
		return nil, err
	}
	root, more, err := a.reader.Tree(ctx, eventqueue.EventID(in.ID), in.Limit)
	if err != nil {
		return nil, a.failed("tree", err)
	}
	return &answer[view.Tree]{view.TreeOf(root, more, func(e view.Event) bool { return callerOf(ctx).May(access.Read, e.Canvas) })}, nil
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
