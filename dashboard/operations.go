package dashboard

import (
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"eventsv2/access"
	"eventsv2/eventqueue"
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
	form := filterForm{Module: f.Module, Name: f.Name, State: string(f.State), Error: f.Error, ErrorGroup: f.ErrorGroup}
	if hours := int(f.NewerThan.Duration().Hours()); hours > 0 {
		form.Within = strconv.Itoa(hours)
	}
	for key, value := range f.Attributes {
		form.Attribute = key + "=" + value
	}
	if f.Canvas != nil {
		form.Canvas = f.Canvas.String()
	}
	if form.ErrorGroup != "" {
		form.ErrorGroup, form.State = "", ""
		return "/failed?" + form.query().Encode()
	}
	return "/events?" + form.query().Encode()
}

// OfEvents reports whether it was begun on the page Events.
func (o operationRow) OfEvents() bool { return strings.HasPrefix(o.Back(), "/events") }

// Refreshes reports whether the page is to be read again, since something goes on.
func (o operationRow) Refreshes() bool { return o.State == operate.OperationRunning }

func operationPath(op operate.Operation) string { return "/operations/" + op.ID.String() }

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
	return operationPath(op), done("It is stopped. What was done stays done; it can be resumed."), nil
}

// resumeOperation has what was stopped, or has failed, go on from where it ended.
func (d *dashboard) resumeOperation(r *http.Request) (string, flash, error) {
	op, err := d.operationToChange(r)
	if err == nil && op.Change.Verb == operate.VerbReplay && !viewerOf(r).mayOn(access.Emit, op.Change.Filter.Canvas) {
		err = forbidden(access.Emit)
	}
	if err != nil {
		return "", flash{}, err
	}
	if _, err := d.Bulk.Resume(r.Context(), viewerOf(r).actor(), op.ID); err != nil {
		return "", flash{}, err
	}
	return operationPath(op), flash{}, nil
}
