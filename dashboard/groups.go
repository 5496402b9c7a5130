package dashboard

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/inspect"
	"eventsv2/eventqueue/operate"
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
	Groups []groupRow
	// Next goes on where the page ends, and First is the page without its position, for one that is not the first.
	Next, First string
	Rates       []rateRow
	MoreRates   int
	Limits      []inspect.LimitInUse
	// MoreLimits reports whether there are more concurrency limits than those shown.
	MoreLimits bool
}

// groupRow is an ordering group, with the reason why its first event does not run, or that it does.
type groupRow struct {
	inspect.WaitingGroup
	State inspect.State // of the first event; empty: it has ended meanwhile
	Why   string
}

// rateRow is a rate limit with what has begun to run in its windows.
type rateRow struct {
	operate.RateStatus
	Minute, Day window
}

// window is what is used of a window of a rate limit; Most is 0 where there is no such limit.
type window struct {
	Used, Most int64
	Ends       string
}

// Full reports whether nothing more begins in the window.
func (w window) Full() bool { return w.Most > 0 && w.Used >= w.Most }

// High is from where on the window is nearly full.
func (w window) High() int64 { return w.Most * 9 / 10 }

// Shown is the part of the window that is used as a bar shows it.
func (w window) Shown() int64 { return min(w.Used, w.Most) }

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
	data := groupsData{Canvas: q.Get("canvas")}
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
	if data.Rates, err = d.rates(r, filter.Canvas); err != nil {
		return "", nil, err
	}
	data.MoreRates = max(0, len(data.Rates)-limitsShown)
	data.Rates = data.Rates[:len(data.Rates)-data.MoreRates]
	if data.Limits, err = d.Reader.LimitsInUse(r.Context(), filter.Canvas, limitsShown+1); err != nil {
		return "", nil, err
	}
	if data.MoreLimits = len(data.Limits) > limitsShown; data.MoreLimits {
		data.Limits = data.Limits[:limitsShown]
	}
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
		rows[i] = groupRow{WaitingGroup: groups[i], Why: explained[i].Because().Why}
		if queued := explained[i].Shown.Queued; queued != nil {
			rows[i].State = queued.State
		}
	}
	slices.SortStableFunc(rows, func(a, b groupRow) int { return cmp.Compare(b.Waiting, a.Waiting) })
	return rows, nil
}

// rates returns the rate limits with their use, the fullest first.
func (d *dashboard) rates(r *http.Request, canvas *eventqueue.CanvasID) ([]rateRow, error) {
	limits, err := d.Store.RateLimits(r.Context(), canvas)
	if err != nil {
		return nil, err
	}
	rows := make([]rateRow, len(limits))
	for i := range limits {
		l := &limits[i]
		rows[i] = rateRow{*l, window{l.MinuteUsed, int64(l.PerMinute), span(l.MinuteLeft)}, window{l.DayUsed, int64(l.PerDay), span(l.DayLeft)}}
	}
	slices.SortStableFunc(rows, func(a, b rateRow) int {
		return cmp.Or(cmp.Compare(b.Waiting, a.Waiting), cmp.Compare(b.used(), a.used()))
	})
	return rows, nil
}

// used is which part of the fuller window is used.
func (r rateRow) used() (part float64) {
	for _, w := range []window{r.Minute, r.Day} {
		if w.Most > 0 {
			part = max(part, float64(w.Used)/float64(w.Most))
		}
	}
	return part
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
