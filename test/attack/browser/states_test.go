package browser_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"eventsv2/access"
	"eventsv2/eventqueue"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/worker"
	"eventsv2/test/testenv"
)

// Somebody sees of each handler what keeps its events from running, in the list and on its page; and then of all of them that
// the workers are busy, and that the whole queue is held.
func TestHandlersShowWhatKeepsTheirEvents(t *testing.T) {
	t.Parallel()
	handler := func(name string) eventqueue.HandlerKey {
		return eventqueue.HandlerKey{Module: "WORKER", Name: name, Modifier: "_"}
	}
	scope := func(name string) eventqueue.Scope {
		return eventqueue.Scope{Canvas: bookshop, Module: "WORKER", Name: name}
	}
	s := newShopWith(t, worker.Config{RetainHistory: true, Concurrency: 2, Heartbeat: 100 * time.Millisecond})
	for _, name := range []string{"ship_parcel", "pack_parcel", "print_label", "refund", "wrap_gift"} {
		s.handles(handler(name), nothing)
	}
	hangUp := make(chan struct{})
	s.handles(handler("answer_call"), func(context.Context, *eventqueue.Run) error { <-hangUp; return nil })
	s.handles(handler("weigh"), func(context.Context, *eventqueue.Run) error { <-hangUp; return nil })
	s.open()
	t.Cleanup(func() { close(hangUp) }) // before the service is closed
	for _, rule := range []operate.Rule{
		{Type: operate.PauseRule, RuleScope: operate.RuleScope{Scope: scope("mail_receipt")}},
		{Type: operate.PauseRule, RuleScope: operate.RuleScope{Scope: scope("ship_"), Prefix: true}},
		{Type: operate.PauseRule, RuleScope: operate.RuleScope{Scope: scope("pack_parcel"), Modifier: "fragile"}},
		{Type: operate.BlockRule, RuleScope: operate.RuleScope{Scope: scope("print_label")}},
		{Type: operate.PauseRule, RuleScope: operate.RuleScope{Scope: scope("weigh_"), Prefix: true}},
	} {
		if _, err := s.service.Store().AddRule(testenv.Context(t), rule); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.service.Store().SetConcurrencyLimit(testenv.Context(t), operate.ConcurrencyLimit{Canvas: bookshop, Module: "WORKER", Name: "answer_call", Max: 1}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"mail_receipt", "ship_parcel", "pack_parcel", "print_label", "unknown_step", "refund"} {
		s.emits(2, handler(name), `{}`)
	}
	s.emits(3, handler("answer_call"), `{}`)
	s.emits(1, eventqueue.HandlerKey{Module: "WORKER", Name: "wrap_gift", Modifier: "silk"}, `{}`)
	testenv.Eventually(t, "calls wait behind one", func() bool {
		return s.one(`SELECT concat(count(*) FILTER (WHERE admitted), ' ', count(*) FILTER (WHERE NOT admitted)) FROM event_groups`) == "1 2"
	})
	s.fails(3)
	// What programs hand in once a minute; the service may do so meanwhile as well, so that the number of runs is not known.
	s.exec(`INSERT INTO event_minutes (minute, canvas_id, module, name, emitted, completed, failed)
		SELECT date_trunc('minute', now()), canvas_id, module, name, count(*), count(*) FILTER (WHERE status = 'COMPLETED'), count(*) FILTER (WHERE status = 'FAILED')
		FROM event_log GROUP BY 1, 2, 3, 4
		ON CONFLICT (minute, canvas_id, module, name) DO UPDATE SET completed = excluded.completed, failed = excluded.failed`)
	s.counts()
	p := s.visitor(access.Verbs()...)
	states := func(path, row, want string) {
		t.Helper()
		p.open(path)
		p.until(path+" says "+want, `[...document.querySelectorAll(`+quoted(row)+`)].map(s => s.innerText).join(", ") === `+quoted(want))
	}
	inList := func(name, want string) {
		t.Helper()
		states("/handlers", `tr:has(a[href$="name=`+name+`"]) .state`, want)
	}
	for _, test := range []struct{ name, want, says string }{
		{"mail_receipt", "paused", "it is lifted"},
		{"ship_parcel", "paused", "with all whose names begin with ship_"},
		{"pack_parcel", "paused", "only with modifier fragile"},
		{"print_label", "blocked", "it is lifted"},
		{"unknown_step", "no worker", "The live worker does not have it."},
		{"wrap_gift", "no worker", "No worker for modifier silk. No live worker, of which there are 1, has its handler WORKER/wrap_gift/silk."},
		{"answer_call", "over its limit", "The concurrency limit of the handler lets 1 run at once, and others wait."},
		{"charge_card", "failing", "runs of the last 10 minutes failed."},
		{"refund", "open", "Nothing holds it back."},
	} {
		inList(test.name, test.want)
		states(handlerPage(handler(test.name)), `main h2 .state, main .well .state`, test.want)
		p.sees(test.says)
		if test.want != "open" && strings.Contains(p.text(), "Nothing holds it back") {
			t.Errorf("nothing holds %s back, as its page says", test.name)
		}
	}
	p.open("/handlers")
	p.sees("WORKER / weigh_…, of which no handler has counts")
	p.lacks(`tr a[href$="name=ship_"]`, `tr a[href$="name=weigh_"]`)
	p.inAllForms("handlers-states")
	s.emits(1, handler("weigh"), `{}`)
	testenv.Eventually(t, "the worker has reported that it is full", func() bool { return s.one(`SELECT busy::text FROM event_workers`) == "2" })
	inList("refund", "all slots busy")
	p.sees("All 2 slots of the worker are busy.")
	p.open(handlerPage(handler("answer_call")))
	p.inAllForms("handler-over-limit")
	if _, err := s.service.Store().AddRule(testenv.Context(t), operate.Rule{Type: operate.BlockRule, RuleScope: operate.WholeQueue}); err != nil {
		t.Fatal(err)
	}
	inList("refund", "held, all slots busy")
}
