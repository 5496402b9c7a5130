// Package browser tests the dashboard in a real browser: Debian's chromium, as somebody uses
// it who is woken at night.
//
//	make browser
//	make browser PICTURES=/tmp/pictures
//
// # Guarantees
//
// All tests share one process of the browser, which runs as a user that is not root and ends
// with the tests. Each scenario has a database, a service with workers and a browser context of
// its own, so that no cookie and no event of one is seen by another. A scenario waits for what
// a page shows; an error of a script, and whatever the page's own policy refuses, fails it.
//
// A picture of each page, light and dark, on a screen and on a phone, is written to the directory
// of -pictures; without it to a temporary one, which stays. Each page must fit the width, and each
// text must have the contrast that WCAG 2.2 asks for at level AA.
//
// The last line is the result:
//
//	browser: scenarios=N pictures=M failed=F
//
// # Failure handling
//
// Without chromium, everything is skipped, and says so. A browser that does not start, or ends
// by itself, fails the tests with its last words.
package browser
