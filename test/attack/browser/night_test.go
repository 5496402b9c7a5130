package browser_test

import (
	"context"
	"fmt"
	"testing"

	"eventsv2/access"
	"eventsv2/eventqueue"
	"eventsv2/test/testenv"
)

// handlerPage is the path of the page of a handler.
func handlerPage(key eventqueue.HandlerKey) string {
	return fmt.Sprintf("/handler?canvas=%s&module=%s&name=%s", bookshop, key.Module, key.Name)
}

// Somebody sees the backlog grow, finds out why by opening an event of it, and lifts the pause.
func TestBacklogGrows(t *testing.T) {
	t.Parallel()
	s := newShop(t).open()
	p := s.visitor(access.Verbs()...)
	s.holds(mailReceipt, "The mail server is being replaced.")
	ids := s.emits(40, mailReceipt, `{"to":"ada@shop.example"}`)
	s.counts()
	p.open("/")
	p.sees("Pending\n40", "1 pause or block holds events back")
	value[bool](p, `window.looksAtIt = true`)
	s.emits(7, mailReceipt, `{"to":"grace@shop.example"}`)
	s.counts()
	p.sees("Pending\n47")
	p.until("nobody has loaded the page again", `window.looksAtIt`)
	p.follows("See the handlers", "Handlers")
	p.sees("paused", "The mail server is being replaced.")
	p.follows("Events", "Events")
	p.follows(ids[0].String(), "Event "+ids[0].String())
	p.sees("paused", "The mail server is being replaced.", "os:grace")
	p.presses("Unpause the handler")
	p.heading("WORKER / mail_receipt")
	p.sees("Nothing holds it back.")
	s.ended(47, "COMPLETED", mailReceipt)
}

// Somebody is told that nothing runs, and why, while they look at the first page, and is led to the event.
func TestOverviewShowsTheProblems(t *testing.T) {
	t.Parallel()
	s := newShop(t).open()
	visitors := map[string]*page{}
	for _, width := range []int64{screenWidth, phoneWidth} {
		for _, scheme := range []string{"light", "dark"} {
			p := s.visitor(access.Verbs()...)
			p.width(width)
			p.scheme(scheme)
			p.open("/")
			p.sees("Nothing was counted in the last hour")
			visitors[fmt.Sprintf("%d-%s", width, scheme)] = p
		}
	}
	printLabel := eventqueue.HandlerKey{Module: "WORKER", Name: "print_label", Modifier: "_"}
	id := s.emits(12, printLabel, `{"order":1044}`)[0]
	s.exec(`UPDATE events_v2 SET delay_until = now() - interval '7 minutes'`)
	s.counts()
	s.exec(`INSERT INTO event_minutes (minute, canvas_id, module, name, emitted, completed, failed, retried, waits, pending, oldest_due)
		SELECT minute - i * interval '1 minute', canvas_id, module, n, 20, CASE WHEN n = 'mail_receipt' THEN 20 ELSE 0 END, 0, CASE WHEN n = 'charge_card' THEN 8 ELSE 0 END,
			ARRAY[20, 30, 40, 20, 5, 2, 1], CASE WHEN n = 'print_label' AND i < 12 THEN 12 - i END, CASE WHEN n = 'print_label' AND i < 7 THEN (7 - i) * interval '1 minute' END
		FROM event_minutes, generate_series(5, 40) AS i, unnest(ARRAY['mail_receipt', 'charge_card', 'print_label']) AS n WHERE i < 8 OR i % 9 > 2`)
	for name, p := range visitors {
		p.sees("No run has ended for", "No live worker, of which there are 1, has its handler WORKER/print_label/_", "runs failed in the last 10 minutes.", "gaps: nothing ran")
		p.takePicture("overview-troubles-" + name)
	}
	p := visitors[fmt.Sprintf("%d-light", screenWidth)]
	p.follows("See the oldest event", "Event "+id.String())
	p.sees("Start a worker with this handler")
}

// Somebody pauses a handler with a reason, which is shown with their name, and unpauses it.
func TestPauseWithAReason(t *testing.T) {
	t.Parallel()
	s := newShop(t).open()
	p := s.visitor(access.Read, access.Operate)
	p.open(handlerPage(mailReceipt))
	p.sees("Nothing holds it back.")
	p.lacks(`form[action="/handler/block"]`)
	p.fills("reason", "Mails go out twice")
	p.presses("Pause")
	p.sees("Mails go out twice", "token:ada", "it is lifted")
	p.open("/events")
	id := s.emits(1, mailReceipt, `{}`)[0]
	p.until("the list is read again while it is looked at", `document.querySelector('main a[href$="/events/`+id.String()+`"]')`)
	value[bool](p, `(() => {
		const html = document.documentElement.outerHTML;
		window.fetch = async () => ({ ok: true, text: async () => { window.pressed = document.querySelector("main a"); pressed.focus(); return html } });
		return true
	})()`)
	p.until("a link is pressed while the list is read again", `window.pressed`)
	if !value[bool](p, `pressed.isConnected`) {
		t.Error("a link was replaced while it was pressed")
	}
	p.open("/events/" + id.String())
	p.sees("Mails go out twice")
	p.until("the explanation has the viewer's clock", `/ since \d\d:\d\d:\d\d /.test(document.body.innerText)`)
	p.open(handlerPage(mailReceipt))
	p.presses("Unpause")
	p.sees("Nothing holds it back.")
	s.ended(1, "COMPLETED", mailReceipt)
	p.follows("Audit", "Audit")
	p.sees("pause", "unpause", "Mails go out twice")
}

// Somebody finds a group of failed events, edits the value of one, retries another as it is, and then all others.
func TestFailedGroup(t *testing.T) {
	t.Parallel()
	s := newShop(t).open()
	p := s.visitor(access.Verbs()...)
	ids := s.fails(5)
	p.follows("Failed", "Failed")
	p.sees("the bank answers # to request #: closed for maintenance", "WORKER / charge_card", "5")
	p.follows("5", "Events")
	at := "/events/" + ids[1].String()
	p.follows(ids[1].String(), "Event "+ids[1].String())
	p.sees("failed", `"card": "expired"`, "the bank answers 503")
	p.presses("Edit and retry")
	p.heading("Edit event")
	p.fills("value", `{"order":1044,`)
	p.presses("Save and retry")
	p.until("the page says what is wrong", `document.querySelector('[role="alert"]')`)
	p.fills("value", `{"order":1044,"card":"valid"}`)
	p.presses("Save and retry")
	p.sees("It is back in the queue")
	s.ended(1, "COMPLETED", chargeCard)
	p.open(at)
	p.sees("completed", `"card": "valid"`)
	s.bankAway.Store(false)
	p.open("/events/" + ids[2].String())
	p.presses("Retry")
	p.sees("It is back in the queue")
	s.ended(2, "COMPLETED", chargeCard)
	p.open("/failed")
	p.presses("Retry …")
	p.heading("Retry 3 events?")
	p.presses("Retry 3 events")
	p.sees("3 of 3", "done")
	s.ended(5, "COMPLETED", chargeCard)
	p.open("/failed")
	p.sees("Nothing has failed")
}

// Somebody filters events, cancels all that the filter selects, changes their mind, and retries them.
func TestChangeAllThatIsFiltered(t *testing.T) {
	t.Parallel()
	s := newShop(t).open()
	s.holds(mailReceipt, "The mail server is being replaced.")
	s.emits(30, mailReceipt, `{"to":"ada@shop.example"}`)
	s.holds(chargeCard, "The bank is closed.")
	s.emits(2, chargeCard, `{"card":"valid"}`)
	p := s.visitor(access.Verbs()...)
	p.follows("Events", "Events")
	p.lacks(`form[action="/events/count"]`)
	p.fills("name", mailReceipt.Name)
	p.presses("Filter")
	p.sees("Cancel all …", "Delete all …")
	p.presses("Cancel all …")
	p.fills("reason", "Sent by hand")
	p.inAllForms("events-all")
	p.presses("Count them first")
	p.heading("Cancel 30 events?")
	p.sees("Sent by hand", "mail_receipt")
	p.inAllForms("operation-counted")
	p.presses("Cancel 30 events")
	p.sees("30 of 30", "done")
	p.inAllForms("operation-done")
	s.ended(30, "CANCELLED", mailReceipt)
	p.open("/events?state=cancelled&name=" + mailReceipt.Name)
	p.sees("Sent by hand")
	p.presses("Retry all …")
	p.heading("Retry 30 events?")
	p.presses("Retry 30 events")
	p.sees("30 of 30", "done")
	if n := s.one(`SELECT count(*)::text FROM events_v2 WHERE name = 'mail_receipt'`); n != "30" {
		t.Errorf("%s events are back in the queue", n)
	}
	p.open("/operations")
	p.sees("Cancel", "Retry", "30 of 30", "token:ada")
	p.inAllForms("operations-two")
}

// Somebody finds a live worker with what it runs, one that has died, and one that has stopped.
func TestWorkersPage(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	release := make(chan struct{})
	slow := eventqueue.HandlerKey{Module: "WORKER", Name: "print_label", Modifier: "_"}
	s.handles(slow, func(context.Context, *eventqueue.Run) error { <-release; return nil })
	s.open()
	t.Cleanup(func() { close(release) }) // before the service is closed
	id := s.emits(1, slow, `{"order":1044}`)[0]
	testenv.Eventually(t, "it runs", func() bool { return s.one(`SELECT count(*)::text FROM events_v2 WHERE locked_at IS NOT NULL`) == "1" })
	s.exec(`UPDATE events_v2 SET begun = true`) // as its worker writes when it renews the lock
	s.exec(`INSERT INTO event_workers (number, host, pid, version, handlers, started_at, stopped_at) VALUES
		(11, 'worker-old', 71, 'v1.8.0', '[]', now() - interval '9 hours', now() - interval '2 hours'), (12, 'worker-lost', 72, 'v1.8.1', '[]', now() - interval '3 hours', NULL)`)
	p := s.visitor(access.Verbs()...)
	p.follows("Workers", "Workers")
	p.sees("live", "dead", "stopped", "worker-old", "worker-lost", "v1.8.1", "4 on every canvas")
	p.presses("4 on every canvas")
	p.sees("WORKER/print_label/_")
	p.inAllForms("workers-three")
	p.follows(id.String(), "Event "+id.String())
	p.sees("running")
}

// Somebody finds out why a source of webhooks is refused; who reads one canvas only sees nothing of it.
func TestWebhooksPage(t *testing.T) {
	t.Parallel()
	s := newShop(t).open()
	p := s.visitor(access.Read)
	p.follows("Webhooks", "Webhooks and sources")
	p.sees("No source of webhooks is served")
	s.exec(sourcesOfADay)
	s.exec(requestsOfADay)
	p.open("/webhooks")
	p.sees("shop", "stripe", "bad signature", "480", "no signature in the request belongs to its body", "warehouse", "never")
	p.inAllForms("webhooks-refused")
	one := newPage(t, s.address)
	one.logsIn(s.tokenOf([]eventqueue.CanvasID{bookshop}, access.Read))
	one.lacks(`nav a[href="/webhooks"]`, `nav a[href="/workers"]`)
	one.open("/webhooks")
	one.heading("You may not see the sources of webhooks")
	one.inAllForms("refused")
}

// Somebody finds out who waits behind whom, and why the first of them waits.
func TestEventPageShowsItsGroup(t *testing.T) {
	t.Parallel()
	s := newShop(t).open()
	s.holds(mailReceipt, "The mail server is being replaced.")
	s.emitsKeyed()
	p := s.visitor(access.Read)
	p.follows("Groups", "Ordering groups and limits")
	p.sees("order 1044", "The mail server is being replaced.", "each ordering key", "60")
	p.follows(s.one(`SELECT min(event_id)::text FROM event_groups WHERE group_key = 'key order 1044'`), "Event ")
	p.sees("The mail server is being replaced.")
}

// Somebody follows an order to the events that came of it, and back.
func TestTree(t *testing.T) {
	t.Parallel()
	s := newShop(t).open()
	p := s.visitor(access.Read)
	id := s.emits(1, placeOrder, `{"order":1044}`)[0]
	s.ended(1, "COMPLETED", mailReceipt)
	s.ended(1, "COMPLETED", chargeCard)
	p.open("/events/" + id.String())
	p.sees("order_placed", "charge_card", "mail_receipt")
	child := s.one(`SELECT id::text FROM event_log WHERE name = 'mail_receipt'`)
	p.follows(child, "Event "+child)
	p.follows(id.String(), "Event "+id.String())
	p.until("the way through the machine is drawn", `document.querySelector(".machine svg .taken")`)
}
