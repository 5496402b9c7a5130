package dashboard_test

import (
	"strings"
	"testing"

	"eventsv2/access"
	"eventsv2/eventqueue"
	"eventsv2/eventqueue/operate"
)

// The page of a handler has its numbers, its limits and its last errors, and links to its events and failures.
func TestHandlerPageShowsItsNumbers(t *testing.T) {
	t.Parallel()
	q := newQueue(t).seed()
	charge := eventqueue.Scope{Canvas: seeded.Canvas, Module: seeded.Module, Name: "charge_card"}
	if _, err := q.store.SetConcurrencyLimit(t.Context(), operate.ConcurrencyLimit{Canvas: charge.Canvas, Module: charge.Module, Name: charge.Name, Max: 7}); err != nil {
		t.Fatal(err)
	}
	b := q.steering(access.Verbs()...)
	b.wants(b.get("/handler?"+handlerForm(seeded).Encode()), 200, "<dt>Oldest due</dt>\n<dd>12m0s</dd>", "Events per minute", "From due to start",
		"/events/"+q.ids[0].String(), "tried again", "&lt;script&gt;alert(", "It has none.", "/failed?canvas=")
	page := b.get("/handler?" + handlerForm(charge).Encode())
	b.wants(page, 200, `<span class="state failed">failed</span>`, "card 60 was refused", "WORKER / charge_card", `data-h="At once">7<`)
	if n := strings.Count(page.Body.String(), "was refused:"); n != 8 {
		t.Errorf("the page has %d errors, not the last 8", n)
	}
	b.wants(b.get("/failed?"+handlerForm(seeded).Encode()), 200, "Of handler", "Nothing has failed")
	b.wants(b.get("/failed?"+handlerForm(charge).Encode()), 200, "card # was refused")
	b.wants(b.get("/failed?name=%00"), 400)
	b.wants(b.get("/handler?"+handlerForm(eventqueue.Scope{Canvas: seeded.Canvas, Module: "WORKER", Name: "unheard_of"}).Encode()), 200,
		"It has no counts in the last hour", "None among the events that were looked at")
	b.wants(b.get("/handlers"), 200, ">Per minute<")
}
