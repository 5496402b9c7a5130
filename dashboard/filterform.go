package dashboard

import (
	"net/url"
	"slices"
	"strings"
	"time"

	"eventsv2/eventqueue/inspect"
	"eventsv2/eventqueue/operate"
)

// filterForm is the filter as it stands in the URL.
type filterForm struct {
	ID, Canvas, Module, Name, Attribute, State string
	// Modifier and the keys are compared with those of the events that the page reads.
	Modifier, OrderingKey, UniqueKey string
	// Error and ErrorGroup are part and group of the error of failed events. Within is how many hours ago events ended, or
	// were emitted if they have not, at most.
	Error, ErrorGroup, Within string
	// Order is newestFirst, or empty; events that have ended come so in any case.
	Order  string
	States []inspect.State
}

// newestFirst is the order in which the newest events come first.
const newestFirst = "newest"

// Further reports whether the form has something that few need.
func (f filterForm) Further() bool {
	return f.Attribute+f.Modifier+f.OrderingKey+f.UniqueKey != ""
}

// formOf reads the filter of an address, or of a form.
func formOf(value func(string) string) filterForm {
	return filterForm{ID: strings.TrimSpace(value("id")), Canvas: strings.TrimSpace(value("canvas")), Module: value("module"), Name: value("name"),
		Attribute: value("attribute"), Modifier: value("modifier"), OrderingKey: value("ordering_key"), UniqueKey: value("unique_key"), Order: value("order"),
		State: value("state"), Error: value("error"), ErrorGroup: value("error_group"), Within: value("within"), States: inspect.States()}
}

// query is the filter as an address has it.
func (f filterForm) query() url.Values {
	return filled(url.Values{"canvas": {f.Canvas}, "module": {f.Module}, "name": {f.Name}, "attribute": {f.Attribute}, "state": {f.State},
		"modifier": {f.Modifier}, "ordering_key": {f.OrderingKey}, "unique_key": {f.UniqueKey}, "order": {f.Order}, "error": {f.Error}, "error_group": {f.ErrorGroup}, "within": {f.Within}})
}

// withins are for how long a form offers to look back.
var withins = []choice{{"1", "1 hour"}, {"6", "6 hours"}, {"24", "1 day"}, {"168", "7 days"}}

// logged is the filter of events that have ended.
func (f filterForm) logged(filter inspect.Filter, status inspect.LogStatus) inspect.LogFilter {
	return inspect.LogFilter{Filter: filter, Status: status, Error: f.Error, ErrorGroup: f.ErrorGroup, NewerThan: f.within()}
}

// within is how long ago what is selected ended, at most; 0: it does not matter.
func (f filterForm) within() time.Duration { return time.Duration(numberOf(f.Within)) * time.Hour }

func logStatus(state string) (inspect.LogStatus, bool) {
	for _, status := range []inspect.LogStatus{inspect.LogCompleted, inspect.LogFailed, inspect.LogCancelled} {
		if strings.EqualFold(state, string(status)) {
			return status, true
		}
	}
	return "", false
}

// maxWithin is how many hours a filter looks back, at most.
const maxWithin = 10 * 366 * 24

// addTo adds what the form says beside the canvas.
func (f filterForm) addTo(filter *inspect.Filter) error {
	for _, text := range []string{f.Module, f.Name, f.Attribute, f.Modifier, f.OrderingKey, f.UniqueKey, f.Error, f.ErrorGroup} {
		if !isField(text) {
			return badFilter("Module, name, modifier, keys, attribute and error are texts of at most 1,024 bytes of UTF-8.")
		}
	}
	if f.Within != "" && (numberOf(f.Within) < 1 || numberOf(f.Within) > maxWithin) {
		return badFilter("How long ago it ended or was emitted is a number of hours, up to ten years. Choose one of the list.")
	}
	filter.Module, filter.Name, filter.Modifier, filter.OrderingKey, filter.UniqueKey = f.Module, f.Name, f.Modifier, f.OrderingKey, f.UniqueKey
	if f.Attribute != "" {
		key, value, ok := strings.Cut(f.Attribute, "=")
		if !ok {
			return badFilter("Write the attribute as key=value.")
		}
		filter.Attributes = map[string]string{key: value}
	}
	_, ended := logStatus(f.State)
	if f.State != "" && !ended && !slices.Contains(inspect.States(), inspect.State(f.State)) {
		return badFilter("There is no such state. Choose one of the list.")
	}
	if !ended {
		filter.EmittedWithin = f.within()
	}
	if failed := strings.EqualFold(f.State, string(inspect.LogFailed)); !failed && f.Error+f.ErrorGroup != "" {
		return badFilter("Errors are searched among failed events: choose that state.")
	}
	if f.Order != "" && f.Order != newestFirst {
		return badFilter("There is no such order. Choose one of the list.")
	}
	return nil
}

// onlyShown reports whether the page shows fewer events than a change of all that it selects would change: changes have no such
// conditions.
func (f filterForm) onlyShown() bool {
	return f.Modifier+f.OrderingKey+f.UniqueKey != "" || !isEnded(f.State) && f.Within != ""
}

// selects is the filter of a page as that of a change.
func (f filterForm) selects(filter inspect.Filter) operate.EventFilter {
	return operate.EventFilter{Canvas: filter.Canvas, Module: filter.Module, Name: filter.Name, Attributes: filter.Attributes, State: operate.EventState(strings.ToLower(f.State)),
		Error: f.Error, ErrorGroup: f.ErrorGroup, NewerThan: f.within()}
}

// filled leaves out what is empty.
func filled(q url.Values) url.Values {
	for key := range q {
		if q.Get(key) == "" {
			q.Del(key)
		}
	}
	return q
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
