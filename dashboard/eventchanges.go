package dashboard

import (
	"net/http"
	"strings"

	"go.uber.org/zap"

	"eventsv2/access"
	"eventsv2/eventqueue"
	"eventsv2/eventqueue/control"
	"eventsv2/eventqueue/inspect"
)

// eventToChange returns the event of a request, if its viewer may change it.
func (d *dashboard) eventToChange(r *http.Request) (id eventqueue.EventID, found inspect.Shown, err error) {
	if id, err = parseID(r.PathValue("id")); err != nil {
		return id, found, err
	}
	if found, err = d.Reader.Show(r.Context(), id); err != nil {
		return id, found, err
	}
	if !viewerOf(r).maySee(found) {
		return id, found, noEvent(id)
	}
	if canvas, _ := canvasOf(found); !viewerOf(r).May(access.Operate, canvas) {
		return id, found, forbidden(access.Operate)
	}
	return id, found, nil
}

// changer changes events as the viewer.
func (d *dashboard) changer(r *http.Request) (*control.Changer, error) {
	return control.NewChanger(d.Store.As(viewerOf(r).actor()), d.Queue)
}

func (d *dashboard) retrier(r *http.Request) (*control.Retrier, error) {
	return control.NewRetrier(d.Store.As(viewerOf(r).actor()), d.Queue)
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
	results, err := changer.Cancel(r.Context(), control.Cancellation{Reason: reason, Actor: viewerOf(r).Name}, id)
	if err != nil {
		return "", flash{}, err
	}
	return eventPath(id), d.said(results[0], "cancelled", "It was cancelled, and does not run. Retry it to have it run after all."), nil
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
	if results[0].Result == control.ChangeDone {
		path = "/events"
	}
	return path, d.said(results[0], "deleted", "Event "+id.String()+" was deleted."), nil
}

// deleteEnded deletes an event that has failed or was cancelled.
func (d *dashboard) deleteEnded(r *http.Request, ended *inspect.LogEntry) (string, flash, error) {
	result := control.Changed{ID: ended.ID, Result: control.ChangeUnknown}
	deleted, err := d.Store.As(viewerOf(r).actor()).DeleteLogged(r.Context(), []eventqueue.EventID{ended.ID})
	switch {
	case err != nil:
		return "", flash{}, err
	case len(deleted) == 1:
		return "/events?state=" + strings.ToLower(string(ended.Status)), done("Event " + ended.ID.String() + " was deleted."), nil
	case ended.Status == inspect.LogCompleted:
		result.Result = control.ChangeCompleted
	}
	return eventPath(ended.ID), d.said(result, "deleted", ""), nil
}

func (d *dashboard) runEvent(r *http.Request) (string, flash, error) {
	id, _, err := d.eventToChange(r)
	if err != nil {
		return "", flash{}, err
	}
	requeuer, err := control.NewRequeuer(d.Store.As(viewerOf(r).actor()), d.Queue)
	if err != nil {
		return "", flash{}, err
	}
	results, err := requeuer.Requeue(r.Context(), id)
	if err != nil {
		return "", flash{}, err
	}
	result := results[0]
	if result.Result == control.RequeueDone {
		if result.Rule != "" {
			return eventPath(id), done("It is due now, and runs when its handler is no longer " + held(result.Rule) + "."), nil
		}
		return eventPath(id), done("It is due now: the next free worker runs it."), nil
	}
	return eventPath(id), d.said(control.Changed{ID: id, Result: control.ChangeResult(result.Result), Err: result.Err}, "changed", ""), nil
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
	return eventPath(id), d.saidRetry(results[0]), nil
}

func eventPath(id eventqueue.EventID) string { return "/events/" + id.String() }

func held(rule control.RuleType) string {
	if rule == control.BlockRule {
		return "blocked"
	}
	return "paused"
}

// said is what a page says about a change of an event.
func (d *dashboard) said(result control.Changed, verb, well string) flash {
	why := "its state does not allow it"
	switch result.Result {
	case control.ChangeDone:
		return done(well)
	case control.ChangeRunning:
		why = "a worker runs it. Try again when the run has ended"
	case control.ChangeBusy:
		why = "something else is writing it at this moment. Try again"
	case control.ChangeCompleted:
		why = "it has completed"
	case control.ChangeFailed:
		why = "it has failed. It can be retried"
	case control.ChangeCancelled:
		why = "it is cancelled. It can be retried"
	case control.ChangeUnknown:
		why = "it is gone"
	case control.ChangeOutdated:
		why = "somebody has changed it since you opened the form. Open it again"
	case control.ChangeRefused:
		d.Log.Error("the database refuses to write an event", zap.Stringer("event_id", result.ID), zap.Error(result.Err))
		why = "the database refuses to write it. The log of this program says why"
	}
	return refused("Event " + result.ID.String() + " was not " + verb + ": " + why + ".")
}

func (d *dashboard) saidRetry(result control.Retried) flash {
	switch result.Result {
	case control.RetryMoved:
		return done("It is back in the queue, due now, with all of its retries.")
	case control.RetryOutdated:
		return d.said(control.Changed{ID: result.ID, Result: control.ChangeOutdated}, "retried", "")
	case control.RetryQueued:
		return refused("Event " + result.ID.String() + " was not retried: it is in the queue already.")
	default:
		return d.said(control.Changed{ID: result.ID, Result: control.ChangeResult(result.Result), Err: result.Err}, "retried", "")
	}
}
