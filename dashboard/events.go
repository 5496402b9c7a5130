package dashboard

import (
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"eventsv2/access"
	"eventsv2/eventqueue"
	"eventsv2/eventqueue/inspect"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/operate"
	"eventsv2/internal/view"
)

// pageSize is how many events a page lists.
const pageSize = 50

// filterForm is the filter as it stands in the URL.
type filterForm struct {
	ID, Canvas, Module, Name, Attribute, State string
	States                                     []inspect.State
}

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
	Bulk []operate.Verb
	// Filter is the content of the form, with a canvas even if the address names none.
	Filter inspect.Filter
}

func (d *dashboard) events(r *http.Request) (string, any, error) {
	q := r.URL.Query()
	form := filterForm{ID: strings.TrimSpace(q.Get("id")), Canvas: strings.TrimSpace(q.Get("canvas")), Module: q.Get("module"), Name: q.Get("name"),
		Attribute: q.Get("attribute"), State: q.Get("state"), States: inspect.States()}
	data := eventsData{Form: form}
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
	after, err := parseAfter(q.Get("after"))
	if err != nil {
		return "", nil, err
	}
	data.Filter = filter
	var next eventqueue.EventID
	if after > 0 {
		data.First = d.Prefix + "/events?" + without(q, "after").Encode()
	}
	if status, ended := logStatus(form.State); ended {
		data.Ended = true
		var found []inspect.LogEntry
		found, next, err = d.Reader.Log(r.Context(), filter, status, true, after, pageSize)
		data.Events = view.All(found, view.EndedEventOf)
	} else {
		var found []inspect.QueuedEvent
		found, next, err = d.Reader.List(r.Context(), filter, inspect.State(form.State), after, pageSize)
		data.Events = view.All(found, view.EventOf)
	}
	if next > 0 {
		data.Searched = len(data.Events) < pageSize
		q = without(q, "after")
		q.Set("after", next.String())
		data.Next = d.Prefix + "/events?" + q.Encode()
	}
	return "Events", data, err
}

// found lists the one event with an id.
func (d *dashboard) found(r *http.Request, id eventqueue.EventID, data *eventsData) error {
	shown, err := d.Reader.Show(r.Context(), id)
	if e := view.FoundEvent(shown.Queued, shown.Logged); err == nil && viewerOf(r).maySee(e) {
		data.Ended, data.Events = e.Ended(), []view.Event{*e}
	}
	return err
}

func without(q url.Values, key string) url.Values {
	rest := url.Values{}
	for k, v := range q {
		if k != key {
			rest[k] = slices.Clone(v)
		}
	}
	return rest
}

func logStatus(state string) (inspect.LogStatus, bool) {
	for _, status := range []inspect.LogStatus{inspect.LogCompleted, inspect.LogFailed, inspect.LogCancelled} {
		if strings.EqualFold(state, string(status)) {
			return status, true
		}
	}
	return "", false
}

// addTo adds what the form says beside the canvas.
func (f filterForm) addTo(filter *inspect.Filter) error {
	for _, text := range []string{f.Module, f.Name, f.Attribute} {
		if !isField(text) {
			return badFilter("Module, name and attribute are texts of at most 1,024 bytes of UTF-8.")
		}
	}
	filter.Module, filter.Name = f.Module, f.Name
	if f.Attribute != "" {
		key, value, ok := strings.Cut(f.Attribute, "=")
		if !ok {
			return badFilter("Write the attribute as key=value.")
		}
		filter.Attributes = map[string]string{key: value}
	}
	if _, ended := logStatus(f.State); f.State != "" && !ended && !slices.Contains(inspect.States(), inspect.State(f.State)) {
		return badFilter("There is no such state. Choose one of the list.")
	}
	return nil
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
	MayRead    bool
	MayOperate bool
	Text       string // of the value
	Cut        bool
	Machine    picture
	Tree       []treeRow
	MoreTree   bool
}

// Held reports whether the handler of the event is paused or blocked.
func (e eventData) Held() bool {
	return e.Because.Label == machine.Paused || e.Because.Label == machine.Blocked
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
	data := eventData{Event: *e, Because: reasons[0], Next: reasons[1:], Attempts: view.AttemptsOf(explained.Shown).Items, Machine: wayOf(explained)}
	data.MayOperate = d.mayChange(r, access.Operate, e.Canvas)
	data.MayRead = viewerOf(r).May(access.ReadValues, e.Canvas)
	if data.MayRead {
		data.Text, data.Cut = value(e.Value)
	}
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

const (
	// failedShown is how many of the newest failed events are grouped.
	failedShown = 500
	// failuresShown is how many groups a page lists, the largest first.
	failuresShown = 100
)

// failure is a group of failed events of one handler with the same error.
type failure struct {
	eventqueue.Scope
	Error  string
	Count  int64
	Newest view.Event
	Link   string
	// MayRetry reports whether the viewer can retry the group.
	MayRetry bool
}

type failedData struct {
	// Of is whose failed events are shown.
	Of     inspect.Filter
	Groups []*failure
	// More is how many groups are not shown, and Events how many events were grouped.
	More, Events int
	// Older reports whether newer failed events than these are on another page; Next goes on with older ones.
	Older bool
	Next  string
	// Bulk reports whether groups can be retried, by those who may.
	Bulk bool
}

func (d *dashboard) failed(r *http.Request) (string, any, error) {
	filter, err := d.filter(r)
	if err != nil {
		return "", nil, err
	}
	filter.Module, filter.Name = r.URL.Query().Get("module"), r.URL.Query().Get("name")
	if !isField(filter.Module) || !isField(filter.Name) {
		return "", nil, badFilter("Module and name are texts of at most 1,024 bytes of UTF-8.")
	}
	after, err := parseAfter(r.URL.Query().Get("after"))
	if err != nil {
		return "", nil, err
	}
	entries, next, err := d.Reader.Log(r.Context(), filter, inspect.LogFailed, true, after, failedShown)
	if err != nil {
		return "", nil, err
	}
	type key struct {
		scope eventqueue.Scope
		text  string
	}
	groups, data := map[key]*failure{}, failedData{Bulk: d.Bulk != nil, Of: filter, Older: after > 0}
	if next > 0 {
		q := without(r.URL.Query(), "after")
		q.Set("after", next.String())
		data.Next = d.Prefix + "/failed?" + q.Encode()
	}
	for _, e := range entries {
		scope := eventqueue.Scope{Canvas: e.Canvas, Module: e.Module, Name: e.Name}
		k := key{scope, folded(e.LastError)}
		if groups[k] == nil {
			q := url.Values{"state": {"failed"}, "canvas": {e.Canvas.String()}, "module": {e.Module}, "name": {e.Name}}
			groups[k] = &failure{Scope: scope, Error: k.text, Newest: view.EndedEventOf(e), MayRetry: d.Bulk != nil && d.mayChange(r, access.Operate, e.Canvas), Link: d.Prefix + "/events?" + q.Encode()}
			data.Groups = append(data.Groups, groups[k])
		}
		groups[k].Count++
	}
	slices.SortStableFunc(data.Groups, func(a, b *failure) int { return int(b.Count - a.Count) })
	data.More = max(0, len(data.Groups)-failuresShown)
	data.Groups = data.Groups[:len(data.Groups)-data.More]
	data.Events = len(entries)
	return "Failed", data, nil
}

var idsAndNumbers = regexp.MustCompile(`[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|0x[0-9a-fA-F]+|[0-9]+`)

// folded is the beginning of an error in which ids and numbers are left out, so that errors that
// differ in nothing else are one group.
func folded(text string) string {
	text, _ = shorten(text, 1024)
	return line(idsAndNumbers.ReplaceAllString(text, "#"))
}
