package dashboard_test

import (
	"regexp"
	"strings"
	"testing"

	"eventsv2/access"
	"eventsv2/eventqueue"
)

// listed are the ids of the events on a page, in their order.
var listed = regexp.MustCompile(`href="/events/(\d+)"`)

// Events are found by their keys, their modifier and when they were emitted, in the queue and in the history, and those in the
// queue come oldest or newest first.
func TestEventsAreFoundByKeysModifierAndTime(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	event := func(modifier, ordering, unique string) eventqueue.NewEvent {
		return eventqueue.NewEvent{Canvas: seeded.Canvas, Module: seeded.Module, Name: seeded.Name, Modifier: modifier, Value: []byte(`1`), OrderingKey: ordering, UniqueKey: unique}
	}
	q.insert(event("_", "order 1", "a"), event("formal", "order 1", "b"), event("_", "order 2", "c"), event("_", "", ""))
	q.exec(`UPDATE events_v2 SET enqueued_at = now() - interval '2 hours' WHERE id = $1`, q.ids[0])
	q.exec(`INSERT INTO event_log (id, canvas_id, module, name, modifier, value, status, retries, attempts, enqueued_at, ordering_key, unique_key)
		SELECT 900000 + i, $1, 'WORKER', 'send_invoice', CASE WHEN i = 3 THEN 'formal' ELSE '_' END, '{}', 'COMPLETED', 0, 1, now(), 'order ' || i, CASE WHEN i = 2 THEN 'z' END FROM generate_series(1, 3) AS i`, [16]byte(seeded.Canvas))
	b := q.steering(access.Verbs()...)
	found := func(query string) string {
		t.Helper()
		page := b.get("/events?" + query)
		b.wants(page, 200)
		var ids []string
		for _, match := range listed.FindAllStringSubmatch(mainPart(page.Body.String()), -1) {
			for i, id := range q.ids {
				if match[1] == id.String() {
					match[1] = string(rune('1' + i))
				}
			}
			ids = append(ids, match[1])
		}
		return strings.Join(ids, " ")
	}
	canvas := "canvas=" + seeded.Canvas.String()
	handler := canvas + "&module=WORKER&name=send_invoice"
	for _, of := range []string{"", canvas, handler} {
		for query, want := range map[string]string{
			"": "1 2 3 4", "order=newest": "4 3 2 1", "modifier=formal": "2", "ordering_key=order+1": "1 2", "unique_key=c": "3", "ordering_key=order+1&unique_key=c": "",
			"within=1": "2 3 4", "order=newest&ordering_key=order+1": "2 1", "order=newest&state=waiting&within=1": "4",
			"state=completed&unique_key=z": "900002", "state=completed&modifier=formal": "900003", "state=completed&ordering_key=order+1": "900001",
		} {
			if got := found(of + "&" + query); got != want {
				t.Errorf("%s %s finds %q, not %q", of, query, got, want)
			}
		}
	}
	b.wants(b.get("/events?ordering_key=order+2"), 200, "ordered by <bdi>order 2</bdi>", "unique by <bdi>c</bdi>")
	b.wants(b.get("/events/"+q.ids[2].String()), 200, "Unique key", "<bdi>c</bdi>")
	q.exec(`UPDATE events_v2 SET priority = 'low' WHERE id = $1`, q.ids[2])
	b.wants(b.get("/events?unique_key=c"), 200, "<small>low priority</small>")
	b.wants(b.get("/events/"+q.ids[2].String()), 200, "<dt>Priority</dt>", "<dd>low</dd>")
	if page := b.get("/events?unique_key=a").Body.String() + b.get("/events/"+q.ids[0].String()).Body.String(); strings.Contains(strings.ToLower(page), "priority") {
		t.Error("an event of normal priority shows one")
	}
	b.wants(b.get("/events?order=random"), 400, "There is no such order")
}

// The list of the newest events goes on where a page ends, and ends with the oldest.
func TestNewestFirstListGoesOn(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	events := make([]eventqueue.NewEvent, 120)
	for i := range events {
		events[i] = eventqueue.NewEvent{Canvas: seeded.Canvas, Module: seeded.Module, Name: seeded.Name, Modifier: "_", Value: []byte(`1`)}
	}
	q.insert(events...)
	b := q.steering(access.Read)
	for _, of := range []string{"", "&canvas=" + seeded.Canvas.String(), "&canvas=" + seeded.Canvas.String() + "&module=WORKER&name=send_invoice"} {
		var all []string
		for at := "/events?order=newest" + of; at != ""; {
			text := mainPart(b.get(at).Body.String())
			for _, match := range listed.FindAllStringSubmatch(text, -1) {
				all = append(all, match[1])
			}
			at = ""
			if next := regexp.MustCompile(`<a href="([^"]*)" rel="next">`).FindStringSubmatch(text); next != nil {
				at = strings.ReplaceAll(next[1], "&amp;", "&")
			}
		}
		if len(all) != 120 || all[0] != q.ids[119].String() || all[119] != q.ids[0].String() {
			t.Errorf("%s lists %d events: %v", of, len(all), all)
		}
	}
}
