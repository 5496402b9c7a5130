package browser_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"eventsv2/access"
)

// Who may only read has no button, and a request that is made nevertheless is refused.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	s := newShop(t).open()
	s.holds(mailReceipt, "The mail server is being replaced.")
	failed, waiting := s.fails(1)[0], s.emits(1, mailReceipt, `{"to":"ada@shop.example"}`)[0]
	p := s.visitor(access.Read)
	before := s.one(`SELECT count(*)::text FROM audit_log`)
	for _, path := range []string{"/", "/handlers", handlerPage(mailReceipt), "/events", "/events/" + waiting.String(), "/failed", "/events/" + failed.String(), "/audit"} {
		p.open(path)
		p.until("the page is there", `document.querySelector("h1")`)
		p.lacks(`main form[method="post"]`, `main a[href$="/edit"]`, `a[href="/tokens"]`)
	}
	p.open("/events/" + waiting.String())
	p.sees("which only those may see who may read values")
	for path, form := range map[string]string{
		"/events/" + failed.String() + "/retry":   "",
		"/events/" + waiting.String() + "/run":    "",
		"/events/" + waiting.String() + "/cancel": "reason=no",
		"/events/" + waiting.String() + "/delete": "",
		"/events/" + waiting.String() + "/edit":   "value=1&attributes={}",
		"/handler/unpause":                        strings.TrimPrefix(handlerPage(mailReceipt), "/handler?") + "&of=mail_receipt",
		"/handler/block":                          strings.TrimPrefix(handlerPage(mailReceipt), "/handler?") + "&reason=no",
		"/failed/retry":                           strings.TrimPrefix(handlerPage(chargeCard), "/handler?") + "&error_group=x",
		"/tokens":                                 "name=mine&verb=read",
	} {
		status := value[int](p, fmt.Sprintf(`fetch(%s, {method: "POST", redirect: "manual", body: new URLSearchParams(%s)}).then(r => r.status)`, quoted(path), quoted(form)))
		if status != http.StatusForbidden {
			t.Errorf("%s is answered with %d", path, status)
		}
	}
	if after := s.one(`SELECT count(*)::text FROM audit_log`); after != before {
		t.Errorf("the audit log had %s rows, and has %s", before, after)
	}
	p.presses("Log out")
	p.heading("Log in")
	p.open("/events")
	p.heading("Log in")
}

// Somebody pauses and unpauses a handler without a mouse.
func TestKeyboardOnly(t *testing.T) {
	t.Parallel()
	s := newShop(t).open()
	p := s.visitor(access.Verbs()...)
	s.emits(1, mailReceipt, `{}`)
	s.ended(1, "COMPLETED", mailReceipt)
	s.exec(countsOfAnHour)
	p.open("/")
	p.tabsTo("Skip to the contents")
	p.tabsTo("Handlers")
	p.types("\r")
	p.heading("Handlers")
	p.tabsTo("WORKER / mail_receipt")
	p.types("\r")
	p.heading("WORKER / mail_receipt")
	p.tabsTo("reason")
	p.types("Mails go out twice")
	p.tabsTo("Pause")
	p.types("\r")
	p.sees("Mails go out twice", "token:ada")
	p.tabsTo("Unpause")
	p.types(" ")
	p.sees("Nothing holds it back.")
}

// Without the script a handler is paused, its events are found, and times are exact.
func TestScriptOff(t *testing.T) {
	t.Parallel()
	s := newShop(t).open()
	p := s.visitor(access.Verbs()...)
	p.scriptOff()
	p.open(handlerPage(mailReceipt))
	p.fills("reason", "Mails go out twice")
	p.presses("Pause")
	p.sees("Mails go out twice")
	id := s.emits(1, mailReceipt, `{"to":"ada@shop.example"}`)[0]
	p.follows("Events", "Events")
	p.follows(id.String(), "Event "+id.String())
	p.sees("Mails go out twice", `"to": "ada@shop.example"`)
	p.until("times are exact", `[...document.querySelectorAll("main time")].every(t => /^\d{4}-\d{2}-\d{2} /.test(t.innerText))`)
	p.presses("Run now")
	p.sees("It is due now")
	failed := s.fails(1)[0]
	s.bankAway.Store(false)
	p.open("/events/" + failed.String())
	p.presses("Retry")
	p.sees("It is back in the queue")
	s.ended(1, "COMPLETED", chargeCard)
	p.follows("Overview", "Overview")
}
