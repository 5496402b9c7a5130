package browser_test

import (
	"testing"

	"eventsv2/access"
)

// outOfSight is the entry of the current page in the navigation where that is not within it; nothing else.
const outOfSight = `(() => {
	const entry = document.querySelector('nav[aria-label="Pages"] a[aria-current="page"]');
	if (!entry) return "no entry is the current page's";
	const e = entry.getBoundingClientRect(), nav = entry.parentElement.getBoundingClientRect();
	return e.left >= nav.left - 1 && e.right <= nav.right + 1 && e.left >= 0 && e.right <= innerWidth ? "" :
		entry.textContent + " is at " + e.left + " to " + e.right + ", and the navigation at " + nav.left + " to " + nav.right;
})()`

// On a phone the navigation is wider than the screen. It shows where one is, with and without the script.
func TestPhoneShowsTheCurrentPageInTheNavigation(t *testing.T) {
	t.Parallel()
	s := newShop(t).open()
	for name, script := range map[string]bool{"with the script": true, "without the script": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := s.visitor(access.Verbs()...)
			p.width(phoneWidth)
			if !script {
				p.scriptOff()
			}
			for _, path := range p.pages() {
				p.open(path)
				p.until("the page is there", `document.readyState === "complete" && document.querySelector("h1")`)
				if text := value[string](p, outOfSight); text != "" {
					t.Errorf("%s: %s", path, text)
				}
			}
		})
	}
}
