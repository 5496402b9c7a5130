package browser_test

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// How wide a screen and a phone are, and how high.
const (
	screenWidth = 1280
	phoneWidth  = 390
	height      = 900
)

// pageLimit bounds what somebody does in one scenario. Only what never happens takes so long.
const pageLimit = 10 * time.Minute

// page is a tab in which somebody looks at a dashboard.
type page struct {
	t       *testing.T
	ctx     context.Context // chromedp has the tab in it
	address string

	mu     sync.Mutex
	errors []string
}

// newPage opens a tab with cookies of its own on the dashboard at an address.
func newPage(t *testing.T, address string) *page {
	t.Helper()
	ctx, cancel := chromedp.NewContext(shared.connection(t), chromedp.WithNewBrowserContext())
	t.Cleanup(cancel)
	p := &page{t: t, ctx: ctx, address: strings.TrimSuffix(address, "/")}
	if err := chromedp.Listen(ctx, p.listen); err != nil { // opens the tab
		t.Fatal(err)
	}
	// The tab lives as long as the context that has opened it, and what is done in it is bounded.
	var stop context.CancelFunc
	p.ctx, stop = context.WithTimeout(ctx, pageLimit)
	t.Cleanup(stop)
	command(p, log.Enable, cdp.Empty{})
	p.width(screenWidth)
	t.Cleanup(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, text := range p.errors {
			t.Errorf("the browser reports: %s", text)
		}
	})
	return p
}

// listen retains errors of scripts, and what the policy of the page has refused.
func (p *page) listen(event any) {
	text := ""
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		text = e.ExceptionDetails.Text
		if thrown := e.ExceptionDetails.Exception; thrown != nil {
			text += " " + thrown.Description
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError && e.Entry.Source != log.EntrySourceNetwork {
			text = e.Entry.Text
		}
	}
	if text != "" {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.errors = append(p.errors, text)
	}
}

func (p *page) do(actions ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	err := chromedp.Do(p.ctx, actions...)
	for err != nil && strings.Contains(err.Error(), nodeGone) && p.ctx.Err() == nil {
		err = chromedp.Do(p.ctx, actions...)
	}
	if err != nil {
		p.t.Fatalf("%v; the page shows:\n%.2000s", err, p.text())
	}
}

// nodeGone is the error of what cannot be done to an element that a live page has renewed since it was found. It was not done.
const nodeGone = "Could not find node with given id"

// command sends a command of the protocol.
func command[P, R any](p *page, c cdp.Command[P, R], params P) {
	p.t.Helper()
	if _, err := chromedp.Call(p.ctx, c, params); err != nil {
		p.t.Fatal(err)
	}
}

// value is that of an expression, or of its promise, in the page.
func value[T any](p *page, expression string) T {
	p.t.Helper()
	v, err := chromedp.Run(p.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		p.t.Fatalf("%v; the page shows:\n%.2000s", err, p.text())
	}
	return v
}

// text is what the page shows; nothing while it is being left.
func (p *page) text() string {
	text, _ := chromedp.Run(p.ctx, chromedp.Evaluate[string](`document.body.innerText`))
	return text
}

func (p *page) open(path string) {
	p.t.Helper()
	p.do(chromedp.Navigate(p.address + path))
}

// until waits until an expression is true in the page.
func (p *page) until(what, expression string) {
	p.t.Helper()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	shown := ""
	for {
		// While a page is being left, nothing can be asked of it.
		if holds, err := chromedp.Run(p.ctx, chromedp.Evaluate[bool](`!!(`+expression+`)`)); err == nil && holds {
			return
		}
		if text := p.text(); text != "" {
			shown = text
		}
		select {
		case <-ticker.C:
		case <-p.ctx.Done():
			p.t.Fatalf("waited in vain until %s; the page shows:\n%.2000s", what, shown)
		}
	}
}

// sees waits until all of the texts are shown.
func (p *page) sees(texts ...string) {
	p.t.Helper()
	for _, text := range texts {
		p.until("the page shows "+text, `document.body.innerText.includes(`+quoted(text)+`)`)
	}
}

// lacks fails if one of the selectors finds something.
func (p *page) lacks(selectors ...string) {
	p.t.Helper()
	for _, selector := range selectors {
		if n := value[int](p, `document.querySelectorAll(`+quoted(selector)+`).length`); n > 0 {
			p.t.Errorf("the page has %d of %s:\n%.2000s", n, selector, p.text())
		}
	}
}

// follows clicks the first link of a text, and waits for a heading of the page that it leads to. A click is lost where the page
// moves between the look and the click: then it clicks again, as a person does.
func (p *page) follows(link, heading string) {
	p.t.Helper()
	p.do(chromedp.Click(`//*[self::nav or self::main]//a[normalize-space()=` + quoted(link) + `]`))
	again := time.AfterFunc(pageLimit/20, func() {
		p.t.Logf("clicking on %s again", link)
		_, _ = chromedp.Run(p.ctx, chromedp.Evaluate[any](`[...document.querySelectorAll("nav a, main a")].find((a) => a.innerText.trim() === `+quoted(link)+`)?.click()`)) // heading fails if it fails
	})
	defer again.Stop()
	p.heading(heading)
}

// heading waits for a page by the beginning of its heading.
func (p *page) heading(text string) {
	p.t.Helper()
	p.until("there is the page "+text, `document.readyState === "complete" && document.querySelector("h1")?.innerText.startsWith(`+quoted(text)+`)`)
}

// presses clicks the first button of a text.
func (p *page) presses(button string) {
	p.t.Helper()
	p.do(chromedp.Click(`//*[self::button or self::summary or self::a][normalize-space()=` + quoted(button) + `]`))
}

// fills writes into the first field of a name.
func (p *page) fills(name, text string) {
	p.t.Helper()
	field := `main [name="` + name + `"]`
	p.do(chromedp.WaitVisible(chromedp.CSS(field)))
	value[bool](p, `(() => { const field = document.querySelector(`+quoted(field)+`); field.focus(); field.select(); return true })()`)
	p.types(text)
}

// logsIn opens the dashboard with a token.
func (p *page) logsIn(secret string) {
	p.t.Helper()
	p.open("/")
	p.heading("Log in")
	p.fills("token", secret)
	p.presses("Log in")
	p.heading("Overview")
}

// tabsTo presses the tabulator until the element has the focus whose text begins so, and checks that
// the focus can be seen.
func (p *page) tabsTo(text string) {
	p.t.Helper()
	for range 200 {
		p.do(chromedp.KeyEvent(kb.Tab))
		at := value[struct {
			Text string
			Seen bool
		}](p, `(() => { const e = document.activeElement, s = getComputedStyle(e);
			return { Text: (e.innerText || e.name || "").trim(), Seen: s.outlineStyle !== "none" && parseFloat(s.outlineWidth) > 0 || s.boxShadow !== "none" } })()`)
		if at.Text == text {
			if !at.Seen {
				p.t.Errorf("it cannot be seen that %q has the focus", text)
			}
			return
		}
	}
	p.t.Fatalf("the tabulator does not lead to %q on the page:\n%.2000s", text, p.text())
}

func (p *page) types(text string) {
	p.t.Helper()
	p.do(chromedp.KeyEvent(text))
}

// scheme is light or dark.
func (p *page) scheme(name string) {
	p.t.Helper()
	command(p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}}})
}

//go:embed contrast.js
var contrast string

// cut finds the texts of drawings that reach beyond them.
const cut = `[...document.querySelectorAll("svg text")].filter((text) => {
	const t = text.getBoundingClientRect(), all = text.ownerSVGElement.getBoundingClientRect();
	return t.width > 0 && (t.left < all.left - 1 || t.right > all.right + 1 || t.top < all.top - 1 || t.bottom > all.bottom + 1);
}).map((text) => text.textContent)`

// isReadable fails if the page is wider than the window, a drawing cuts off a text, or a text has too little contrast.
func (p *page) isReadable(name string) {
	p.t.Helper()
	width := value[struct{ Content, Window int }](p, `({ Content: document.documentElement.scrollWidth, Window: document.documentElement.clientWidth })`)
	if width.Content > width.Window {
		p.t.Errorf("%s is %d pixels wide in a window of %d", name, width.Content, width.Window)
	}
	for _, text := range value[[]string](p, cut) {
		p.t.Errorf("%s: %q does not fit into its drawing", name, text)
	}
	for _, text := range value[[]struct {
		Text, Colors string
		Ratio        float64
	}](p, contrast) {
		p.t.Errorf("%s: %q has a contrast of %.2f (%s)", name, text.Text, text.Ratio, text.Colors)
	}
}

func quoted(text string) string {
	written, err := json.Marshal(text)
	if err != nil {
		panic(fmt.Sprintf("a string that JSON cannot hold: %v", err))
	}
	return string(written)
}

func (p *page) scriptOff() {
	p.t.Helper()
	command(p, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
}

func (p *page) width(pixels int64) {
	p.t.Helper()
	p.do(chromedp.EmulateViewport(pixels, height))
}
