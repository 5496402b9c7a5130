package eventctl

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/inspect"
	"eventsv2/internal/printing"
)

// eventDoc is an event that has not ended, in JSON.
type eventDoc struct {
	ID       eventqueue.EventID  `json:"id"`
	Canvas   eventqueue.CanvasID `json:"canvas_id"`
	Module   string              `json:"module"`
	Name     string              `json:"name"`
	Modifier string              `json:"modifier"`
	State    inspect.State       `json:"state"`
	Retries  int                 `json:"retries"`
	Attempts int32               `json:"attempts"`
	// ClaimID is a string: many readers of JSON keep 53 bits of a number.
	ClaimID    string          `json:"claim_id,omitempty"`
	Begun      bool            `json:"begun"`
	EnqueuedAt time.Time       `json:"enqueued_at"`
	DelayUntil time.Time       `json:"delay_until"`
	LockedAt   *time.Time      `json:"locked_at"`
	NotifiedAt *time.Time      `json:"notified_at"`
	ValueBytes int             `json:"value_bytes"`
	Value      json.RawMessage `json:"value,omitempty"`
	Ordering   string          `json:"ordering_key,omitempty"`
	LastError  string          `json:"last_error,omitempty"`
	originDoc
	Holder *workerDoc `json:"holder,omitempty"`
}

// originDoc is the part of an event that says where it comes from, in JSON.
type originDoc struct {
	Parent     *eventqueue.EventID `json:"parent_id,omitempty"`
	Original   *eventqueue.EventID `json:"replayed_from,omitempty"`
	Attributes map[string]string   `json:"attributes,omitempty"`
}

func originDocOf(e eventqueue.Event) (doc originDoc) {
	doc.Original = originalOf(e.Attributes)
	if doc.Attributes = e.Attributes; e.ParentID != 0 {
		doc.Parent = &e.ParentID
	}
	return doc
}

func eventDocOf(e inspect.QueuedEvent) eventDoc {
	doc := eventDoc{e.ID, e.Canvas, e.Module, e.Name, e.Modifier, e.State, e.Retries, e.Attempts, claimText(e.ClaimID), e.Begun,
		e.EnqueuedAt.UTC(), e.DelayUntil.UTC(), printing.UTC(e.LockedAt), printing.UTC(e.NotifiedAt), e.ValueBytes, printing.JSONValue(e.Value), e.OrderingKey, e.LastError, originDocOf(e.Event), nil}
	if e.Holder != nil {
		doc.Holder = new(workerDocOf(*e.Holder))
	}
	return doc
}

// claimText is empty for no claim.
func claimText(id eventqueue.ClaimID) string {
	if id == 0 {
		return ""
	}
	return strconv.FormatInt(int64(id), 10)
}

// handlerCells are the last columns of a table of events.
func handlerCells(e eventqueue.Event) []string {
	return []string{printing.Printable(e.Module), printing.Printable(e.Name), printing.Printable(e.Modifier), e.Canvas.String()}
}

// logDoc is an event that has ended, in JSON.
type logDoc struct {
	ID        eventqueue.EventID  `json:"id"`
	Canvas    eventqueue.CanvasID `json:"canvas_id"`
	Module    string              `json:"module"`
	Name      string              `json:"name"`
	Modifier  string              `json:"modifier"`
	Status    inspect.LogStatus   `json:"status"`
	Retries   int                 `json:"retries"`
	Attempts  int32               `json:"attempts"`
	LastError *string             `json:"last_error"`
	// Reason and Actor are of a cancelled event.
	Reason     string          `json:"reason,omitempty"`
	Actor      string          `json:"actor,omitempty"`
	EnqueuedAt time.Time       `json:"enqueued_at"`
	EndedAt    time.Time       `json:"ended_at"`
	ValueBytes int             `json:"value_bytes"`
	Value      json.RawMessage `json:"value,omitempty"`
	originDoc
}

func logDocOf(e inspect.LogEntry) logDoc {
	doc := logDoc{ID: e.ID, Canvas: e.Canvas, Module: e.Module, Name: e.Name, Modifier: e.Modifier, Status: e.Status, Reason: e.Reason, Actor: e.Actor,
		Retries: e.Retries, Attempts: e.Attempts, EnqueuedAt: e.EnqueuedAt.UTC(), EndedAt: e.EndedAt.UTC(),
		ValueBytes: e.ValueBytes, Value: printing.JSONValue(e.Value), originDoc: originDocOf(e.Event)}
	if e.Status == inspect.LogFailed {
		doc.LastError = &e.LastError
	}
	return doc
}

// writeValue writes the value of an event as equivalent JSON with printable characters only.
func writeValue(w io.Writer, e eventqueue.Event) {
	_, _ = fmt.Fprintf(w, "value, %s:\n%s\n", printing.Plural(len(e.Value), "byte"), printing.PrintableJSON(e.Value))
}
