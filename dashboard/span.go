package dashboard

import (
	"slices"
	"time"

	"eventsv2/eventqueue/inspect"
)

// span is a time up to now that charts show.
type span struct {
	// name is what it is called in an address, short on a page, and words in a sentence.
	name, short, words string
	// step is the time of one point of a chart, and stepWords what a title says.
	length, step time.Duration
	stepWords    string
	// least is how much time a chart shows at least, where counting began later than the span.
	least time.Duration
}

// spans are the times to choose from. The first one is shown where none is chosen.
var spans = []span{
	{"1h", "1 h", "hour", time.Hour, time.Minute, "minute", 10 * time.Minute},
	{"6h", "6 h", "6 hours", 6 * time.Hour, 5 * time.Minute, "5 minutes", time.Hour},
	{"24h", "24 h", "24 hours", 24 * time.Hour, 30 * time.Minute, "half hour", 6 * time.Hour},
	{"7d", "7 d", "7 days", 7 * 24 * time.Hour, time.Hour, "hour", 24 * time.Hour},
}

// read is how much is read for the span: the first of the steps that are over begins up to a step before it.
func (s span) read() time.Duration { return s.length + s.step - time.Minute }

// byHour reports whether the hours that cron has summed up are read for the span, and only what came later by the minute.
func (s span) byHour() bool { return s.step >= time.Hour }

// afterHours is the time of which minutes are read beside hours: at least the last hour.
func afterHours(hours inspect.HourSums) time.Duration { return max(hours.Ago, shownFor) }

// followed are hours, and after them the minutes that came later.
func followed(hours, minutes []inspect.Minute, until time.Time) []inspect.Minute {
	first, _ := slices.BinarySearchFunc(minutes, until, func(m inspect.Minute, t time.Time) int { return m.Begins.Compare(t) })
	return slices.Concat(hours, minutes[first:])
}

// spanLink leads to a page with a span.
type spanLink struct {
	Text, Path string
	Current    bool
}

// links lead to a page with each span. The path ends where a parameter of its query may begin.
func (s span) links(path string) []spanLink {
	links := make([]spanLink, len(spans))
	for i, other := range spans {
		links[i] = spanLink{other.short, path + "range=" + other.name, other.name == s.name}
	}
	return links
}
