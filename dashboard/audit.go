package dashboard

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"eventsv2/access"
	"eventsv2/eventqueue"
	"eventsv2/eventqueue/audit"
	"eventsv2/eventqueue/operate"
	"eventsv2/internal/view"
)

const (
	// auditShown is how many changes a page lists.
	auditShown = 50
	// differencesShown is how many lines a change has on it.
	differencesShown = 8
	// maxDifferenceBytes is how long a side of such a line is.
	maxDifferenceBytes = 120
)

// auditForm is the filter as it stands in the URL.
type auditForm struct{ Canvas, Actor, Action, Event string }

type auditData struct {
	Form        auditForm
	Entries     []auditRow
	Next, First string
}

type auditRow struct {
	view.AuditRow
	On          string
	Link        string             // of the page of what was changed, if there is one
	Event       eventqueue.EventID // 0 for none, or for several
	Differences []difference
	More        int
}

// difference is one field before and after a change.
type difference struct{ What, Before, After string }

func (d *dashboard) audit(r *http.Request) (string, any, error) {
	who, q := viewerOf(r), r.URL.Query()
	form := auditForm{Canvas: q.Get("canvas"), Actor: q.Get("actor"), Action: strings.ReplaceAll(q.Get("action"), " ", "_"), Event: q.Get("event")}
	for _, text := range []string{form.Actor, form.Action} {
		if !isField(text) {
			return "", nil, badFilter("Who and what are texts of at most 1,024 bytes of UTF-8.")
		}
	}
	chosen, err := d.filter(r)
	if err != nil {
		return "", nil, err
	}
	filter := audit.Filter{Canvases: who.Identity.Canvases(access.Read), Actor: form.Actor, Action: form.Action}
	if chosen.Canvas != nil && form.Canvas != "" {
		filter.Canvases = []eventqueue.CanvasID{*chosen.Canvas}
	}
	if filter.Event, err = parseAfter(form.Event); err != nil {
		return "", nil, err
	}
	before, err := parseAfter(q.Get("before"))
	if err != nil {
		return "", nil, err
	}
	entries, err := audit.NewLog(d.Store.Schema(), d.Store.Pool()).List(r.Context(), filter, int64(before), auditShown)
	if err != nil {
		return "", nil, err
	}
	data := auditData{Form: form}
	for _, entry := range entries {
		data.Entries = append(data.Entries, rowOf(who, entry))
	}
	rest := without(q, "before")
	if before > 0 {
		data.First = d.Prefix + "/audit?" + rest.Encode()
	}
	if len(entries) == auditShown {
		rest.Set("before", strconv.FormatInt(entries[auditShown-1].ID, 10))
		data.Next = d.Prefix + "/audit?" + rest.Encode()
	}
	return "Audit", data, nil
}

// rowOf is an entry as its reader may see it.
func rowOf(who viewer, e audit.Entry) auditRow {
	row := auditRow{AuditRow: view.AuditRowOf(e, who.mayOn(access.ReadValues, e.Canvas))}
	before, after := row.Before, row.After
	var target auditTarget
	if json.Unmarshal(e.Target, &target) == nil && len(target.Events) == 1 {
		row.Event = target.Events[0]
		before, after = only(before, row.Event), only(after, row.Event)
	}
	if row.On = target.String(); row.On == "" {
		row.On = targetText(e.Target)
	}
	row.Link = target.link(e.Canvas)
	row.Differences = differences(before, after)
	if len(row.Differences) > differencesShown {
		row.More = len(row.Differences) - differencesShown
		row.Differences = row.Differences[:differencesShown]
	}
	return row
}

// auditTarget is what was changed, as the log names it.
type auditTarget struct {
	Events    []eventqueue.EventID
	Handler   *auditHandler
	RateLimit *auditHandler `json:"rate_limit"`
	// ConcurrencyLimit is the group of the limit.
	ConcurrencyLimit string `json:"concurrency_limit"`
	Setting, Cron    string
	Token, Name      string
	// Operation identifies the change of many events that the entry is part of.
	Operation string
}

type auditHandler struct {
	Module, Name, Modifier string
	Prefix                 bool
}

// String names the handlers.
func (h auditHandler) String() string {
	text := line(h.Module) + " / " + line(h.Name)
	switch {
	case h.Module == "" && h.Name == "":
		return "the whole canvas"
	case h.Prefix:
		text = "all of " + line(h.Module) + " whose names begin with " + line(h.Name)
	}
	if h.Modifier != "" {
		text += ", modifier " + line(h.Modifier)
	}
	return text
}

// String names the target in words; it is empty if there are none for it.
func (t auditTarget) String() string {
	switch {
	case t.Operation != "":
		return "bulk operation"
	case t.Handler != nil:
		return t.Handler.String()
	case t.RateLimit != nil:
		return "rate limit of " + t.RateLimit.String()
	case t.ConcurrencyLimit != "":
		limit := operate.LimitOfGroup(eventqueue.CanvasID{}, t.ConcurrencyLimit, 0)
		switch {
		case limit.EveryKey:
			return "concurrency limit of each ordering key"
		case limit.Key != "":
			return "concurrency limit of ordering key " + line(limit.Key)
		}
		return "concurrency limit of " + auditHandler{Module: limit.Module, Name: limit.Name}.String()
	case t.Setting != "":
		return "setting " + line(t.Setting)
	case t.Cron != "":
		return "cron " + line(t.Cron)
	case t.Token != "" && t.Name != "":
		return "token " + line(t.Name)
	default:
		return ""
	}
}

// link is the page of the target; empty if it has none.
func (t auditTarget) link(canvas *eventqueue.CanvasID) string {
	if t.Operation != "" {
		return "/operations/" + url.PathEscape(t.Operation)
	}
	h := cmp.Or(t.Handler, t.RateLimit)
	if h == nil || h.Prefix || h.Name == "" || canvas == nil {
		return ""
	}
	return handlerPath(eventqueue.Scope{Canvas: *canvas, Module: h.Module, Name: h.Name})
}

// only returns what a document has of one event.
func only(document json.RawMessage, id eventqueue.EventID) json.RawMessage {
	var events map[string]json.RawMessage
	if json.Unmarshal(document, &events) != nil {
		return document
	}
	return events[id.String()]
}

// ownFields are fields that an entry has elsewhere.
var ownFields = []string{"id", "canvas_id", "event_space", "handler_name", "rule_type", "created_at"}

// targetText describes the changed object in a line.
func targetText(target json.RawMessage) string {
	leaves := map[string]string{}
	flatten("", target, leaves)
	var text []byte
	for _, key := range sortedKeys(leaves) {
		text = append(text, key+" "+leaves[key]+"  "...)
	}
	return line(string(text))
}

// differences lists what two documents do not have in common, by the names of their fields.
func differences(before, after json.RawMessage) (list []difference) {
	old, now := map[string]string{}, map[string]string{}
	flatten("", before, old)
	flatten("", after, now)
	changed := len(old) > 0 && len(now) > 0 // and not made, or removed
	all := map[string]string{}
	for key := range old {
		all[key] = ""
	}
	for key := range now {
		all[key] = ""
	}
	for _, key := range sortedKeys(all) {
		value := key == "value_sha256" && old["value"] != now["value"] // it stands for values that are too long for the log
		none := old[key]+now[key] == "0"
		if old[key] != now[key] && !value && !none && !slices.Contains(ownFields, key) {
			if changed && old[key] == "true" {
				now[key] = "false" // which is as if it were absent
			}
			if changed && now[key] == "true" {
				old[key] = "false"
			}
			list = append(list, difference{strings.ReplaceAll(line(key), "_", " "), side(old[key]), side(now[key])})
		}
	}
	return list
}

func side(text string) string {
	if text == "" {
		return "–"
	}
	short, cut := shorten(text, maxDifferenceBytes)
	if cut {
		short += " …"
	}
	return line(short)
}

func sortedKeys(m map[string]string) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// flatten adds the fields of objects, and of objects and lists in them, with what stands there. What is null,
// false or empty is as if it were absent.
func flatten(at string, document json.RawMessage, leaves map[string]string) {
	within := func(key string) string { return strings.TrimSpace(at + " " + key) }
	var fields map[string]json.RawMessage
	var list []json.RawMessage
	var text string
	switch document = bytes.TrimSpace(document); {
	case json.Unmarshal(document, &fields) == nil:
		for key, field := range fields {
			flatten(within(key), field, leaves)
		}
	case json.Unmarshal(document, &list) == nil && len(list) == 1:
		flatten(at, list[0], leaves)
	case len(list) > 1 && list[0][0] == '{':
		for i, element := range list {
			flatten(within(strconv.Itoa(i+1)), element, leaves)
		}
	case json.Unmarshal(document, &text) == nil:
		leaves[at] = text
	case len(document) > 0 && string(document) != "false":
		leaves[at] = string(document)
	}
}
