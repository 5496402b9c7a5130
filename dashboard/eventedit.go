package dashboard

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"

	"eventsv2/access"
	"eventsv2/eventqueue"
	"eventsv2/eventqueue/inspect"
	"eventsv2/eventqueue/operate"
	"eventsv2/internal/envelope"
	"eventsv2/internal/humantime"
)

// maxEditable is how long a value may be that a form shows.
const maxEditable = 32 << 10

// editForm is the page on which an event is edited.
type editForm struct {
	ID      eventqueue.EventID
	Handler string
	// Ended reports whether the event has failed or was cancelled: it is retried with what is edited.
	Ended      bool
	Value      string
	ValueShown bool
	// Hidden is why the value is not shown.
	Hidden     string
	Attributes string
	Due        string
	DueNow     time.Time
	Problem    string
	// Version identifies the content that the form was opened with.
	Version string
	content operate.Content
}

// editFormOf is the form as it is opened, if the event can be edited.
func editFormOf(who viewer, id eventqueue.EventID, of inspect.Shown) (form editForm, err error) {
	var event eventqueue.Event
	switch {
	case of.Queued != nil:
		event, form.DueNow = of.Queued.Event, of.Queued.DelayUntil
	case of.Logged.Status == inspect.LogCompleted:
		return form, problem{http.StatusConflict, "Event " + id.String() + " has completed", "It stays as it is."}
	default:
		event, form.Ended = of.Logged.Event, true
	}
	form.ID, form.Handler = id, line(event.Handler().String())
	if form.Attributes, err = asText(event.Attributes); err != nil {
		return form, err
	}
	form.Value, form.ValueShown = editable(event.Value)
	switch {
	case !who.May(access.ReadValues, event.Canvas):
		form.Value, form.ValueShown, form.Hidden = "", false, "You may not read the value. Leave this empty to keep it."
	case envelope.Is(event.Value):
		form.Value, form.ValueShown = "", false
		form.Hidden = "The value is encrypted: only the application can read it. Leave this empty to keep it. What you write here is stored in the clear."
	case !form.ValueShown:
		form.Hidden = "The value is too long to be shown here. Leave this empty to keep it."
	}
	form.content = operate.Content{Value: event.Value, Attributes: event.Attributes}
	seen := form.content
	if !who.May(access.ReadValues, event.Canvas) {
		seen.Value = nil
	}
	form.Version = seen.Version()
	return form, nil
}

// asText is a map of texts as it is shown in a form.
func asText(attributes map[string]string) (string, error) {
	if attributes == nil {
		attributes = map[string]string{}
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(attributes)
	return escapeJSON(strings.TrimSpace(b.String())), err
}

// editable is a value as it is shown in a form, indented, unless it is too long.
func editable(value json.RawMessage) (text string, ok bool) {
	var b bytes.Buffer
	if len(value) > maxEditable || json.Indent(&b, value, "", "  ") != nil {
		return "", false
	}
	text = escapeJSON(b.String())
	return text, len(text) <= maxEditable
}

// escapeJSON writes characters that are not printable, or that reorder the text around them, as escapes, which
// mean the same in JSON.
func escapeJSON(text string) string {
	var b strings.Builder
	for _, c := range text {
		switch {
		case c == '\n' || unicode.IsPrint(c):
			b.WriteRune(c)
		case c > 0xffff:
			high, low := utf16.EncodeRune(c)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, c)
		}
	}
	return b.String()
}

// compacted is JSON without spaces between its parts: a browser sends other ends of lines than it was given.
func compacted(text string) (json.RawMessage, error) {
	var b bytes.Buffer
	if err := json.Compact(&b, []byte(text)); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func (d *dashboard) editPage(r *http.Request) (string, any, error) {
	id, found, err := d.eventToChange(r)
	if err != nil {
		return "", nil, err
	}
	if d.Queue == nil {
		return "", nil, readOnly()
	}
	form, err := editFormOf(viewerOf(r), id, found)
	return "Edit event " + id.String(), form, err
}

func (d *dashboard) editEvent(r *http.Request) (string, flash, error) {
	id, found, err := d.eventToChange(r)
	if err != nil {
		return "", flash{}, err
	}
	form, err := editFormOf(viewerOf(r), id, found)
	if err != nil {
		return "", flash{}, err
	}
	version := r.PostFormValue("version")
	if version != "" && version != form.Version {
		return "", flash{}, problem{http.StatusConflict, "Event " + id.String() + " has changed since you opened the form",
			"Somebody else has changed its value or its attributes. Nothing was saved. Go back, copy what you wrote, and open the form again."}
	}
	edit, mistake := form.read(r)
	if mistake == nil && (edit.Value != nil || edit.Attributes != nil || edit.Retimes()) {
		mistake = edit.Check(d.Queue.Limits())
	}
	if mistake != nil {
		form.Problem = clean(mistake.Error())
		return "", flash{}, mistaken("edit", "Edit event "+id.String(), form)
	}
	if edit.Value == nil && edit.Attributes == nil && !edit.Retimes() {
		return eventPath(id), refused("Event " + id.String() + " was not changed: the form was left as it was."), nil
	}
	if version != "" {
		edit.Of = &form.content
	}
	if form.Ended {
		return d.apply(r, id, backInQueue, func(ctx context.Context, changer *operate.Changer, id eventqueue.EventID) ([]operate.Changed, error) {
			return changer.RetryEdited(ctx, edit, id)
		})
	}
	return d.apply(r, id, "It was changed.", func(ctx context.Context, changer *operate.Changer, id eventqueue.EventID) ([]operate.Changed, error) {
		return changer.Edit(ctx, edit, id)
	})
}

// read returns what a form that was sent changes, and leaves in the form what was written. The mistake is one of the user.
func (f *editForm) read(r *http.Request) (edit operate.Edit, mistake error) {
	before := *f
	f.Value, f.Attributes, f.Due = r.PostFormValue("value"), r.PostFormValue("attributes"), strings.TrimSpace(r.PostFormValue("due"))
	if before.ValueShown || strings.TrimSpace(f.Value) != "" {
		value, err := compacted(f.Value)
		if err != nil {
			return edit, fmt.Errorf("The value is no JSON: %w", err)
		}
		if same, err := compacted(before.Value); !before.ValueShown || err != nil || !bytes.Equal(same, value) {
			edit.Value = value
		}
	}
	attributes, err := compacted(f.Attributes)
	if err != nil {
		return edit, fmt.Errorf("The attributes are no JSON: %w", err)
	}
	if same, err := compacted(before.Attributes); err != nil || !bytes.Equal(same, attributes) {
		edit.Attributes = map[string]string{}
		if err := json.Unmarshal(attributes, &edit.Attributes); err != nil || edit.Attributes == nil {
			return edit, fmt.Errorf("The attributes are no object of texts: write them like %s", `{"customer": "ada"}`)
		}
	}
	if f.Due != "" {
		edit.DelayUntil, err = readTime(r, f.Due, humantime.ParseMoment)
	}
	return edit, err
}
