package dashboard

import (
	"context"
	"net/http"

	"go.uber.org/zap"

	"eventsv2/access"
	"eventsv2/eventqueue"
	"eventsv2/eventqueue/inspect"
	"eventsv2/eventqueue/operate"
	"eventsv2/internal/logkey"
	"eventsv2/internal/view"
)

// eventToChange returns the event of a request, if its viewer may change it.
func (d *dashboard) eventToChange(r *http.Request) (id eventqueue.EventID, found inspect.Shown, err error) {
	if id, err = parseID(r.PathValue("id")); err != nil {
		return id, found, err
	}
	if found, err = d.Reader.Show(r.Context(), id); err != nil {
		return id, found, err
	}
	e := view.FoundEvent(found.Queued, found.Logged)
	if !viewerOf(r).maySee(e) {
		return id, found, noEvent(id)
	}
	if !viewerOf(r).May(access.Operate, e.Canvas) {
		return id, found, forbidden(access.Operate)
	}
	return id, found, nil
}

// changeOfEvent changes an event as the viewer.
type changeOfEvent func(ctx context.Context, changer *operate.Changer, id eventqueue.EventID) ([]operate.Changed, error)

// apply makes a change of an event that the viewer may change. well is the message after a success.
func (d *dashboard) apply(r *http.Request, id eventqueue.EventID, well string, change changeOfEvent) (string, flash, error) {
	result, err := d.applied(r, id, change)
	if err != nil {
		return "", flash{}, err
	}
	return eventPath(id), d.said(result, well), nil
}

func (d *dashboard) applied(r *http.Request, id eventqueue.EventID, change changeOfEvent) (result operate.Changed, err error) {
	changer, err := operate.NewChanger(d.Store.As(viewerOf(r).actor()), d.Queue)
	if err != nil {
		return result, err
	}
	results, err := change(r.Context(), changer, id)
	if err != nil {
		return result, err
	}
	return results[0], nil
}

func (d *dashboard) cancelEvent(r *http.Request) (string, flash, error) {
	id, _, err := d.eventToChange(r)
	if err != nil {
		return "", flash{}, err
	}
	reason, err := field(r, "reason")
	if err != nil {
		return "", flash{}, err
	}
	return d.apply(r, id, "It was cancelled, and does not run. Retry it to have it run after all.",
		func(ctx context.Context, changer *operate.Changer, id eventqueue.EventID) ([]operate.Changed, error) {
			return changer.Cancel(ctx, operate.Cancellation{Reason: reason, Actor: viewerOf(r).Name}, id)
		})
}

func (d *dashboard) deleteEvent(r *http.Request) (string, flash, error) {
	id, found, err := d.eventToChange(r)
	if err != nil {
		return "", flash{}, err
	}
	if found.Logged != nil {
		return d.deleteEnded(r, found.Logged)
	}
	result, err := d.applied(r, id, func(ctx context.Context, changer *operate.Changer, id eventqueue.EventID) ([]operate.Changed, error) {
		return changer.Delete(ctx, id)
	})
	if err != nil {
		return "", flash{}, err
	}
	path := eventPath(id)
	if result.Done() {
		path = "/events"
	}
	return path, d.said(result, "Event "+id.String()+" was deleted."), nil
}

// deleteEnded deletes an event that has failed or was cancelled.
func (d *dashboard) deleteEnded(r *http.Request, ended *inspect.LogEntry) (string, flash, error) {
	result := operate.Changed{ID: ended.ID, Result: operate.ChangeUnknown}
	results, err := d.Store.As(viewerOf(r).actor()).DeleteLogged(r.Context(), []eventqueue.EventID{ended.ID})
	if len(results) > 0 {
		result = results[0]
	}
	switch {
	case err != nil:
		return "", flash{}, err
	case result.Done():
		return "/events?state=" + view.EndState(ended.Status), done("Event " + ended.ID.String() + " was deleted."), nil
	case ended.Status == inspect.LogCompleted:
		result.Result = operate.ChangeCompleted
	}
	return eventPath(ended.ID), d.said(result, ""), nil
}

func (d *dashboard) runEvent(r *http.Request) (string, flash, error) {
	id, _, err := d.eventToChange(r)
	if err != nil {
		return "", flash{}, err
	}
	result, err := d.applied(r, id, func(ctx context.Context, changer *operate.Changer, id eventqueue.EventID) ([]operate.Changed, error) {
		return changer.Requeue(ctx, id)
	})
	if err != nil {
		return "", flash{}, err
	}
	well := "It is due now: the next free worker runs it."
	if result.Rule != "" {
		well = "It is due now, and runs when its handler is no longer " + string(operate.KindOf(result.Rule).State) + "."
	}
	return eventPath(id), d.said(result, well), nil
}

func (d *dashboard) retryEvent(r *http.Request) (string, flash, error) {
	id, _, err := d.eventToChange(r)
	if err != nil {
		return "", flash{}, err
	}
	return d.apply(r, id, backInQueue, func(ctx context.Context, changer *operate.Changer, id eventqueue.EventID) ([]operate.Changed, error) {
		return changer.Retry(ctx, id)
	})
}

func eventPath(id eventqueue.EventID) string { return "/events/" + id.String() }

// backInQueue is the message about a retried event.
const backInQueue = "It is back in the queue, due now, with all of its retries."

// said is the message about a change of an event.
func (d *dashboard) said(result operate.Changed, well string) flash {
	switch {
	case result.Done():
		return done(well)
	case result.Result == operate.ChangeEnding:
		return done("A worker runs it, and was asked to end the run. It is cancelled then, unless its handler completes it, and is not run again.")
	}
	if result.Result == operate.ChangeRefused {
		d.Log.Error("the database refuses to write an event", zap.Stringer(logkey.Event, result.ID), zap.Error(result.Err))
	}
	return refused("Nothing was changed: " + view.RefusalOf(result).String() + ".")
}
