package dashboard

import (
	"errors"
	"net/http"
	"net/url"
	"strconv"

	"eventsv2/access"
	"eventsv2/eventqueue"
	"eventsv2/eventqueue/inspect"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/operate"
	"eventsv2/internal/view"
)

// pageSize is how many events a page lists.
const pageSize = 50

type eventsData struct {
	Form   filterForm
	Events []view.Event
	Next   string
	// First is the page without its position, for a page that is not the first.
	First string
	// Searched reports whether the search ended before the page was full, and goes on with Next.
	Searched bool
	Ended    bool
	// Bulk are the changes that can be made of all events that the filter selects.
	Bulk    []operate.Verb
	Withins []choice
	// Filter is the content of the form, with a canvas even if the address names none.
	Filter inspect.Filter
}

func (d *dashboard) events(r *http.Request) (string, any, error) {
	q := r.URL.Query()
	form := formOf(q.Get)
	data := eventsData{Form: form, Withins: withins}
	filter, err := d.filter(r)
	if err == nil {
		err = form.addTo(&filter)
	}
	if err != nil {
		return "", nil, err
	}
	if form.ID != "" {
		id, err := parseID(form.ID)
		if err != nil {
			return "", nil, err
		}
		return "Events", data, d.found(r, id, &data)
	}
	data.Filter = filter
	if q.Get("after") != "" {
		data.First = d.Prefix + "/events?" + without(q, "after").Encode()
	}
	next, err := d.listPage(r, form, filter, q.Get("after"), &data)
	if next != "" {
		data.Searched = len(data.Events) < pageSize
		q = without(q, "after")
		q.Set("after", next)
		data.Next = d.Prefix + "/events?" + q.Encode()
	}
	return "Events", data, err
}

// listPage lists the events after a place, of the queue or of the history, and returns the next place.
func (d *dashboard) listPage(r *http.Request, form filterForm, filter inspect.Filter, after string, data *eventsData) (string, error) {
	status, ended := logStatus(form.State)
	if data.Ended = ended; ended {
		place, err := inspect.ParseLogPlace(after)
		if err != nil {
			return "", noPlace()
		}
		found, next, err := d.Reader.Log(r.Context(), form.logged(filter, status), true, place, pageSize)
		if errors.Is(err, inspect.ErrNoLogPlace) {
			return "", noPlace()
		}
		data.Events = view.All(found, view.EndedEventOf)
		return next.String(), err
	}
	place, err := parseAfter(after)
	if err != nil {
		return "", err
	}
	found, next, err := d.Reader.List(r.Context(), filter, inspect.State(form.State), form.Order == newestFirst, place, pageSize)
	data.Events = view.All(found, view.EventOf)
	if next == 0 {
		return "", err
	}
	return next.String(), err
}

// noPlace is the answer for an address that goes on where no page has ended.
func noPlace() problem {
	return problem{http.StatusBadRequest, "The list does not go on here", "Begin with its first page: the address was changed, or is one of another list."}
}

// found lists the one event with an id.
func (d *dashboard) found(r *http.Request, id eventqueue.EventID, data *eventsData) error {
	shown, err := d.Reader.Show(r.Context(), id)
	if e := view.FoundEvent(shown.Queued, shown.Logged); err == nil && viewerOf(r).maySee(e) {
		data.Ended, data.Events = e.Ended(), []view.Event{*e}
	}
	return err
}

func parseID(s string) (eventqueue.EventID, error) {
	id, err := strconv.ParseInt(s, 10, 64)
	if err != nil || id <= 0 {
		return 0, problem{http.StatusBadRequest, "This is no id of an event", "The id of an event is a positive number."}
	}
	return eventqueue.EventID(id), nil
}

func parseAfter(s string) (eventqueue.EventID, error) {
	if s == "" {
		return 0, nil
	}
	return parseID(s)
}

// noEvent is the answer for an event that does not exist, or whose canvas the viewer may not read.
func noEvent(id eventqueue.EventID) problem {
	return problem{http.StatusNotFound, "Event " + id.String() + " is not here", "It was deleted, or it has completed and history is not kept, or there never was one with this id."}
}

// maySee reports whether the viewer may read an event, if there is one.
func (v viewer) maySee(e *view.Event) bool { return e != nil && v.May(access.Read, e.Canvas) }

type eventData struct {
	view.Event
	Because    view.Reason
	Next       []view.Reason
	Attempts   []view.Attempt
	Lifts      []view.Rule // the rules that hold it back and that the viewer may lift
	MayRead    bool
	MayOperate bool
	Text       string // of the value
	Result     shownResult
	Cut        bool
	Machine    picture
	Tree       []treeRow
	MoreTree   bool
}

// shownResult is the result of an event.
type shownResult struct {
	Text string
	Cut  bool
}

// help is a link to the page that changes why an event does not run.
type help struct{ Link, Text string }

// Helps is the page that changes why the event does not run now; nil if there is none but this one.
func (e eventData) Helps() *help {
	handler := eventqueue.Scope{Canvas: e.Canvas, Module: e.Module, Name: e.Name}
	switch e.Because.Label {
	case machine.Paused, machine.Blocked:
		return &help{handlerPath(handler), "See what holds the handler back"}
	case machine.OverLimit, machine.NotItsTurn:
		q := url.Values{"canvas": {e.Canvas.String()}, "module": {e.Module}, "name": {e.Name}}
		return &help{"/groups?" + q.Encode() + "#set", "See the limits and groups"}
	default:
		return nil
	}
}

// liftsOf are the rules of an event that the viewer may lift.
func (d *dashboard) liftsOf(r *http.Request, rules []operate.Rule) (lifts []view.Rule) {
	for _, rule := range rules {
		if kind := operate.KindOf(rule.Type); kind.Known() && !rule.Whole() && d.mayChange(r, view.VerbOf(kind), rule.Canvas) {
			lifts = append(lifts, view.RuleOf(rule))
		}
	}
	return lifts
}

// treeRow is an event of the family, Depth generations below the eldest.
type treeRow struct {
	ID    eventqueue.EventID
	Depth []struct{}
	State string
	Name  string
	Self  bool
}

// familyShown is how many events of a family a page shows.
const familyShown = 60

func (d *dashboard) event(r *http.Request) (string, any, error) {
	id, err := parseID(r.PathValue("id"))
	if err != nil {
		return "", nil, err
	}
	explained, err := d.Reader.Explain(r.Context(), id)
	if err != nil {
		return "", nil, err
	}
	e := view.FoundEvent(explained.Shown.Queued, explained.Shown.Logged)
	if !viewerOf(r).maySee(e) {
		return "", nil, noEvent(id)
	}
	reasons := view.ExplanationOf(explained).Items
	data := eventData{Event: *e, Because: reasons[0], Next: reasons[1:], Attempts: view.AttemptsOf(explained.Shown).Items, Machine: wayOf(explained), Lifts: d.liftsOf(r, explained.Shown.Rules)}
	data.MayOperate = d.mayChange(r, access.Operate, e.Canvas)
	data.MayRead = viewerOf(r).May(access.ReadValues, e.Canvas)
	if data.MayRead {
		data.Text, data.Cut = value(e.Value)
		data.Result.Text, data.Result.Cut = value(e.Result)
	} else {
		data.RunLog, data.Attempts = "", view.WithoutLogs(data.Attempts)
	}
	data.RunLog = view.LogApart(data.RunLog, data.Attempts)
	tree, more, err := d.Reader.Tree(r.Context(), id, familyShown)
	if err != nil {
		return "", nil, err
	}
	data.MoreTree = more
	data.Tree = viewerOf(r).family(tree, id)
	return "Event " + id.String(), data, nil
}

// family lists the events of a tree. Of another canvas there is no more than of an event that is gone.
func (v viewer) family(tree *inspect.Tree, self eventqueue.EventID) (rows []treeRow) {
	view.Walk(tree, func(t *inspect.Tree, depth int) {
		row := treeRow{ID: t.ID, Depth: make([]struct{}, min(depth, 8)), State: "gone", Self: t.ID == self}
		if e := view.FoundEvent(t.Queued, t.Logged); v.maySee(e) {
			row.State, row.Name = e.State, e.Module+" / "+e.Name
		}
		rows = append(rows, row)
	})
	return rows
}
