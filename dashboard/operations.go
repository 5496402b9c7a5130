package dashboard

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/google/uuid"

	"eventsv2/access"
	"eventsv2/eventqueue"
	"eventsv2/eventqueue/inspect"
	"eventsv2/eventqueue/operate"
	"eventsv2/internal/printing"
	"eventsv2/internal/view"
)

// operationsShown is how many changes of many events a page lists.
const operationsShown = 50

type operationsData struct{ Operations []operationRow }

// operationRow is a change of many events, in words.
type operationRow struct {
	operate.Operation
	What       string
	MayOperate bool
	// Left is how many of the counted events have not been tried yet.
	Left int
}

func (d *dashboard) rowOfOperation(r *http.Request, op operate.Operation) operationRow {
	may := d.Queue != nil && viewerOf(r).mayOn(access.Operate, op.Change.Filter.Canvas)
	return operationRow{Operation: op, What: selection(op.Change), MayOperate: may,
		Left: max(0, op.Counted-op.Changed-op.Running-op.Busy-op.Refused)}
}

// selection is what an operation is about, in words.
func selection(c operate.Change) string {
	f := c.Filter
	state := f.State
	if c.Verb == operate.VerbRetry {
		state = cmp.Or(state, operate.StateFailed)
	}
	if c.Verb == operate.VerbReplay {
		state = cmp.Or(state, operate.StateCompleted)
	}
	text := "Events"
	if state != "" {
		text = capital(string(state)) + " events"
	}
	for _, part := range []struct{ before, what, after string }{
		{" of ", handlerText(f), ""}, {" with modifier ", f.Modifier, ""}, {" whose error contains “", f.Error, "”"},
	} {
		if part.what != "" {
			text += part.before + line(part.what) + part.after
		}
	}
	if len(f.Attributes) > 0 {
		var pairs []string
		for _, key := range sortedKeys(f.Attributes) {
			pairs = append(pairs, line(key)+"="+line(f.Attributes[key]))
		}
		text += " with " + strings.Join(pairs, ", ")
	}
	if f.OlderThan > 0 {
		text += fmt.Sprintf(" older than %s", f.OlderThan)
	}
	if f.NewerThan > 0 {
		text += fmt.Sprintf(" newer than %s", f.NewerThan)
	}
	if f.Canvas != nil {
		text += " on canvas " + f.Canvas.String()
	}
	return text
}

func handlerText(f operate.EventFilter) string {
	switch {
	case f.Module != "" && f.Name != "":
		return f.Module + " / " + f.Name
	default:
		return cmp.Or(f.Name, f.Module)
	}
}

func (d *dashboard) listOperations(r *http.Request) (string, any, error) {
	filter, err := d.filter(r)
	if err != nil {
		return "", nil, err
	}
	var canvases []eventqueue.CanvasID
	if filter.Canvas != nil {
		canvases = []eventqueue.CanvasID{*filter.Canvas}
	}
	list, err := d.Bulk.List(r.Context(), canvases, operationsShown)
	var data operationsData
	for _, op := range list {
		data.Operations = append(data.Operations, d.rowOfOperation(r, op))
	}
	return "Bulk operations", data, err
}

// operationOf returns the operation of a request, if its viewer may read its canvas.
func (d *dashboard) operationOf(r *http.Request) (op operate.Operation, err error) {
	missing := problem{http.StatusNotFound, "There is no such operation", "It ended more than a week ago, or the address was mistyped."}
	id, err := uuid.Parse(r.PathValue("id"))
	if err != nil {
		return op, missing
	}
	if op, err = d.Bulk.Get(r.Context(), id); errors.Is(err, operate.ErrUnknownOperation) {
		return op, missing
	}
	if err == nil && !viewerOf(r).mayOn(access.Read, op.Change.Filter.Canvas) {
		return operate.Operation{}, missing
	}
	return op, err
}

func (d *dashboard) operation(r *http.Request) (string, any, error) {
	op, err := d.operationOf(r)
	if err != nil {
		return "", nil, err
	}
	row := d.rowOfOperation(r, op)
	return row.Verb() + " " + printing.Plural(op.Counted, "event"), row, nil
}

// Verb is what the operation does, at the beginning of a sentence.
func (o operationRow) Verb() string { return capital(string(o.Change.Verb)) }

// PerSecond is the rate of a replay.
func (o operationRow) PerSecond() float64 { return cmp.Or(o.Change.Rate, operate.DefaultReplayRate) }

func capital(word string) string {
	if word == "" {
		return ""
	}
	return strings.ToUpper(word[:1]) + word[1:]
}

// Back is the page with what was counted.
func (o operationRow) Back() string {
	f := o.Change.Filter
	if o.Change.Verb == operate.VerbRetry && f.Error != "" {
		return "/failed"
	}
	q := url.Values{"module": {f.Module}, "name": {f.Name}, "state": {string(f.State)}}
	for key, value := range f.Attributes {
		q.Set("attribute", key+"="+value)
	}
	if f.Canvas != nil {
		q.Set("canvas", f.Canvas.String())
	}
	return "/events?" + filled(q).Encode()
}

// OfEvents reports whether it was begun on the page Events.
func (o operationRow) OfEvents() bool { return strings.HasPrefix(o.Back(), "/events") }

// Percent is how much of it has been tried.
func (o operationRow) Percent() int {
	if o.Counted == 0 {
		return 100
	}
	return 100 * (o.Counted - o.Left) / o.Counted
}

// Refreshes reports whether the page is to be read again, since something goes on.
func (o operationRow) Refreshes() bool { return o.State == operate.OperationRunning }

func operationPath(op operate.Operation) string { return "/operations/" + op.ID.String() }

// retryGroup counts the failed events that are like one: of its handler, with its error.
func (d *dashboard) retryGroup(r *http.Request) (string, flash, error) {
	id, err := parseID(r.PostFormValue("like"))
	if err != nil {
		return "", flash{}, err
	}
	found, err := d.Reader.Show(r.Context(), id)
	if err != nil {
		return "", flash{}, err
	}
	e := view.FoundEvent(found.Queued, found.Logged)
	if !viewerOf(r).maySee(e) {
		return "", flash{}, noEvent(id)
	}
	if !viewerOf(r).May(access.Operate, e.Canvas) {
		return "", flash{}, forbidden(access.Operate)
	}
	like := found.Logged
	if like == nil || like.Status != inspect.LogFailed {
		return "/failed", refused("Event " + id.String() + " is no longer a failed one. Choose the group again."), nil
	}
	filter := operate.EventFilter{Canvas: &like.Canvas, Module: like.Module, Name: like.Name, Error: commonPart(like.LastError), State: operate.StateFailed}
	return d.counted(r, operate.Change{Verb: operate.VerbRetry, Filter: filter}, "/failed")
}

// minCommonPart is how short a part of an error may be that says something.
const minCommonPart = 4

var betweenParts = regexp.MustCompile(idsAndNumbers.String() + `|[^\S ]|\s{2,}`)

// commonPart is the longest part of an error without ids and numbers, of what is shown of it: all errors of a group
// have it. It is empty where there is none that says something: then it is in all errors.
func commonPart(text string) (longest string) {
	begin, shown := 0, 0
	try := func(part string) {
		part, _ = shorten(part, max(0, maxLine-shown))
		shown += len(part)
		if part = strings.TrimSpace(part); len(part) > len(longest) {
			longest = part
		}
	}
	for _, between := range betweenParts.FindAllStringIndex(text, -1) {
		try(text[begin:between[0]])
		begin = between[1]
		shown += between[1] - between[0]
		if strings.TrimSpace(text[between[0]:between[1]]) != "" {
			shown -= between[1] - between[0] - len("#")
		}
	}
	try(text[begin:])
	if len(longest) < minCommonPart {
		return ""
	}
	return longest
}

func (d *dashboard) operationToChange(r *http.Request) (op operate.Operation, err error) {
	if op, err = d.operationOf(r); err == nil && !d.rowOfOperation(r, op).MayOperate {
		err = forbidden(access.Operate)
	}
	return op, err
}

// confirmOperation starts what was counted.
func (d *dashboard) confirmOperation(r *http.Request) (string, flash, error) {
	op, err := d.operationToChange(r)
	if err != nil {
		return "", flash{}, err
	}
	_, err = d.Bulk.Confirm(r.Context(), viewerOf(r).actor(), viewerOf(r).key(), op.ID)
	switch {
	case errors.Is(err, operate.ErrCountExpired):
		return operationPath(op), refused("The count is too old: count again."), nil
	case errors.Is(err, operate.ErrUnknownOperation):
		return operationPath(op), refused("Only who has counted the events can confirm that."), nil
	case err != nil:
		return "", flash{}, err
	default:
		return operationPath(op), flash{}, nil
	}
}

func (d *dashboard) stopOperation(r *http.Request) (string, flash, error) {
	op, err := d.operationToChange(r)
	if err != nil {
		return "", flash{}, err
	}
	if _, err := d.Bulk.Stop(r.Context(), viewerOf(r).actor(), op.ID); err != nil {
		return "", flash{}, err
	}
	return operationPath(op), done("It is stopped. What was done stays done."), nil
}
