package browser_test

import (
	"fmt"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"eventsv2/access"
)

// countsOfADay are those of a handler in each minute of a day, which cron has summed up as sumsOfADay.
const (
	countsOfADay = `
INSERT INTO event_minutes (minute, canvas_id, module, name, emitted, completed, failed, retried, waits, runs, pending)
SELECT date_trunc('minute', now()) - i * interval '1 minute', 'b84e0000-0000-4f00-a100-000000000001', 'WORKER', 'charge_card', 1200 + 300 * sin(i / 120.0), 1200 + 300 * sin(i / 120.0 - 0.3),
    CASE WHEN i % 360 < 4 THEN 140 ELSE 0 END, 40 + i % 7, ARRAY[20, 30, 40, 20, 5, 2, 1], ARRAY[1, 2, 9, 30, 40, 9, 3], 1200 + 900 * cos(i / 200.0)
FROM generate_series(-4, 1500) AS i
ON CONFLICT (minute, canvas_id, module, name) DO UPDATE SET emitted = excluded.emitted, completed = excluded.completed, waits = excluded.waits, runs = excluded.runs`
	sumsOfADay = `
INSERT INTO event_minute_totals (minute, of_all, canvas_id, emitted, completed, failed, retried, cancelled, waits, pending)
SELECT minute, true, '00000000-0000-0000-0000-000000000000', emitted, completed, failed, retried, cancelled, waits, pending
FROM event_minutes WHERE minute < now() - interval '10 minutes'
ON CONFLICT DO NOTHING`
)

const readout = `document.querySelector(".readout")?.innerText`

// Somebody points at a chart, with the mouse, by the keys and with a finger, and reads the values of that time on the clock of
// their zone; they choose another range, and see the day.
func TestChartsShowValuesAndTimes(t *testing.T) {
	t.Parallel()
	s := newShop(t).open()
	s.exec(countsOfADay)
	s.exec(sumsOfADay)
	p := newPage(t, s.address)
	command(p, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: "Asia/Kathmandu"}) // 5:45 ahead of UTC
	p.logsIn(s.token(access.Read))
	p.open("/")
	p.until("the ticks are at round times of the zone", ticks(`/^(\d\d:\d0|\w+ \d+)$/`))
	p.pointsAt("figure svg", 0.5)
	p.until("the values are shown", `/^\d\d:\d\d\s+emitted 1,\d\d\d\s+completed 1,\d\d\d\s+retried 4\d\s+failed \d+$/.test(`+readout+`)`)
	value[bool](p, `document.querySelector("figure").dataset.old = true`)
	s.exec(`UPDATE event_minutes SET cancelled = 1 WHERE minute >= now() - interval '1 minute'`)
	p.until("they are shown when the page was renewed as well", `!document.querySelector("figure").dataset.old && /emitted 1,\d\d\d/.test(`+readout+`)`)
	p.takePicture("overview-pointed-1280-light")
	p.pointsAt("h1", 0.1)
	p.until("they are gone", `!document.querySelector(".readout, .cursor")`)
	p.follows("24 h", "Overview")
	p.sees("Events per half hour")
	p.until("the ticks are at round hours of the zone", ticks(`/^(\w+ \d+|(04|08|12|16|20):00)$/`))
	p.lacks(".gap:not(.utc)", "[data-live]")
	value[bool](p, `(document.querySelectorAll("figure svg")[1].focus(), true)`)
	p.until("the last values are shown", `/median .+s\s+99 % .+s/.test(`+readout+`)`)
	last := value[string](p, readout)
	p.do(chromedp.KeyEvent(kb.ArrowLeft))
	p.until("those before them are shown", readout+` !== `+quoted(last))
	p.inAllForms("overview-24h")
	value[bool](p, `(document.activeElement.blur(), true)`)
	p.follows("6 h", "Overview")
	p.sees("Events per 5 minutes")
	p.width(phoneWidth)
	p.touches("figure svg", 0.9)
	p.until("the values are shown", `/–\d\d:\d\d\s+emitted \d,\d\d\d/.test(`+readout+`)`)
	p.inAllForms("overview-6h")
	p.open(handlerPage(chargeCard) + "&range=6h")
	p.sees("Events per 5 minutes")
	p.inAllForms("handler-6h")
	p.open("/?range=7d")
	p.sees("Events per hour")
	p.inAllForms("overview-7d")
	p.scriptOff()
	p.open(handlerPage(chargeCard) + "&range=24h")
	p.sees("times in UTC")
}

// A queue in which counting has just begun has a line, and no dot at the edge of an empty hour.
func TestChartsOfAFirstMinute(t *testing.T) {
	t.Parallel()
	s := newShop(t).open()
	s.exec(`INSERT INTO event_minutes (minute, canvas_id, module, name, emitted, completed, waits, pending)
		SELECT date_trunc('minute', now()) - i * interval '1 minute', 'b84e0000-0000-4f00-a100-000000000001', 'WORKER', 'charge_card', 4 + i, 4 + i, '{3, 2}', 3 FROM generate_series(0, 3) AS i WHERE i <> 2`)
	p := s.visitor(access.Read)
	p.open("/")
	p.sees("Events per minute")
	if minutes := value[int](p, `document.querySelector("path[data-values]").dataset.values.split("|").length`); minutes != 10 {
		t.Errorf("the chart is of %d minutes", minutes)
	}
	p.inAllForms("overview-first")
}

// ticks is whether there are texts of a pattern on the time axis, and no other ones.
func ticks(pattern string) string {
	return `(() => { const texts = [...document.querySelectorAll("figure .at text")].map((t) => t.textContent).filter((t) => t);
		return texts.length > 11 && texts.every((t) => ` + pattern + `.test(t)) })()`
}

// place is a place in the window.
type place struct{ X, Y float64 }

// place finds the place in an element that is at a share of its width. It scrolls there.
func (p *page) place(selector string, share float64) place {
	p.t.Helper()
	return value[place](p, `(() => { const e = document.querySelector(`+quoted(selector)+`); e.scrollIntoView({ block: "center" });
		const at = e.getBoundingClientRect(); return { X: at.left + `+fmt.Sprint(share)+` * at.width, Y: at.top + at.height / 2 } })()`)
}

// pointsAt moves the mouse to an element.
func (p *page) pointsAt(selector string, share float64) {
	p.t.Helper()
	at := p.place(selector, share)
	command(p, input.DispatchMouseEvent, input.DispatchMouseEventParams{Type: input.DispatchMouseEventTypeMouseMoved, X: at.X, Y: at.Y})
}

// touches touches an element with a finger.
func (p *page) touches(selector string, share float64) {
	p.t.Helper()
	at := p.place(selector, share)
	command(p, input.DispatchTouchEvent, input.DispatchTouchEventParams{Type: input.DispatchTouchEventTypeTouchStart, TouchPoints: []*input.TouchPoint{{X: at.X, Y: at.Y}}})
	command(p, input.DispatchTouchEvent, input.DispatchTouchEventParams{Type: input.DispatchTouchEventTypeTouchEnd, TouchPoints: []*input.TouchPoint{}})
}
