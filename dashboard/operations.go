package dashboard

import (
	"errors"
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

// operationRow is a change of many events.
type operationRow struct {
	view.Operation
	MayOperate bool
}

func (d *dashboard) rowOfOperation(r *http.Request, op operate.Operation) operationRow {
	return operationRow{view.OperationOf(op), d.Queue != nil && viewerOf(r).mayOn(access.Operate, op.Change.Filter.Canvas)}
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
	return row.Title() + " " + printing.Plural(op.Counted, "event"), row, nil
}

// Back is the page with what was counted.
func (o operationRow) Back() string {
	f := o.Filter
	if o.Verb == operate.VerbRetry && f.Error != "" {
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
