package dashboard

import (
	"fmt"
	"net/url"
	"slices"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/inspect"
	"eventsv2/eventqueue/operate"
	"eventsv2/internal/humantime"
	"eventsv2/internal/printing"
)

// trouble is something that is wrong now, with the page that helps.
type trouble struct{ What, Detail, Link, Text string }

const (
	// lateAfter is how long an event may be due before that is worth a word.
	lateAfter = 5 * time.Minute
	// growsAfter is how long it must be due if that was less some minutes before.
	growsAfter = 2 * time.Minute
	// troublesOfAKind is how many handlers with the same trouble are named.
	troublesOfAKind = 3
)

// reporter collects troubles for a viewer.
type reporter struct {
	base string
	who  viewer
	list []trouble
}

func (r *reporter) add(link, text, format string, args ...any) {
	if link == "/workers" && !r.who.MayReadAll() {
		link, text = "", ""
	}
	if link != "" {
		link = r.base + link
	}
	r.list = append(r.list, trouble{What: fmt.Sprintf(format, args...), Link: link, Text: text})
}

// troubles lists what is wrong, the worst first. failed counts the events that failed for good in the last hour.
func (d *dashboard) troubles(p part, failed int64, who viewer) []trouble {
	r := &reporter{base: d.Prefix, who: who}
	rules := r.held(p.rules)
	workers := live(p.workers)
	if workers == 0 {
		r.add("/workers", "See the workers", "No worker is connected: no event runs.")
	}
	if s := p.stands; s != nil {
		r.stands(s)
	}
	if !p.relayRuns {
		r.add("/workers", "See the workers", "No relay is connected: delayed events, retries and lost notifications wait, and nobody counts what is pending. Start cmd/cron, which runs it.")
	}
	if p.foreign {
		r.add("/workers", "See the workers", "This subscription has notifications of another queue, which takes those of this one: events start late. Give each queue a topic and a subscription of its own.")
	}
	if p.queueHolder != "" {
		r.queue(p)
	}
	if workers > 0 {
		r.unknown(p)
	}
	r.late(p)
	r.failing(p)
	if failed > 0 {
		r.add("/failed?within=1", "See what failed", "%s failed for good in the last hour.", printing.Plural(failed, "event"))
	}
	switch n := len(rules); {
	case n == 1:
		r.add("/handlers", "See the handlers", "1 pause or block holds events back.")
	case n > 1:
		r.add("/handlers", "See the handlers", "%d pauses and blocks hold events back.", n)
	}
	return r.list
}

// held reports that the whole queue is held, and returns the other rules.
func (r *reporter) held(rules []operate.Rule) []operate.Rule {
	return slices.DeleteFunc(slices.Clone(rules), func(rule operate.Rule) bool {
		if rule.Whole() {
			r.add("", "", "The whole queue is held: no event begins. To let them run: eventctl unhold --all")
			r.list[len(r.list)-1].Detail = clean(rule.Actor + ": " + rule.Reason)
		}
		return rule.Whole()
	})
}

// queue reports that the server's queue of notifications fills up. Who holds it up may be anybody's session.
func (r *reporter) queue(p part) {
	r.add("", "", "The queue of notifications of the Postgres server is %.0f %% full: nothing is woken once it fills, and events are found by polling.", 100*p.queueUsage)
	if r.who.MayReadAll() {
		r.list[len(r.list)-1].Detail = clean(p.queueHolder)
	}
}

// stands reports that nothing runs although something is due.
func (r *reporter) stands(s *standstill) {
	link, text := eventsLink(s.Scope, string(inspect.Waiting)), "See what waits"
	if s.Event != 0 {
		link, text = eventPath(s.Event), "See the oldest event"
	}
	r.add(link, text, "No run has ended for %s, although an event of %s has been due for %s.", s, handlerName(s.Scope), humantime.Age(s.DueFor))
	if s.Why != "" {
		r.list[len(r.list)-1].Detail = clean(s.Why + " " + s.Remedy)
	}
}

// unknown reports handlers with something due that no live worker has, whatever the modifier.
func (r *reporter) unknown(p part) {
	serving := inspect.ServingOf(p.workers)
	list := those(p.due(), func(a inspect.Activity) bool {
		return !p.named(a.Scope) && a.Module != "" && a.Canvas != (eventqueue.CanvasID{}) && !serving.Serves(a.Scope)
	})
	for i, a := range list {
		if i == troublesOfAKind {
			r.add("/handlers", "See the handlers", "%s wait for a worker that has them as well.", printing.Plural(len(list)-i, "other handler"))
			return
		}
		r.add(eventsLink(a.Scope, ""), "See its events", "No live worker has the handler %s: its oldest event has been due for %s.", handlerName(a.Scope), humantime.Age(*a.OldestDue))
	}
}

// late reports that the oldest event that may run has been due for long, or for longer and longer.
func (r *reporter) late(p part) {
	due := p.due()
	if len(due) == 0 || p.named(due[0].Scope) {
		return
	}
	a := due[0]
	grown := ""
	if a.Before != nil && *a.Before < *a.OldestDue && *a.OldestDue > growsAfter {
		grown = fmt.Sprintf("; %s before it was %s", humantime.Age(a.Earlier), humantime.Age(*a.Before))
	}
	if *a.OldestDue > lateAfter || grown != "" {
		r.add("/events?state=waiting", "See what waits", "The oldest event that may run has been due for %s, and no worker runs it%s.", humantime.Age(*a.OldestDue), grown)
	}
}

// failing reports handlers all of whose runs end without success.
func (r *reporter) failing(p part) {
	n := 0
	for _, a := range p.activities {
		if !a.Failing() || a.Module == "" {
			continue
		}
		if n++; n <= troublesOfAKind {
			runs := count(a.Unsuccessful)
			link, text := eventsLink(a.Scope, ""), "See its events"
			if a.Canvas != (eventqueue.CanvasID{}) {
				link, text = handlerPath(a.Scope), "See the handler"
			}
			r.add(link, text, "Handler %s: %s of %s runs failed in the last %d minutes.", handlerName(a.Scope), runs, runs, int(inspect.ActivityFor.Minutes()))
		}
	}
	if n > troublesOfAKind {
		r.add("/handlers", "See the handlers", "All runs of %s failed as well.", printing.Plural(n-troublesOfAKind, "other handler"))
	}
}

// eventsLink is the page with the events of a handler in a state; empty: in all.
func eventsLink(scope eventqueue.Scope, state string) string {
	q := url.Values{"module": {scope.Module}, "name": {scope.Name}}
	if scope.Canvas != (eventqueue.CanvasID{}) {
		q.Set("canvas", scope.Canvas.String())
	}
	if state != "" {
		q.Set("state", state)
	}
	return "/events?" + q.Encode()
}
