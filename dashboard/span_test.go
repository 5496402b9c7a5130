package dashboard_test

import (
	"regexp"
	"strings"
	"testing"

	"eventsv2/dashboard"
)

// Overview and handlers show their charts for the range of the address, and lead to the others. Only the overview of an hour
// comes as a stream.
func TestChartsOfEachRange(t *testing.T) {
	t.Parallel()
	q := newQueue(t).seed()
	pages := q.dashboard(dashboard.Config{})
	canvas := "canvas=" + seeded.Canvas.String()
	for _, r := range []struct{ name, text, title string }{
		{"", "1 h", "Events per minute"}, {"1h", "1 h", "Events per minute"}, {"6h", "6 h", "Events per 5 minutes"}, {"24h", "24 h", "Events per half hour"}, {"7d", "7 d", "Events per hour"},
	} {
		for _, path := range []string{"/?", "/?" + canvas + "&", "/handler?" + handlerForm(seeded).Encode() + "&"} {
			at := strings.TrimSuffix(path+"range="+r.name, "range=")
			w := get(t, pages, at)
			page := w.Body.String()
			if w.Code != 200 || strings.Count(page, "data-begins=") != 3 {
				t.Errorf("%s: status %d, %d charts", at, w.Code, strings.Count(page, "data-begins="))
			}
			for _, want := range []string{r.title, ` aria-current="true">` + r.text + "<", strings.ReplaceAll(path, "&", "&amp;") + `range=24h"`} {
				if !strings.Contains(page, want) {
					t.Errorf("%s lacks %q:\n%s", at, want, mainPart(page))
				}
			}
			live := strings.HasPrefix(path, "/?") && r.text == "1 h"
			if strings.Contains(page, "data-live=") != live || strings.Contains(page, "data-renew=") == live {
				t.Errorf("%s comes as a stream: %t", at, !live)
			}
		}
	}
	for _, path := range []string{"/?range=2h", "/?range=1h%20", "/handler?" + handlerForm(seeded, "range", "-6h").Encode()} {
		if w := get(t, pages, path); w.Code != 400 || !strings.Contains(w.Body.String(), "A range of the charts is one of 1h, 6h, 24h, 7d.") {
			t.Errorf("%s: status %d: %s", path, w.Code, mainPart(w.Body.String()))
		}
	}
}

// A queue whose counting began a moment ago, and one that rests, have charts as well.
func TestChartsOfAQueueThatRests(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	q.exec(`INSERT INTO event_minutes (minute, canvas_id, module, name, emitted, completed, waits) SELECT date_trunc('minute', now()) - i * interval '1 minute', $1, 'WORKER', 'send_invoice', 7, 7, '{7}'
		FROM generate_series(90, 94) AS i`, [16]byte(seeded.Canvas))
	pages := q.dashboard(dashboard.Config{})
	for _, path := range []string{"/?", "/handler?" + handlerForm(seeded).Encode() + "&"} {
		if page := get(t, pages, path).Body.String(); strings.Contains(page, "<svg viewBox") || !strings.Contains(page, "in the last hour") {
			t.Errorf("%s: %s", path, mainPart(page))
		}
		if page := get(t, pages, path+"range=6h").Body.String(); strings.Count(page, "data-begins=") != 3 || !strings.Contains(page, `data-name="emitted" data-values="`) || strings.Contains(page, "not summed up") {
			t.Errorf("%s of 6 hours: %s", path, mainPart(page))
		}
	}
}

// A week is hours that cron has summed up, and after them minutes; no minute is counted twice.
func TestChartsOfAWeek(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	q.exec(`INSERT INTO event_minutes (minute, canvas_id, module, name, emitted) SELECT date_trunc('minute', now()) - i * interval '1 minute', $1, 'WORKER', 'send_invoice', 7
		FROM generate_series(0, 1800) AS i`, [16]byte(seeded.Canvas))
	pages := q.dashboard(dashboard.Config{})
	check := func(what string) {
		t.Helper()
		for _, path := range []string{"/?range=7d", "/?range=7d&canvas=" + seeded.Canvas.String(), "/handler?" + handlerForm(seeded, "range", "7d").Encode()} {
			values := valuesOf.FindStringSubmatch(get(t, pages, path).Body.String())
			if values == nil {
				t.Fatalf("%s, %s has no chart", what, path)
			}
			list := strings.Split(values[1], "|")
			for i, v := range list {
				if v != "420" && (v != "" || what != "by the minute") && i > 0 { // counting began within the first hour
					t.Errorf("%s, hour %d of %s has %q of %v", what, i, path, v, list)
					break
				}
			}
			if len(list) < 24 || len(list) > 31 {
				t.Errorf("%s, %s has %d hours", what, path, len(list))
			}
		}
	}
	check("by the minute")
	for more := true; more; {
		var err error
		if more, err = q.store.SumHour(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	check("by the hour")
}

// valuesOf are the values of the first line.
var valuesOf = regexp.MustCompile(`data-name="emitted" data-values="([^"]*)"`)
