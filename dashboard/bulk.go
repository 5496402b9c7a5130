package dashboard

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"eventsv2/access"
	"eventsv2/eventqueue"
	"eventsv2/eventqueue/inspect"
	"eventsv2/eventqueue/operate"
)

// eventsPage is the page Events, with the changes that can be made of all events on it.
func (d *dashboard) eventsPage(r *http.Request) (string, any, error) {
	title, data, err := d.events(r)
	if list, ok := data.(eventsData); ok && err == nil {
		list.Bulk = d.bulkVerbs(r, list.Form, list.Filter)
		data = list
	}
	return title, data, err
}

// bulkVerbs are the changes that the viewer can make of all events that a filter selects; none, if there is no filter.
func (d *dashboard) bulkVerbs(r *http.Request, form filterForm, filter inspect.Filter) (verbs []operate.Verb) {
	if d.Bulk == nil || d.Queue == nil || form.ID != "" || form.onlyShown() || !viewerOf(r).mayOn(access.Operate, filter.Canvas) {
		return nil
	}
	for _, verb := range []operate.Verb{operate.VerbRun, operate.VerbDelete, operate.VerbRetry, operate.VerbReplay, operate.VerbDeleteEnded, operate.VerbCancel} {
		change := operate.Change{Verb: verb, Filter: form.selects(filter)}
		if change.Validate(d.Queue.Limits()) == nil && form.State != string(inspect.Running) && isOf(verb, form.State) &&
			(verb != operate.VerbReplay || viewerOf(r).mayOn(access.Emit, filter.Canvas)) {
			verbs = append(verbs, verb)
		}
	}
	return verbs
}

// isOf reports whether the page offers a change for events of a state.
func isOf(verb operate.Verb, state string) bool {
	switch status, _ := logStatus(state); verb {
	case operate.VerbReplay:
		return status == inspect.LogCompleted
	case operate.VerbRetry, operate.VerbDeleteEnded:
		return isEnded(state) && status != inspect.LogCompleted
	default:
		return !isEnded(state)
	}
}

// isEnded reports whether a state is one of events that have ended.
func isEnded(state string) bool {
	_, ended := logStatus(state)
	return ended
}

// countEvents counts the events that the filter of the page Events selects, for a change of all of them.
func (d *dashboard) countEvents(r *http.Request) (string, flash, error) {
	form := formOf(r.PostFormValue)
	form.ID = ""
	var filter inspect.Filter
	if form.Canvas != "" {
		canvas, err := eventqueue.ParseCanvasID(form.Canvas)
		if err != nil {
			return "", flash{}, badFilter("The canvas is not a UUID. Copy it from an event or a handler.")
		}
		filter.Canvas = &canvas
	}
	if err := form.addTo(&filter); err != nil {
		return "", flash{}, err
	}
	for _, verb := range []access.Verb{access.Read, access.Operate} { // a count says what there is
		if !viewerOf(r).mayOn(verb, filter.Canvas) {
			return "", flash{}, forbidden(verb)
		}
	}
	reason, err := field(r, "reason")
	if err != nil {
		return "", flash{}, err
	}
	verb := operate.Verb(r.PostFormValue("verb"))
	if !slices.Contains(d.bulkVerbs(r, form, filter), verb) {
		return "", flash{}, problem{http.StatusUnprocessableEntity, "This cannot be done to these events",
			"A change of many events needs a filter, so that it never is of all that there are, and a state that allows it. Go back to the events and choose both."}
	}
	return d.counted(r, operate.Change{Verb: verb, Filter: form.selects(filter), Reason: reason}, "/events?"+form.query().Encode())
}

// counted counts the events of a change and leads to the page that asks whether to make it, or back.
func (d *dashboard) counted(r *http.Request, change operate.Change, back string) (string, flash, error) {
	op, err := d.Bulk.Count(r.Context(), viewerOf(r).actor(), viewerOf(r).key(), change)
	var invalid *operate.InvalidError
	switch {
	case errors.As(err, &invalid):
		return back, refused("The events were not counted: " + clean(invalid.Error()) + "."), nil
	case errors.Is(err, context.DeadlineExceeded):
		return back, refused("The events could not be counted in time. Use eventctl, which may take longer."), nil
	case err != nil:
		return "", flash{}, err
	default:
		return operationPath(op), flash{}, nil
	}
}
