package view

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/inspect"
	"eventsv2/eventqueue/operate"
	"eventsv2/internal/envelope"
	"eventsv2/internal/humantime"
)

// Event is an event in the queue, or one that has ended.
type Event struct {
	ID         eventqueue.EventID  `json:"id"`
	Canvas     eventqueue.CanvasID `json:"canvas_id" format:"uuid"`
	Module     string              `json:"module"`
	Name       string              `json:"name"`
	Modifier   string              `json:"modifier"`
	State      string              `json:"state" doc:"One of the states by which GET /v1/events filters; of an event that has ended, one of those of GET /v1/history."`
	Value      json.RawMessage     `json:"value,omitempty" doc:"Only of one event, for readers of values."`
	ValueBytes int                 `json:"value_bytes"`

	EncryptedWith int64 `json:"encrypted_with,omitempty" doc:"Only of one event: id of the key that its value is encrypted with. Only the application can read it, and value is absent."`

	Result   json.RawMessage `json:"result,omitempty" doc:"Only of one event that has completed, for readers of values: what its handler has set."`
	RunLog   string          `json:"run_log,omitempty" doc:"Only of one event that has completed or failed, for readers of values: the last lines that were logged with the context of its last run, if the program attaches them."`
	Progress *Progress       `json:"progress,omitempty" doc:"How far the run is that goes on, if its handler reports it."`

	Attributes map[string]string  `json:"attributes,omitempty"`
	ParentID   eventqueue.EventID `json:"parent_id,omitempty"`
	Original   eventqueue.EventID `json:"replayed_from,omitempty" doc:"The event that it repeats, if it was emitted again from the history."`

	OrderingKey string     `json:"ordering_key,omitempty"`
	UniqueKey   string     `json:"unique_key,omitempty" doc:"Under which it was emitted."`
	Priority    string     `json:"priority,omitempty" doc:"high or low; absent of one of normal priority, and of one that has ended."`
	Retries     int        `json:"retries" doc:"How many of its runs have failed."`
	Attempts    int32      `json:"attempts" doc:"How often it has been claimed."`
	ClaimID     string     `json:"claim_id,omitempty" doc:"Number of the last claim, which its worker logs: a text, as many readers of JSON keep 53 bits of a number."`
	Begun       bool       `json:"begun,omitempty" doc:"The run of that claim is known to have begun."`
	EnqueuedAt  time.Time  `json:"enqueued_at"`
	DelayUntil  *time.Time `json:"delay_until,omitempty" doc:"When it is due; absent of one that has ended."`
	LockedAt    *time.Time `json:"locked_at,omitempty" doc:"When its lock was last taken or renewed."`
	NotifiedAt  *time.Time `json:"notified_at,omitempty" doc:"When a notification was last published; absent while one is pending."`
	EndedAt     *time.Time `json:"ended_at,omitempty"`
	LastError   string     `json:"last_error,omitempty"`
	Cancelling  bool       `json:"cancelling,omitempty" doc:"It was cancelled while a worker runs it, which ends the run; it is not run again."`
	Reason      string     `json:"reason,omitempty" doc:"Why it was cancelled."`
	Actor       string     `json:"actor,omitempty" doc:"Who has cancelled it."`
	Holder      *Process   `json:"holder,omitempty" doc:"The worker that has its lock, also one that has expired."`
	Version     string     `json:"version,omitempty" doc:"Only of one event that has not completed: another one when its value or its attributes have changed. Without the right to read values, of its attributes."`

	// AsOf is the database's clock, by which the event was read.
	AsOf time.Time `json:"-"`
}

// Progress is what a handler has reported of its run.
type Progress struct {
	Fraction float64   `json:"fraction" doc:"Of 0 to 1."`
	Note     string    `json:"note,omitempty"`
	At       time.Time `json:"at" doc:"When it was written."`
}

// Percent is the fraction in whole percent.
func (p Progress) Percent() int { return int(math.Round(p.Fraction * 100)) }

func eventOf(e eventqueue.Event) Event {
	key, encrypted := envelope.Key(e.Value)
	if encrypted {
		e.Value = nil
	}
	return Event{EncryptedWith: int64(key), ID: e.ID, Canvas: e.Canvas, Module: e.Module, Name: e.Name, Modifier: e.Modifier, Value: JSONValue(e.Value), Attributes: e.Attributes,
		Priority: e.Priority, ParentID: e.ParentID, Original: operate.OriginalOf(e.Attributes), Retries: e.Retries, EnqueuedAt: e.EnqueuedAt.UTC()}
}

// EventOf is an event in the queue.
func EventOf(q inspect.QueuedEvent) Event {
	e := eventOf(q.Event)
	e.State, e.ValueBytes, e.OrderingKey, e.Attempts, e.Begun = string(q.State), q.ValueBytes, q.OrderingKey, q.Attempts, q.Begun
	e.UniqueKey = q.UniqueKey
	e.LastError, e.AsOf = q.LastError, q.AsOf
	e.DelayUntil, e.LockedAt, e.NotifiedAt = new(q.DelayUntil.UTC()), utc(q.LockedAt), utc(q.NotifiedAt)
	if q.ClaimID != 0 {
		e.ClaimID = strconv.FormatInt(int64(q.ClaimID), 10)
	}
	if c := q.Cancellation; c != nil {
		e.Cancelling, e.Reason, e.Actor = true, c.Reason, c.Actor
	}
	if q.Progress != nil {
		e.Progress = &Progress{q.Progress.Fraction, q.Progress.Note, q.Progress.At.UTC()}
	}
	if q.Holder != nil {
		e.Holder = new(processOf(*q.Holder))
	}
	return e
}

// EndedEventOf is an event that has ended.
func EndedEventOf(l inspect.LogEntry) Event {
	e := eventOf(l.Event)
	e.State, e.ValueBytes, e.Attempts, e.LastError, e.AsOf = EndState(l.Status), l.ValueBytes, l.Attempts, l.LastError, l.AsOf
	e.OrderingKey, e.UniqueKey = l.OrderingKey, l.UniqueKey
	e.EndedAt, e.Reason, e.Actor, e.RunLog = new(l.EndedAt.UTC()), l.Reason, l.Actor, l.RunLog
	if !envelope.Is(l.Result) {
		e.Result = JSONValue(l.Result)
	}
	return e
}

// EndState is the state of an event that has ended.
func EndState(status inspect.LogStatus) string { return strings.ToLower(string(status)) }

// FoundEvent is an event wherever it was found; nil: in neither table.
func FoundEvent(queued *inspect.QueuedEvent, logged *inspect.LogEntry) *Event {
	switch {
	case queued != nil:
		return new(EventOf(*queued))
	case logged != nil:
		return new(EndedEventOf(*logged))
	default:
		return nil
	}
}

// JSONValue returns a value that can be part of a JSON document. A text that is not JSON becomes a string.
func JSONValue(value []byte) json.RawMessage {
	if len(value) == 0 || json.Valid(value) {
		return value
	}
	text, _ := json.Marshal(string(value)) // a string always becomes JSON
	return text
}

// Encrypted is the sentence about a value that is encrypted; "" for one that is not.
func (e Event) Encrypted() string {
	if e.EncryptedWith == 0 {
		return ""
	}
	return fmt.Sprintf("encrypted, with key %d; only the application can read it", e.EncryptedWith)
}

// Handler is the key of the event's handler.
func (e Event) Handler() eventqueue.HandlerKey {
	return eventqueue.HandlerKey{Module: e.Module, Name: e.Name, Modifier: e.Modifier}
}

// Ended reports whether the event has ended.
func (e Event) Ended() bool { return e.EndedAt != nil }

// CanRetry reports whether the event has ended and can be put back into the queue.
func (e Event) CanRetry() bool { return e.Ended() && e.State != EndState(inspect.LogCompleted) }

// Age is for how long the event has been there.
func (e Event) Age() string { return humantime.Age(e.AsOf.Sub(e.EnqueuedAt)) }

// When is how long ago a time of the event was, or in how long it comes; "" for none.
func (e Event) When(t *time.Time) string { return when(t, e.AsOf) }

// TimeAndAge is a time of the event, and When in brackets; "" for none.
func (e Event) TimeAndAge(t *time.Time) string {
	if t == nil {
		return ""
	}
	return humantime.TimeAndAge(*t, e.AsOf)
}

// Notified is when the event's last notification was published, or that one is pending.
func (e Event) Notified() string {
	if e.NotifiedAt == nil {
		return "pending"
	}
	return e.When(e.NotifiedAt)
}

// WhyEnded is the error of an event that failed, or why and by whom one was cancelled.
func (e Event) WhyEnded() string {
	switch {
	case e.Reason != "" && e.Actor != "":
		return e.Reason + " (" + e.Actor + ")"
	case e.State == EndState(inspect.LogCancelled):
		return e.Reason + e.Actor
	default:
		return e.LastError
	}
}
