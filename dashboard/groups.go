package dashboard

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"

	"eventsv2/access"
	"eventsv2/eventqueue"
	"eventsv2/eventqueue/inspect"
	"eventsv2/internal/view"
)

const (
	// groupsShown is how many ordering groups a page lists; the first event of each is explained.
	groupsShown = 20
	// limitsShown is how many limits of each kind the page lists.
	limitsShown = 50
)

// groupsData is the page of ordering groups and limits.
type groupsData struct {
	Canvas string
	// Module and Name are those of the handler that the forms begin with, and MaySet reports whether the viewer may set limits.
	Module, Name string
	MaySet       bool
	Groups       []groupRow
	// Next goes on where the page ends, and First is the page without its position, for one that is not the first.
	Next, First string
	Rates       []view.RateStatus
	MoreRates   int
	Limits      []view.LimitInUse
	// MoreLimits reports whether there are more concurrency limits than those shown.
	MoreLimits bool
}

// groupRow is an ordering group, with the reason why its first event does not run, or that it does.
type groupRow struct {
	inspect.WaitingGroup
	Limit view.ConcurrencyLimit // of the group
	State inspect.State         // of the first event; empty: it has ended meanwhile
	Why   string
}

func (d *dashboard) groups(r *http.Request) (string, any, error) {
	filter, err := d.filter(r)
	if err != nil {
		return "", nil, err
	}
	q := r.URL.Query()
	after, err := groupPlace(q.Get("after"))
	if err != nil {
		return "", nil, err
	}
	data := groupsData{Canvas: canvasText(r, filter.Canvas), Module: q.Get("module"), Name: q.Get("name"), MaySet: d.mayChangeOn(r, access.Administer, filter.Canvas)}
	if after != (inspect.GroupPlace{}) {
		data.First = d.Prefix + "/groups?" + without(q, "after").Encode()
	}
	groups, next, err := d.Reader.WaitingGroups(r.Context(), filter.Canvas, after, groupsShown)
	if err != nil {
		return "", nil, err
	}
	if next != nil {
		data.Next = d.Prefix + "/groups?" + withGroup(q, *next).Encode()
	}
	if data.Groups, err = d.explainGroups(r, groups); err != nil {
		return "", nil, err
	}
	rates, err := d.Store.RateLimits(r.Context(), filter.Canvas)
	if err != nil {
		return "", nil, err
	}
	data.Rates = ratesOf(rates)
	data.MoreRates = max(0, len(data.Rates)-limitsShown)
	data.Rates = data.Rates[:len(data.Rates)-data.MoreRates]
	limits, err := d.Reader.LimitsInUse(r.Context(), filter.Canvas, limitsShown+1)
	if err != nil {
		return "", nil, err
	}
	data.MoreLimits = len(limits) > limitsShown
	data.Limits = view.All(limits[:min(len(limits), limitsShown)], view.LimitInUseOf)
	return "Ordering groups and limits", data, nil
}

// explainGroups says of the first event of each group what it waits for; the groups with the most waiting come first.
func (d *dashboard) explainGroups(r *http.Request, groups []inspect.WaitingGroup) ([]groupRow, error) {
	heads := make([]eventqueue.EventID, len(groups))
	for i := range groups {
		heads[i] = groups[i].Head
	}
	explained, err := d.Reader.ExplainMany(r.Context(), heads)
	if err != nil {
		return nil, err
	}
	rows := make([]groupRow, len(groups))
	for i := range groups {
		rows[i] = groupRow{WaitingGroup: groups[i], Limit: view.ConcurrencyLimitOf(groups[i].Of), Why: explained[i].Because().Why}
		if queued := explained[i].Shown.Queued; queued != nil {
			rows[i].State = queued.State
		}
	}
	slices.SortStableFunc(rows, func(a, b groupRow) int { return cmp.Compare(b.Waiting, a.Waiting) })
	return rows, nil
}

// withGroup is an address that goes on after a group. The name of a group may have characters that an address has not.
func withGroup(q url.Values, place inspect.GroupPlace) url.Values {
	text, err := json.Marshal(place)
	if err != nil {
		return q // texts and bytes can always be written
	}
	q = without(q, "after")
	q.Set("after", base64.RawURLEncoding.EncodeToString(text))
	return q
}

func groupPlace(after string) (place inspect.GroupPlace, err error) {
	if after == "" {
		return place, nil
	}
	text, err := base64.RawURLEncoding.DecodeString(after)
	if err != nil || json.Unmarshal(text, &place) != nil || !isField(place.Group) {
		return place, badFilter("Go back to the first page.")
	}
	return place, nil
}
