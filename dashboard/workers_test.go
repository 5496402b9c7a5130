package dashboard_test

import (
	"strings"
	"testing"

	"eventsv2/dashboard"
	"eventsv2/eventqueue"
)

// The page of workers says what each has in hand: how much, and the oldest of it.
func TestWorkersPageShowsEventsInHand(t *testing.T) {
	t.Parallel()
	q := newQueue(t).seed()
	for range 6 {
		q.insert(eventqueue.NewEvent{Canvas: seeded.Canvas, Module: seeded.Module, Name: "slow", Modifier: "_", Value: []byte(`1`)})
	}
	pages := q.dashboard(dashboard.Config{})
	if body := mainPart(get(t, pages, "/workers").Body.String()); !strings.Contains(strings.Join(strings.Fields(body), " "), `data-h="In hand"> – <`) {
		t.Errorf("a worker without runs:\n%s", body)
	}
	q.exec(`UPDATE events_v2 SET locked_at = now(), begun = true, attempts = 1, claim_id = $1::bigint + 1`, eventqueue.WorkerNumber(7).Claim(1))
	body := mainPart(get(t, pages, "/workers").Body.String())
	for _, want := range []string{"<strong>9</strong>", "/events/" + q.ids[0].String(), "WORKER / slow", "and 4 more"} {
		if !strings.Contains(body, want) {
			t.Errorf("the page does not say %q:\n%s", want, body)
		}
	}
}
