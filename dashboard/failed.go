package dashboard

import (
	"net/http"
	"net/url"

	"eventsv2/access"
	"eventsv2/eventqueue"
	"eventsv2/eventqueue/inspect"
	"eventsv2/eventqueue/operate"
	"eventsv2/internal/view"
)

// failuresShown is how many groups of failed events a page lists, the largest first.
const failuresShown = 100

// failure is a group of failed events, as a row.
type failure struct {
	view.FailureGroup
	// Link is the page with the events of the group.
	Link string
	// MayChange reports whether the viewer can retry and delete the group.
	MayChange bool
}

type failedData struct {
	Form filterForm
	// Of is whose failed events are shown, and Canvas its canvas as the form has it.
	Of     inspect.Filter
	Canvas string
	view.FailureGroups
	Rows    []failure
	Withins []choice
	// Filtered reports whether events are left out by their errors, attributes or ends.
	Filtered bool
	// Bulk reports whether groups can be retried and deleted, by those who may.
	Bulk bool
}

// Ended is so of all events on the page.
func (failedData) Ended() bool { return true }

func (d *dashboard) failed(r *http.Request) (string, any, error) {
	filter, err := d.filter(r)
	if err != nil {
		return "", nil, err
	}
	form := formOf(r.URL.Query().Get)
	form.State = "failed"
	if err := form.addTo(&filter); err != nil {
		return "", nil, err
	}
	found, err := d.Reader.FailureGroups(r.Context(), form.logged(filter, inspect.LogFailed), failuresShown)
	if err != nil {
		return "", nil, err
	}
	data := failedData{Form: form, Of: filter, Canvas: canvasText(r, filter.Canvas), FailureGroups: view.FailureGroupsOf(found), Withins: withins, Bulk: d.Bulk != nil,
		Filtered: form.Attribute+form.Error+form.ErrorGroup+form.Within != ""}
	for _, group := range data.Items {
		of := filterForm{Canvas: group.Canvas.String(), Module: group.Module, Name: group.Name, State: "failed", ErrorGroup: group.ErrorGroup,
			Attribute: form.Attribute, Error: form.Error, Within: form.Within}
		data.Rows = append(data.Rows, failure{group, d.Prefix + "/events?" + of.query().Encode(), d.Bulk != nil && d.mayChange(r, access.Operate, group.Canvas)})
	}
	return "Failed", data, nil
}

// groupFields are the fields of a form that name a group of failed events.
func groupFields(r *http.Request) (scope eventqueue.Scope, form filterForm, err error) {
	if scope, err = scopeOf(r, r.PostFormValue); err != nil {
		return scope, form, err
	}
	form = formOf(r.PostFormValue)
	form.State = "failed"
	if err = form.addTo(&inspect.Filter{}); err == nil && form.ErrorGroup == "" {
		err = badFilter("No group of errors is named. Choose one on the page of what failed.")
	}
	return scope, form, err
}

// changeGroup counts the failed events of a group, for a change of all of them and no other.
func (d *dashboard) changeGroup(verb operate.Verb) func(r *http.Request) (string, flash, error) {
	return func(r *http.Request) (string, flash, error) {
		scope, form, err := groupFields(r)
		if err != nil {
			return "", flash{}, err
		}
		if !viewerOf(r).May(access.Operate, scope.Canvas) {
			return "", flash{}, forbidden(access.Operate)
		}
		filter := inspect.FilterOf(scope)
		if err := form.addTo(&filter); err != nil {
			return "", flash{}, err
		}
		return d.counted(r, operate.Change{Verb: verb, Filter: form.selects(filter)}, failedPath(scope))
	}
}

// failedPath is the page with what failed of a handler.
func failedPath(scope eventqueue.Scope) string {
	return "/failed?" + url.Values{"canvas": {scope.Canvas.String()}, "module": {scope.Module}, "name": {scope.Name}}.Encode()
}
