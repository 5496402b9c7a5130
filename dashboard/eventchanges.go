package dashboard

import (
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

// changer changes events as the viewer.
func (d *dashboard) changer(r *http.Request) (*operate.Changer, error) {
	return operate.NewChanger(d.Store.As(viewerOf(r).actor()), d.Queue)
}

func (d *dashboard) retrier(r *http.Request) (*operate.Changer, error) {
	return operate.NewChanger(d.Store.As(viewerOf(r).actor()), d.Queue)
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
	changer, err := d.changer(r)
	if err != nil {
		return "", flash{}, err
	}
	results, err := changer.Cancel(r.Context(), operate.Cancellation{Reason: reason, Actor: viewerOf(r).Name}, id)
	if err != nil {
		return "", flash{}, err
	}
	return eventPath(id), d.said(results[0], "It was cancelled, and does not run. Retry it to have it run after all."), nil
}

func (d *dashboard) deleteEvent(r *http.Request) (string, flash, error) {
	id, found, err := d.eventToChange(r)
	if err != nil {
		return "", flash{}, err
	}
	if found.Logged != nil {
		return d.deleteEnded(r, found.Logged)
	}
	changer, err := d.changer(r)
	if err != nil {
		return "", flash{}, err
	}
	results, err := changer.Delete(r.Context(), id)
	if err != nil {
		return "", flash{}, err
	}
	path := eventPath(id)
	if results[0].Result == operate.ChangeDone {
		path = "/events"
	}
	return path, d.said(results[0], "Event "+id.String()+" was deleted."), nil
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
	requeuer, err := operate.NewChanger(d.Store.As(viewerOf(r).actor()), d.Queue)
	if err != nil {
		return "", flash{}, err
	}
	results, err := requeuer.Requeue(r.Context(), id)
	if err != nil {
		return "", flash{}, err
	}
	result := results[0]
	if result.Done() {
		if result.Rule != "" {
			return eventPath(id), done("It is due now, and runs when its handler is no longer " + view.RuleState(result.Rule) + "."), nil
		}
		return eventPath(id), done("It is due now: the next free worker runs it."), nil
	}
	return eventPath(id), d.said(result, ""), nil
}

func (d *dashboard) retryEvent(r *http.Request) (string, flash, error) {
	id, _, err := d.eventToChange(r)
	if err != nil {
		return "", flash{}, err
	}
	retrier, err := d.retrier(r)
	if err != nil {
		return "", flash{}, err
	}
	results, err := retrier.Retry(r.Context(), id)
	if err != nil {
		return "", flash{}, err
	}
	return eventPath(id), d.said(results[0], backInQueue), nil
}

func eventPath(id eventqueue.EventID) string { return "/events/" + id.String() }

// backInQueue is what a page says about a retried event.
const backInQueue = "It is back in the queue, due now, with all of its retries."

// said is what a page says about a change of an event.
func (d *dashboard) said(result operate.Changed, well string) flash {
	if result.Done() {
		return done(well)
	}
	if result.Result == operate.ChangeRefused {
		d.Log.Error("the database refuses to write an event", zap.Stringer(logkey.Event, result.ID), zap.Error(result.Err))
	}
	return refused("Nothing was changed: " + view.RefusalOf(result).String() + ".")
}
