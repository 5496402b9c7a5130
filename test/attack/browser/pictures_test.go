package browser_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"eventsv2/access"
)

// Every page is readable, light and dark, on a screen and on a phone, and has its picture.
func TestPictures(t *testing.T) {
	t.Parallel()
	s := newShop(t).likeTheDemo()
	// One canvas has a name that no line takes.
	s.exec(`INSERT INTO canvas_names (canvas_id, name) SELECT canvas_id, CASE WHEN canvas_id = '` + bookshop.String() + `' THEN repeat('Donaudampfschifffahrt', 12) ELSE 'Shop ' || canvas_id::text || ' & Co' END
		FROM event_log GROUP BY canvas_id`)
	waiting := "/events/" + s.one(`SELECT min(id)::text FROM events_v2`)
	paths := []string{waiting, waiting + "/edit", "/events?state=completed", "/events/1", "/operations", handlerPage(mailReceipt), handlerPage(chargeCard) + "&state=errors",
		"/events/" + s.one(`SELECT min(id)::text FROM event_log WHERE status = 'FAILED'`),
		"/events/" + s.one(`SELECT min(id)::text FROM event_log WHERE name = 'order_placed'`)}
	for _, width := range []int64{screenWidth, phoneWidth} {
		for _, scheme := range []string{"light", "dark"} {
			t.Run(fmt.Sprintf("%d %s", width, scheme), func(t *testing.T) {
				t.Parallel()
				p := newPage(t, s.address)
				p.width(width)
				p.scheme(scheme)
				p.open("/login")
				p.pictured("/login", width, scheme)
				p.logsIn(s.token(access.Verbs()...))
				for _, path := range append(p.pages(), paths...) {
					p.open(path)
					p.pictured(path, width, scheme)
				}
			})
		}
	}
}

// pictured takes a picture of a page, and checks that it can be read.
func (p *page) pictured(path string, width int64, scheme string) {
	p.t.Helper()
	name := fmt.Sprintf("%s-%d-%s", pictureName(path), width, scheme)
	p.until("there is a heading", `document.readyState === "complete" && document.querySelector("h1")`)
	p.takePicture(name)
}

// takePicture takes a picture of what the page shows, and checks that it can be read.
func (p *page) takePicture(name string) {
	p.t.Helper()
	p.until("colours have changed", `document.getAnimations().every(a => a.playState !== "running")`)
	p.isReadable(name)
	png, err := chromedp.Run(p.ctx, chromedp.FullScreenshot(100))
	if err != nil {
		p.t.Fatal(err)
	}
	result.picture(p.t, name, png)
}

// inAllForms takes pictures of what the page shows, light and dark, on a screen and on a phone, and leaves it as it was.
func (p *page) inAllForms(name string) {
	p.t.Helper()
	for _, width := range []int64{phoneWidth, screenWidth} {
		p.width(width)
		for _, scheme := range []string{"dark", "light"} {
			p.scheme(scheme)
			p.takePicture(fmt.Sprintf("%s-%d-%s", name, width, scheme))
		}
	}
}

// A queue in which nothing has happened yet has pages as well.
func TestEmptyPages(t *testing.T) {
	t.Parallel()
	p := newShop(t).open().visitor(access.Verbs()...)
	for _, path := range p.pages() {
		p.open(path)
		p.until("there is a heading", `document.querySelector("h1")`)
		p.isReadable(path + " of an empty queue")
	}
}

// pages are those that the navigation leads to.
func (p *page) pages() []string {
	p.t.Helper()
	paths := value[[]string](p, `[...document.querySelectorAll("header nav a")].map(a => new URL(a.href).pathname)`)
	if len(paths) < 5 {
		p.t.Fatalf("the navigation leads to %q only", paths)
	}
	return paths
}

// pictureName is the path of a page as the name of a file.
func pictureName(path string) string {
	u, err := url.Parse(path)
	if err != nil || u.Path == "/" {
		return "overview"
	}
	name := strings.ReplaceAll(strings.Trim(u.Path, "/"), "/", "-")
	if state := u.Query().Get("state"); state != "" {
		name += "-" + state
	}
	return name
}
